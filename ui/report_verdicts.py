"""The verdicts of a report: every hypothesis with what decided it, how far it is from its limit, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from db.runs import Run
from planner.conditions import Evidence
from services.verdicts import CaseState, HypothesisVerdict, judge_hypotheses
from ui.report_parts import Block, Heading, Mark, Paragraph, Section, marked, table_of
from ui.run_link import in_order, run_words
from ui.text import t
from ui.verdicts_view import figures_of, parts_frame, spoiled_in_words
from ui.views import leaves
from ui.words import metrics_in_words


def verdicts_section(state: CaseState) -> Section:
    """A heading, a sentence, the figures and the consequence of each hypothesis, in the order of the plan."""
    verdicts = judge_hypotheses(state)
    evidence = figures_of(state, verdicts)
    runs = {r.sha256[:12]: r for r in state.runs}
    blocks = (b for judged in verdicts for b in _hypothesis(judged, evidence, runs))
    return Section(t("Verdicts"), tuple(blocks))


def _hypothesis(
    judged: HypothesisVerdict, evidence: Mapping[str, Evidence], runs: Mapping[str, Run]
) -> Iterator[Block]:  # fmt: skip
    h, verdict = judged.hypothesis, judged.verdict
    yield Heading(f"{h.id}: {h.statement}", (Mark(verdict.state.value),))
    told = verdict.sentence.removesuffix(verdict.warning).rstrip()
    yield Paragraph(metrics_in_words(told), marked(verdict.kind.value if verdict.kind else ""))
    expected = h.warning if h.warning and not verdict.decided else verdict.expectation or h.expectation
    if expected:
        yield Paragraph(t("Expectation: {what}", what=expected), tone="note")
    parts = [leaf for part in judged.parts for leaf in leaves(part)]
    frame = parts_frame(parts)
    if not frame.empty:
        yield table_of(frame, marks=(t("State"), t("Kind")))
    if verdict.warning:
        yield Paragraph(verdict.warning, tone="warning")
    yield from (Paragraph(sentence, tone="note") for sentence in spoiled_in_words(parts, evidence))
    used = (evidence[i].source for v in parts for i in v.used if i in evidence)
    if named := [run_words(run) for run in in_order(used, runs)]:
        yield Paragraph(t("Runs: {runs}", runs=" · ".join(named)), tone="note")
    then = t("Then") if verdict.side == "fails" else t("If it fails")
    yield Paragraph(f"{then}: {h.if_rejected}")
