"""The hypotheses of a plan, in the order in which they could end it: what each asks, expects, costs and leads to."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.poc import Plan
from services.scores import case_proposals, case_score
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.engine_proposals import proposals
from ui.plan_view import hypotheses
from ui.text import t


def hypotheses_section(ws: Workspace, state: CaseState, plan: Plan, take: Callable[[str], None]) -> None:
    """Show the hypotheses of a plan and what the score asks besides; `take` takes a proposal into the draft."""
    st.subheader(t("Hypotheses"))
    hypotheses(plan)
    if state.requirements is None:
        return
    asked = case_proposals(state.requirements, case_score(ws, state.requirements))
    missing = sum(p.covered_by(plan) is None for p in asked)
    with st.expander(t("What the score asks besides ({n})", n=missing), icon=":material/playlist_add:"):
        proposals(asked, plan, take, "take")
