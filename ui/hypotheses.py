"""The hypotheses of a plan, in the order in which they could end it: what each asks, expects, costs and leads to."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.condition_line import format_condition
from planner.hypothesis_cost import Effort
from planner.hypothesis_order import Prior, Ranked
from planner.hypothesis_schema import Stakes
from planner.poc import Plan
from services.hypotheses import View, view
from services.scores import case_proposals, case_score
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.engine_proposals import proposals
from ui.hypothesis_forms import about, editor
from ui.parts import plain
from ui.text import t
from ui.words import metrics_in_words

PRIORS: dict[Prior, str] = {
    "expected to fail": ":red-badge[:material/trending_down: expected to fail]",
    "open": ":gray-badge[:material/help: open]",
    "expected to hold": ":green-badge[:material/trending_up: expected to hold]",
    "decided": ":blue-badge[:material/check: decided]",
}
STAKES: dict[Stakes, str] = {
    "ends the plan": ":red-badge[:material/block: a no ends the plan]",
    "changes the plan": ":orange-badge[:material/alt_route: a no changes the plan]",
    "changes a setting": ":gray-badge[:material/tune: a no changes a setting]",
}


def hypotheses_section(ws: Workspace, state: CaseState, plan: Plan, take: Callable[[str], None]) -> None:
    """Show the hypotheses of a plan and let people change them; `take` takes a proposal of the score into the draft."""
    if state.requirements is None:
        return
    found = view(ws, state, state.requirements, plan)
    st.subheader(t("Hypotheses"))
    st.markdown(_together(found))
    if found.left_behind:
        st.warning(
            t("The stored plan holds {ids}, which this draft cannot: its candidate or load point is gone.",
              ids=plain(", ".join(found.left_behind))),
            icon=":material/report:",
        )  # fmt: skip
    for place, ranked in enumerate(found.order.ranked, 1):
        _shown(place, ranked, found.known.get(ranked.hypothesis.id, ""))
    with st.expander(t("Change, add or take out a hypothesis"), icon=":material/edit:"):
        editor(ws, state, plan, found)
    asked = case_proposals(state.requirements, case_score(ws, state.requirements))
    missing = sum(p.covered_by(plan) is None for p in asked)
    with st.expander(t("What the score asks besides ({n})", n=missing), icon=":material/playlist_add:"):
        proposals(asked, plan, take, "take")


def _together(found: View) -> str:
    """What all cost, and how they are ordered."""
    total, rest = found.order.total, found.order.unasked
    said = t("First what could end the plan cheapest: doubt × stakes a minute, after what it waits for. "
             "Together {cost}, shared runs counted once.", cost=price(total))  # fmt: skip
    if rest.minutes >= 1:
        said += " " + t("The plan runs {time} more that no hypothesis asks for.", time=about(rest.minutes))
    if total.unpredicted:
        said += " " + t("No speed is predicted at {points}: counted at the plan's limit.",
                        points=plain(", ".join(total.unpredicted)))  # fmt: skip
    return said


def _shown(place: int, r: Ranked, known: str) -> None:
    h = r.hypothesis
    with st.container(border=True):
        st.markdown(f"**{place}. {plain(h.id)}** {plain(h.statement)}")
        st.code("\n".join(format_condition(c) for c in h.conditions), language=None)
        if h.warning:
            st.warning(plain(h.warning), icon=":material/report:")
        elif h.expectation:
            st.markdown(t("Expected: {what}", what=plain(h.expectation)))
        if known:
            st.caption(plain(metrics_in_words(known)))
        st.markdown(
            t("How: {method} **If rejected:** {rejected}", method=plain(h.method), rejected=plain(h.if_rejected))
        )
        costs = [t("adds {cost}", cost=price(r.adds)) if r.adds.minutes else t("adds no run")]
        if r.alone != r.adds:
            costs.append(t("alone {cost}", cost=price(r.alone)))
        costs.append(t("waits for {ids}", ids=plain(", ".join(r.waits_for))) if r.waits_for else t("waits for nothing"))
        st.markdown(f"{t(PRIORS[r.prior])} {t(STAKES[r.stakes])} :small[{' · '.join(costs)}]")
        by = t("Written or changed by {name}.", name=plain(h.author)) if h.author else ""
        st.caption(f"{t('Why here: {reason}', reason=plain(r.reason))} {by}")


def price(e: Effort) -> str:
    """Time and tokens in a few words; a start alone takes no tokens."""
    if not e.tokens:
        return about(e.minutes)
    return t("{time}, {tokens:.1f} M tokens", time=about(e.minutes), tokens=e.tokens / 1e6)
