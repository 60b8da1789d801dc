"""Two candidates side by side on the Results page: what their contracts allow, and the outcome of every figure."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.comparison import Comparison, Side
from planner.metrics import METRICS
from services.comparison import Compared, comparison, pairs
from services.verdicts import CaseState
from ui.charts import as_csv
from ui.parts import plain
from ui.text import t, tn
from ui.words import metrics_in_words, with_range

PARITY_COLOUR = {"comparable": "green", "comparable with a declared difference": "orange", "refused": "red"}


def comparison_section(state: CaseState) -> None:
    """Choose two candidates and see each figure compared; nothing where fewer than two were seen."""
    if found := pairs(state):
        st.subheader(t("Comparison"))
        _compared(state, found)


@st.fragment
def _compared(state: CaseState, found: tuple[tuple[str, str], ...]) -> None:
    left, right = found[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(found) > 1:
            left, right = st.selectbox(
                t("Which two"), found, format_func=lambda two: t("{a} against {b}", a=two[0], b=two[1]),
                key=f"compare-{state.case.slug}", width=360,
            )  # fmt: skip
        everything = st.toggle(t("All figures"), key=f"compare-all-{state.case.slug}")
    compared = comparison(state, left, right, all_figures=everything)
    _contracts(compared)
    if not compared.rows:
        st.markdown(t("No figure of either at a load point of the plan."))
        return
    _table(state, compared)
    for reason, figures in refused(compared).items():
        st.markdown(
            f":material/block: **{t('refused')}** {plain(', '.join(figures))}: {plain(metrics_in_words(reason))}."
        )
    rows, expected = compared.by_chance
    if rows:
        st.caption(
            tn(rows, "{n} row rests on ranges over a few starts. Without any difference about {k:.2g} would show one.",
               "{n} rows rest on ranges over a few starts. Without any difference about {k:.2g} would show one.",
               k=expected)
        )  # fmt: skip
    _explanations(compared)


def _table(state: CaseState, compared: Compared) -> None:
    """The rows that compare, with their data to take along."""
    frame = comparison_frame(compared)
    if frame.empty:
        return
    whose = {t(name): st.column_config.TextColumn(pinned=True) for name in ("Load point", "Figure")}
    st.dataframe(frame, hide_index=True, column_config=whose, alt=t("Two candidates figure by figure"),
                 key="compared")  # fmt: skip
    quality = [row.quality for row in compared.rows if row.outcome != "refused"]
    taken = frame.assign(**{t("Quality"): quality}) if any(quality) else frame  # what the page says above goes along
    st.download_button(
        t("CSV"), as_csv(taken), file_name=f"{state.case.slug}-{compared.left}-{compared.right}.csv", mime="text/csv",
        icon=":material/table:", on_click="ignore", key="csv-comparison",
    )  # fmt: skip


def refused(compared: Compared) -> dict[str, list[str]]:
    """Figures that do not compare, by the reason, each named once whatever the load points."""
    found: dict[str, dict[str, None]] = {}
    for row in compared.rows:
        if row.outcome == "refused":
            found.setdefault(row.because, {})[_figure(row)] = None
    return {reason: list(figures) for reason, figures in found.items()}


def _contracts(compared: Compared) -> None:
    """What the contracts of the two allow, with every difference by name, and the warning about quality."""
    if compared.parity is None:
        st.markdown(t("One of the two states no contract, so nothing compares."))
        return
    state = compared.parity.state
    named = plain("; ".join(str(m) for m in compared.parity.differences))
    st.markdown(f":{PARITY_COLOUR[state]}-badge[{t(state)}] {named}")
    for warning in dict.fromkeys(row.warning for row in compared.rows if row.warning):
        st.warning(plain(warning), icon=":material/rule:")


def comparison_frame(compared: Compared) -> pd.DataFrame:
    """One row per figure and load point that compares: outcome, both values with ranges, ratio, kind, reason."""
    return pd.DataFrame([_row(compared, row) for row in compared.rows if row.outcome != "refused"])


def _figure(row: Comparison) -> str:
    return metrics_in_words(METRICS[row.metric].name) + ("" if row.statistic == "value" else f" {row.statistic}")


def _row(compared: Compared, row: Comparison) -> dict[str, str]:
    unit = METRICS[row.metric].unit
    ratio = "–" if row.ratio is None else with_range(row.ratio, *(row.ratio_interval or (row.ratio, row.ratio)), "x")
    because = "; ".join((row.because, *row.differences))
    if not because.startswith((compared.left, compared.right)):  # a candidate is called as the plan calls it
        because = because[:1].upper() + because[1:]
    return {
        t("Load point"): row.load_point, t("Figure"): _figure(row), t("Outcome"): outcome_in_words(row),
        compared.left: _cell(row.left, unit), compared.right: _cell(row.right, unit), t("Ratio"): ratio,
        t("Kind"): ", ".join(dict.fromkeys(t(s.kind.value) for s in (row.left, row.right) if s.kind)) or "–",
        t("Because"): metrics_in_words(because),
    }  # fmt: skip


def outcome_in_words(row: Comparison) -> str:
    """Who is higher, and whether that is better, or why nobody is."""
    if not row.higher:
        return t(row.outcome)
    if row.better == row.higher:
        return t("{who} higher, better", who=row.higher)
    return t("{who} higher, worse", who=row.higher) if row.better else t("{who} higher", who=row.higher)


def _cell(side: Side, unit: str) -> str:
    if side.value is None or side.low is None or side.high is None:
        return t("not measured")
    return with_range(side.value, side.low, side.high, unit)


def _explanations(compared: Compared) -> None:
    causes = explanations(compared)
    if not causes:
        return
    with st.expander(t("What could explain it"), icon=":material/troubleshoot:"):
        for sentence, figures in causes.items():
            st.markdown(f"**{plain(', '.join(figures))}**  \n{plain(sentence)}")


def explanations(compared: Compared) -> dict[str, list[str]]:
    """What could be the cause of the differences, each said once with the figures that it stands for."""
    causes: dict[str, list[str]] = {}
    for row in compared.rows:
        if row.explanation:
            causes.setdefault(row.explanation, []).append(f"{_figure(row)} at {row.load_point}")
    return causes
