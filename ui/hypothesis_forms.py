"""Changing the hypotheses of a plan, one at a time, as sentences and condition lines; each save is a new plan."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.condition_line import format_condition
from planner.hypothesis_order import DEFAULT_STAKES, WEIGHT
from planner.poc import Hypothesis, Plan
from planner.units import format_duration
from services.hypotheses import Offer, View, Words, add_own, add_template, change, take_out, waiting_for
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.parts import flash, plain, shown_errors
from ui.session import signed
from ui.text import t

EXAMPLE = "vllm: ttft p95 <= 2 s at peak near 10 %"
STORED = "The plan is stored with this change."


def editor(ws: Workspace, state: CaseState, plan: Plan, found: View) -> None:
    """Change one, take one out, add one from a template or of one's own."""
    ways: dict[str, Callable[[], None]] = {
        t("Change"): lambda: _change(ws, state, plan),
        t("From a template"): lambda: _template(ws, state, plan, found),
        t("Your own"): lambda: _own(ws, state, plan),
    }
    way = st.segmented_control(
        t("What to do"), list(ways), default=next(iter(ways)), key=f"hypothesis-way-{state.case.slug}",
        label_visibility="collapsed",
    )  # fmt: skip
    ways[way or next(iter(ways))]()


def _store(save: Callable[[str], object]) -> None:
    """Save under a name and say so, or say in one sentence what is wrong and keep what was typed."""
    name = signed()
    if not name:
        return
    with shown_errors():
        save(name)
        flash(t(STORED))
        st.rerun()


def _change(ws: Workspace, state: CaseState, plan: Plan) -> None:
    if not plan.hypotheses:
        st.markdown(t("The plan holds no hypothesis: add one."))
        return
    slug, by_id = state.case.slug, {h.id: h for h in plan.hypotheses}
    id = st.selectbox(
        t("Hypothesis"), list(by_id), key=f"hypothesis-id-{slug}",
        format_func=lambda i: f"{i} {by_id[i].statement}" if i in by_id else i,
    )  # fmt: skip
    h = by_id[id]
    typed, saved = _form(f"{slug}-{plan.sha256()[:8]}-{id}", plan, h)
    if saved:
        _store(lambda name: change(ws, state.case.id, state.requirements, plan, id, typed, name))
    waiting = waiting_for(plan, id)
    if waiting:
        st.caption(t("{ids} wait for it: without it they are tested at once.", ids=plain(", ".join(waiting))))
    if st.button(t("Take {id} out of the plan", id=id), icon=":material/delete:", key=f"hypothesis-out-{slug}"):
        _store(lambda name: take_out(ws, state.case.id, plan, id, name))


def _own(ws: Workspace, state: CaseState, plan: Plan) -> None:
    typed, saved = _form(f"{state.case.slug}-{plan.sha256()[:8]}-own", plan, None)
    if saved:
        _store(lambda name: add_own(ws, state.case.id, state.requirements, plan, typed, name))


def _form(key: str, plan: Plan, h: Hypothesis | None) -> tuple[Words, bool]:
    """The fields of one hypothesis; what is typed stays there until it is saved."""
    with st.form(f"hypothesis-{key}"):
        statement = st.text_input(t("Statement"), h.statement if h else "", key=f"statement-{key}")
        lines = st.text_area(
            t("Conditions, one a line; all must hold"),
            "\n".join(format_condition(c) for c in h.conditions) if h else "", key=f"lines-{key}", placeholder=EXAMPLE,
            help=t("Candidates: {candidates}. Load points: {points}.",
                   candidates=", ".join(c.id for c in plan.candidates),
                   points=", ".join(p.name for p in plan.load_points)),
        )  # fmt: skip
        method = st.text_input(t("How it is tested"), h.method if h else "", key=f"method-{key}")
        rejected = st.text_input(t("If rejected"), h.if_rejected if h else "", key=f"rejected-{key}")
        left, right = st.columns(2)
        known, now = list(WEIGHT), h.stakes if h and h.stakes else DEFAULT_STAKES
        stakes = left.selectbox(
            t("A no"), known, index=known.index(now), format_func=t, key=f"stakes-{key}",
            help=t("What is at stake decides with the doubt and the minutes what is tested first."),
        )  # fmt: skip
        others = [x.id for x in plan.hypotheses if h is None or x.id != h.id]
        waits = right.multiselect(
            t("Waits for"), others, list(h.depends_on) if h else [x for x in ("H1",) if x in others],
            key=f"waits-{key}",
        )  # fmt: skip
        saved = st.form_submit_button(t("Save as the plan"), icon=":material/save:")
    return Words(statement, lines, method, rejected, stakes, tuple(waits)), saved


def _template(ws: Workspace, state: CaseState, plan: Plan, found: View) -> None:
    if not found.offers:
        st.markdown(t("The plan holds every template that this case can ask."))
    for offer in found.offers:
        _offered(ws, state, plan, offer)


def _offered(ws: Workspace, state: CaseState, plan: Plan, offer: Offer) -> None:
    said, action = st.columns([4, 1])
    added = t("adds {time}", time=about(offer.adds.minutes)) if offer.adds.minutes else t("adds no run")
    said.markdown(
        f"**{plain(offer.id)}** {plain(' '.join(h.statement for h in offer.asks))}  \n"
        f":small[{t('Asked: {when}', when=plain(t(offer.when)))} · {added}]"
    )
    said.code("\n".join(format_condition(c) for h in offer.asks for c in h.conditions), language=None)
    if action.button(t("Add"), icon=":material/add:", key=f"add-{state.case.slug}-{offer.id}", width="stretch"):
        _store(lambda name: add_template(ws, state.case.id, state.requirements, plan, offer.id, name))


def about(minutes: float) -> str:
    """A predicted time, no finer than it is known."""
    if minutes < 1:
        return t("less than a minute")
    return t("{n:.0f} min", n=minutes) if minutes < 59.5 else format_duration(60 * minutes)
