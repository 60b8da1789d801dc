"""Verdicts: every hypothesis with what decided it, what was passed over, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from planner.conditions import Evidence, Verdict
from planner.metrics import quantity
from services.verdicts import CaseState, HypothesisVerdict, judge_hypotheses
from ui.parts import kind_badge, plain, state_badge
from ui.text import t
from ui.views import figure_in_words, leaves
from ui.words import metrics_in_words


def verdicts_section(state: CaseState) -> None:
    """One box a hypothesis: state, sentence, expectation, what follows when it fails, and its evidence."""
    st.subheader(t("Verdicts"))
    evidence = {e.id: e for e in state.evidence}
    for judged in judge_hypotheses(state):
        _box(judged, evidence)


def _box(judged: HypothesisVerdict, evidence: Mapping[str, Evidence]) -> None:
    h, verdict = judged.hypothesis, judged.verdict
    with st.container(border=True):
        st.markdown(f"{state_badge(verdict.state)} **{h.id}** {plain(h.statement)}")
        badge = f"{kind_badge(verdict.kind)} " if verdict.kind else ""
        st.markdown(f"{badge}{plain(metrics_in_words(verdict.sentence))}")
        expected = verdict.expectation or h.expectation
        if h.warning and not verdict.decided:
            st.caption(f":material/warning: {plain(h.warning)}")
        elif expected:
            st.caption(t("Expectation: {what}", what=plain(expected)))
        if verdict.side == "fails":
            st.markdown(f"**{t('Then')}:** {plain(h.if_rejected)}")
        with st.expander(t("Evidence"), icon=":material/fact_check:"):
            _evidence_of([leaf for part in judged.parts for leaf in leaves(part)], evidence)


def _evidence_of(parts: Sequence[Verdict], evidence: Mapping[str, Evidence]) -> None:
    _figure_table(parts)
    for v in parts:
        if v.value is None:
            st.markdown(f"- {plain(metrics_in_words(v.sentence))}")
    used = dict.fromkeys(i for v in parts for i in v.used)
    passed = dict.fromkeys((p.evidence, p.reason) for v in parts for p in v.passed_over)
    if used:
        st.markdown(f"**{t('Used')}**")
        for i in used:
            words = metrics_in_words(figure_in_words(evidence[i]))
            st.markdown(f"- {kind_badge(evidence[i].kind)} {plain(words)}")
    if passed:
        st.markdown(f"**{t('Passed over')}**")
        for i, reason in passed:
            words = metrics_in_words(figure_in_words(evidence[i])) if i in evidence else i
            st.markdown(f"- {plain(words)}: *{plain(reason)}*")
    if not used and not passed:
        st.markdown(t("No evidence yet."))


def _figure_table(parts: Sequence[Verdict]) -> None:
    """Value, threshold, distance and n of every condition that was decided or at least seen."""
    rows = [
        {
            t("State"): t(v.state.value),
            t("Value"): quantity(v.value, v.unit),
            t("Threshold"): quantity(v.threshold, v.unit) if v.threshold is not None else "–",
            t("Room"): quantity(v.distance, v.unit) if v.distance is not None and v.unit != "bool" else "–",
            t("Requests or starts (n)"): f"{v.n:,}" if v.n else t("not stated"),
            t("Kind"): t(v.kind.value) if v.kind else "–",
            t("Because"): metrics_in_words(v.sentence),
        }
        for v in parts
        if v.value is not None
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index(t("State")), border="horizontal")  # it wraps the reasons
