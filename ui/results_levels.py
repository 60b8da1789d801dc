"""Service levels: which candidate keeps all of them at which load point, and why."""

from __future__ import annotations

import streamlit as st

from planner.condition_line import format_test
from planner.poc import Plan
from services.verdicts import CaseState, judge_levels
from ui.parts import plain, state_badge
from ui.text import t
from ui.words import metrics_in_words


def levels_section(state: CaseState, plan: Plan) -> None:
    """A table of states, a row a load point; nothing where the plan promises nothing."""
    levels = judge_levels(state)
    if not levels:
        return
    st.subheader(t("Service levels"))
    candidates = [c.id for c in plan.candidates]
    lines = [
        f"| {t('Load point')} | " + " | ".join(map(plain, candidates)) + " |",
        "|---" * (len(candidates) + 1) + "|",
    ]
    for point in plan.load_points:
        cells = " | ".join(state_badge(levels[c, point.name].state) for c in candidates)
        lines.append(f"| {plain(point.name)} :small[{plain(point.in_words())}] | {cells} |")
    st.markdown("\n".join(lines))
    st.caption(
        t(
            "All levels together: {levels}.",
            levels=plain(metrics_in_words("; ".join(map(format_test, plan.service_levels)))),
        )
    )
    with st.expander(t("Why"), icon=":material/help:"):
        for verdict in levels.values():
            st.markdown(f"- {state_badge(verdict.state)} {plain(metrics_in_words(verdict.sentence))}")
