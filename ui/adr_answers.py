"""The head of one decision: where it stands, what it supersedes, and the conditions that wait for an answer."""

from __future__ import annotations

import streamlit as st

from decisions.lint import speed_warnings
from decisions.record import Adr, Fire, Status
from services.decisions import answer_fire, successor_of
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.parts import flash, go_to, plain, short, shown_errors, state_badge
from ui.session import signed
from ui.text import t


def record_head(ws: Workspace, of_case: CaseState, adr: Adr) -> None:
    """Title, state and headline, what the figures cannot carry, and the records before and after it."""
    st.header(plain(short(adr)), divider="gray")
    tags = " ".join(f":gray-badge[{plain(tag)}]" for tag in adr.tags)
    st.markdown(f"{state_badge(adr.status)} **{plain(adr.headline)}** {tags}")
    for warning in speed_warnings(adr, of_case.evidence, of_case.context_of(adr)):
        st.warning(plain(warning), icon=":material/rule:")
    for old in adr.supersedes:
        verb = t("Supersedes") if adr.status is Status.ACCEPTED else t("Would supersede")
        st.markdown(f":material/redo: {verb}: {plain(short(ws.store.adrs.get(old)))}")
    if adr.superseded_by:
        st.markdown(f":material/redo: {t('Superseded by')}: {plain(short(ws.store.adrs.get(adr.superseded_by)))}")
    if successor := successor_of(of_case, adr):
        go_to("decision", t("Under way to supersede it: {title}", title=plain(successor.title)))


def open_fires(ws: Workspace, adr: Adr) -> None:
    """Every fired condition that nobody answered, with the two answers."""
    for fire in adr.fires if adr.waits else ():
        with st.container(border=True):
            _fire(ws, adr, fire)


def _fire(ws: Workspace, adr: Adr, fire: Fire) -> None:
    said = t("{id} fired on {at}", id=plain(fire.condition), at=f"{fire.at:%Y-%m-%d}")
    st.markdown(f"{state_badge('fired')} **{said}**")
    st.markdown(plain(fire.sentence))
    if then := adr.condition(fire.condition).consequence:
        st.markdown(f"**{t('Agreed beforehand')}:** {plain(then)}")
    key = f"{adr.id}-{fire.condition}"
    reason = st.text_input(t("Why does it stand, or why is it re-opened?"), key=f"reason-{key}")
    with st.container(horizontal=True):
        reopen = st.button(t("Re-open: begin the superseding draft"), type="primary", icon=":material/redo:",
                           key=f"reopen-{key}")  # fmt: skip
        stands = st.button(t("It stands"), icon=":material/shield:", key=f"stands-{key}")
    if reopen and (name := signed()):
        with shown_errors():
            draft = answer_fire(ws, adr.id, fire.condition, name, reason, reopen=True)
            st.session_state["open-adr"] = draft.id if draft else None
            flash(t("The superseding draft is begun. The old decision stands until it is accepted."))
            st.switch_page("pages/decision.py")
    if stands and (name := signed()):
        with shown_errors():
            answer_fire(ws, adr.id, fire.condition, name, reason, reopen=False)
            flash(t("It stands; the reason is in the log."))
            st.rerun()
