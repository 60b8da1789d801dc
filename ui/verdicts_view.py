"""Verdicts: every hypothesis with what decided it, what was passed over, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from db.runs import Run
from planner.conditions import Evidence, Verdict
from planner.metrics import quantity
from services.next_runs import next_runs
from services.verdicts import CaseState, HypothesisVerdict, judge_hypotheses
from ui.cached import workspace
from ui.measure_next import measure_next_section
from ui.parts import kind_badge, plain, state_badge
from ui.run_link import in_order, run_link
from ui.text import t
from ui.views import figure_in_words, leaves
from ui.words import metrics_in_words

INVALID = "invalid run: "
EXACT = 1e-9  # of the threshold: what arithmetic leaves between two equal numbers


def verdicts_section(state: CaseState) -> None:
    """What to measure next, and one box a hypothesis: state, figures, runs, what follows, and its evidence."""
    measure_next_section(next_runs(workspace(), state))
    st.subheader(t("Verdicts"))
    verdicts = judge_hypotheses(state)
    evidence = figures_of(state, verdicts)
    runs = {r.sha256[:12]: r for r in state.runs}
    for judged in verdicts:
        with st.container(border=True):
            _box(state, judged, evidence, runs)


def figures_of(state: CaseState, verdicts: Sequence[HypothesisVerdict]) -> dict[str, Evidence]:
    """The figures that some verdicts name, by id."""
    parts = [leaf for v in verdicts for part in v.parts for leaf in leaves(part)]
    named = {i for v in parts for i in (*v.used, *(p.evidence for p in v.passed_over))}
    return state.evidence.by_id(named)


def _box(
    state: CaseState, judged: HypothesisVerdict, evidence: Mapping[str, Evidence], runs: Mapping[str, Run]
) -> None:
    h, verdict = judged.hypothesis, judged.verdict
    st.markdown(f"{state_badge(verdict.state)} **{h.id}** {plain(h.statement)}")
    badge = f"{kind_badge(verdict.kind)} " if verdict.kind else ""
    told = verdict.sentence.removesuffix(verdict.warning).rstrip()  # the warning stands below, once
    st.markdown(f"{badge}{plain(metrics_in_words(told))}")
    expected = verdict.expectation or h.expectation
    if h.warning and not verdict.decided:
        st.caption(f":material/warning: {plain(h.warning)}")
    elif expected:
        st.caption(t("Expectation: {what}", what=plain(expected)))
    parts = [leaf for part in judged.parts for leaf in leaves(part)]
    _figure_table(parts)
    if verdict.warning:
        st.warning(plain(verdict.warning), icon=":material/rule:")
    _spoiled(parts, evidence)
    _runs_of(state, parts, evidence, runs)
    failed = verdict.side == "fails"
    st.markdown(f"**{t('Then') if failed else t('If it fails')}:** {plain(h.if_rejected)}")
    with st.expander(t("Evidence"), icon=":material/fact_check:"):
        _evidence_of(parts, evidence)


def _figure_table(parts: Sequence[Verdict]) -> None:
    """State, value, threshold, distance and n of every condition at every load point that was seen."""
    frame = parts_frame(parts)
    if not frame.empty:
        figures = [t("Value"), t("Threshold"), t("Room")]
        frame[figures] = frame[figures].map(_unbroken)
        st.table(frame.set_index(t("Condition")), border="horizontal")


def _unbroken(figure: str) -> str:
    """A figure that is not broken before its unit; the share in brackets may go to the next line."""
    return figure.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}(", " (")


def parts_frame(parts: Sequence[Verdict]) -> pd.DataFrame:
    """One row a condition and load point that was seen."""
    rows = [
        {
            t("Condition"): metrics_in_words(v.sentence.partition(f": {_told(v)}")[0]),
            t("State"): t(v.state.value) + (f" ({t(v.side)})" if v.state == "near" and v.side else ""),
            t("Value"): quantity(v.value, v.unit),
            t("Threshold"): quantity(v.threshold, v.unit) if v.threshold is not None else "–",
            t("Room"): room_in_words(v),
            t("n"): sample_in_words(v),
            t("Kind"): t(v.kind.value) if v.kind else "–",
        }
        for v in parts
        if v.value is not None
    ]
    return pd.DataFrame(rows)


def _told(v: Verdict) -> str:
    """The state as a verdict's sentence has it, behind the condition."""
    return f"{v.side}, near" if v.state == "near" else v.state.value


def room_in_words(v: Verdict) -> str:
    """How far the value lies on the right side of the threshold, in units and as a share of it."""
    if v.distance is None or v.unit == "bool":
        return "–"
    at_the_limit = v.relative_distance is not None and abs(v.relative_distance) < EXACT
    room = 0.0 if at_the_limit else v.distance
    if v.relative_distance is None or at_the_limit:
        return quantity(room, v.unit)
    percent = v.relative_distance * 100
    return f"{quantity(room, v.unit)} ({percent:{'+,.0f' if abs(percent) >= 10 else '+.2g'}} %)"


def sample_in_words(v: Verdict) -> str:
    """The number of samples, what they are worth where that is less, and what is missing."""
    if v.n is None:
        return t("not stated")
    worth = v.effective_n is not None and v.effective_n < 0.95 * v.n
    found = t("{n}, worth {m}", n=f"{v.n:,}", m=f"{v.effective_n:,.0f}") if worth else f"{v.n:,}"
    return t("{n}; {k} more {what} needed", n=found, k=v.more.n, what=t(v.more.of)) if v.more else found


def _spoiled(parts: Sequence[Verdict], evidence: Mapping[str, Evidence]) -> None:
    for sentence in spoiled_in_words(parts, evidence):
        st.caption(f":material/report: {plain(sentence)}")


def spoiled_in_words(parts: Sequence[Verdict], evidence: Mapping[str, Evidence]) -> list[str]:
    """Which rule spoiled which figure of which run, a sentence a rule."""
    rules: dict[str, list[str]] = {}
    for i, reason in dict.fromkeys((p.evidence, p.reason) for v in parts for p in v.passed_over):
        if reason.startswith(INVALID):
            rules.setdefault(reason.removeprefix(INVALID), []).append(evidence[i].source if i in evidence else i)
    return [
        t("Left out as invalid ({runs}): {rule}", runs=", ".join(dict.fromkeys(sources)), rule=rule)
        for rule, sources in rules.items()
    ]


def _runs_of(
    state: CaseState, parts: Sequence[Verdict], evidence: Mapping[str, Evidence], runs: Mapping[str, Run]
) -> None:
    """A link to each run that the verdict rests on."""
    sources = (evidence[i].source for v in parts for i in v.used if i in evidence)
    links = [run_link(state.case.slug, run) for run in in_order(sources, runs)]
    if links:
        st.caption(f"{t('Runs')}: {' · '.join(links)}")


def _evidence_of(parts: Sequence[Verdict], evidence: Mapping[str, Evidence]) -> None:
    for v in parts:
        st.markdown(f"- {state_badge(v.state)} {plain(metrics_in_words(v.sentence))}")
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
