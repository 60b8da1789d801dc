"""Results: what was measured against what was required and predicted, and a verdict for every hypothesis."""

from __future__ import annotations

import streamlit as st

from services.verdicts import headline
from ui.cached import judge_today
from ui.comparison_view import comparison_section
from ui.parts import go_to, head, next_step, plain
from ui.quality_view import precision_notes, quality_section
from ui.report_view import report_section
from ui.results_capacity import capacity_section
from ui.results_figures import figures_section, outcomes_section
from ui.results_levels import levels_section
from ui.results_rates import rates_section
from ui.results_sources import sources_section
from ui.results_speed import speed_section
from ui.results_theory import theory_section
from ui.run_view import one_run
from ui.session import open_case
from ui.text import t
from ui.verdicts_view import verdicts_section

head("results", t("What was seen, against what you need and what was predicted."))
state = open_case(judged=False)  # nothing here shows what fired before: the charts come first
for finding in state.findings:
    st.warning(plain(finding), icon=":material/report:")

if state.requirements is None or state.plan is None:
    go_to("poc-plan", t("There is no plan yet, so there is nothing to judge. Make it first:"))
    st.stop()

sources_section(state)
st.markdown(f"#### {plain(headline(state).sentence)}")
speed_section(state, state.requirements)
precision_notes(state)
rates_section(state, state.requirements)
capacity_section(state, state.plan)
verdicts_section(state)
levels_section(state, state.plan)
comparison_section(state)
quality_section(state)
figures_section(state)
outcomes_section(state)
theory_section(state)
one_run(state)
report_section(state)
next_step("results")
judge_today(state.case.slug)
