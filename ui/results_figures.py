"""All figures by candidate and load point, what each engine start came to, and total output over the coverage bound."""

from __future__ import annotations

import streamlit as st

from services.verdicts import CaseState
from ui.charts import as_csv
from ui.parts import plain
from ui.text import t
from ui.views import bound_frame, kv_spread, outcomes_frame, results_frame


def figures_section(state: CaseState) -> None:
    """One row per candidate, load point and kind, with the range over starts and repeats."""
    st.subheader(t("Figures"))
    table = results_frame(state)
    if table.empty:
        st.markdown(t("Not measured."))
        return
    whose = {t(name): st.column_config.TextColumn(pinned=True) for name in ("Candidate", "Load point")}
    st.dataframe(
        table, hide_index=True, height="content", column_config=whose, alt=t("Figures by candidate and load point")
    )
    st.download_button(
        t("CSV"), as_csv(table), file_name=f"{state.case.slug}-figures.csv", mime="text/csv", icon=":material/table:",
        on_click="ignore", key="csv-figures",
    )  # fmt: skip


def outcomes_section(state: CaseState) -> None:
    """One row an engine start, and how its KV capacity differs between starts."""
    st.subheader(t("Outcomes"))
    outcomes = outcomes_frame(state)
    if outcomes.empty:
        st.markdown(t("No engine was started yet."))
        return
    st.dataframe(outcomes, hide_index=True, alt=t("What each engine start came to"))
    for sentence in kv_spread(state):
        st.caption(t("KV capacity of {what}", what=plain(sentence)))


def bound_table(state: CaseState) -> None:
    """Total output over the coverage bound by load point, every kind of evidence; nothing where none was computed."""
    ratios = bound_frame(state)
    if ratios.empty:
        st.markdown(t("Measured / coverage bound: not measured."))
        return
    with st.expander(t("Total output over the coverage bound, by load point")):
        st.dataframe(ratios, hide_index=True, width="content", alt=t("Total output over the coverage bound"))
