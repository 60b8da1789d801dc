"""The flip conditions of a decision as they stand today, and what is done about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import streamlit as st

from decisions.flip_condition import FlipCondition
from decisions.flips import FlipVerdict
from decisions.record import Adr, Status
from services.flip_edits import add_condition, fire_by_hand, looked_at, retire_condition, reviewed
from services.prefill import RECHECK_AFTER_DAYS, REVIEW_AFTER_DAYS
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.adr_view import in_production
from ui.flip_forms import new_condition
from ui.flip_gauge import condition_words, gauge
from ui.parts import flash, judged, plain, shown_errors, state_badge
from ui.session import signed
from ui.text import t


def conditions_today(ws: Workspace, of_case: CaseState, adr: Adr, flips: Sequence[FlipVerdict]) -> None:
    """Each condition with its state, the room that is left and who looks after it; what a standing decision lets do."""
    stands = adr.status is Status.ACCEPTED
    if not flips:
        st.markdown(t("It has no flip condition: nothing re-opens it."))
    for v in flips:
        flip = adr.condition(v.condition)
        with st.container(border=True):
            st.markdown(f"{state_badge(v.state)} **{plain(v.condition)}** {condition_words(flip)}")
            st.markdown(judged(v.sentence, v.state))
            gauge(v)
            st.caption(_duties(flip, overdue=v.overdue))
            if stands:
                _looked_after(ws, adr, flip)
    for flip in adr.conditions:
        if flip.retired:
            st.caption(f"{t('Retired')}: {plain(flip.id)} {condition_words(flip)}")
    if stands:
        _add(ws, of_case, adr)
        _review(ws, adr)
        in_production(ws, of_case, adr)


def _duties(flip: FlipCondition, *, overdue: bool) -> str:
    when = flip.recheck_on.isoformat() if flip.recheck_on else t("no date")
    late = f" :red[{t('overdue')}]" if overdue else ""
    who = plain(flip.owner) or t("nobody")
    then = f" · {t('Then')}: {plain(flip.consequence)}" if flip.consequence else ""
    if flip.manual:
        return t("Judged by hand by {owner}. Re-check: {when}", owner=who, when=when) + late + then
    return t("Fires when it {side}. Owner: {owner}. Re-check: {when}", side=t(flip.fires_when), owner=who,
             when=when) + late + then  # fmt: skip


def _looked_after(ws: Workspace, adr: Adr, flip: FlipCondition) -> None:
    """A condition is looked at and dated anew, retired, or, when it is judged by hand, fired."""
    key = f"{adr.id}-{flip.id}"
    with st.popover(t("Look after it"), icon=":material/visibility:", key=f"after-{key}"):
        why = st.text_input(t("What was found, or why"), key=f"found-{key}")
        tomorrow = now().date() + timedelta(days=1)
        again = st.date_input(
            t("Look again on"), now().date() + timedelta(days=RECHECK_AFTER_DAYS), min_value=tomorrow,
            format="YYYY-MM-DD", key=f"again-{key}",
        )  # fmt: skip
        with st.container(horizontal=True):
            looked = st.button(t("Looked at"), icon=":material/event_repeat:", type="primary", key=f"looked-{key}")
            retired = st.button(t("Retire"), icon=":material/archive:", key=f"retire-{key}")
            fired = flip.manual and st.button(
                t("It has happened"), icon=":material/notifications_active:", key=f"fire-{key}"
            )
    if (looked or retired or fired) and (name := signed()):
        with shown_errors():
            if looked:
                looked_at(ws, adr.id, flip.id, again, name, why)
            elif retired:
                retire_condition(ws, adr.id, flip.id, name, why)
            else:
                fire_by_hand(ws, adr.id, flip.id, name, why)
            flash(t("It is in the log."))
            st.rerun()


def _add(ws: Workspace, of_case: CaseState, adr: Adr) -> None:
    with st.expander(t("Add a condition"), icon=":material/add:"):
        added = new_condition(ws, of_case, adr, f"{adr.id}-{len(adr.conditions)}")
        why = st.text_input(t("Why it is added"), key=f"add-why-{adr.id}-{len(adr.conditions)}")
        adding = st.button(t("Add it to the record"), icon=":material/add:", disabled=added is None,
                           key=f"add-it-{adr.id}")  # fmt: skip
        if added and adding and (name := signed()):
            with shown_errors():
                add_condition(ws, adr.id, added, name, why)
                flash(t("'{id}' is added.", id=plain(added.id)))
                st.rerun()


def _review(ws: Workspace, adr: Adr) -> None:
    today = now().date()
    late = f" :red[{t('due')}]" if adr.review_on and adr.review_on <= today else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(t("Review on {day}", day=adr.review_on or t("no date")) + late)
        with st.popover(t("Reviewed"), icon=":material/fact_check:", key=f"review-{adr.id}"):
            why = st.text_input(t("What was found"), key=f"review-why-{adr.id}")
            again = st.date_input(
                t("Review again on"), today + timedelta(days=REVIEW_AFTER_DAYS), min_value=today + timedelta(days=1),
                format="YYYY-MM-DD", key=f"review-on-{adr.id}",
            )  # fmt: skip
            done = st.button(t("Set the date"), type="primary", icon=":material/event_repeat:", key=f"set-{adr.id}")
    if done and (name := signed()):
        with shown_errors():
            reviewed(ws, adr.id, again, name, why)
            flash(t("It is in the log."))
            st.rerun()
