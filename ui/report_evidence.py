"""The end of a report: the evidence that it rests on with ids and hashes, and how its words are to be read."""

from __future__ import annotations

from collections.abc import Iterator

from planner.conditions import Evidence, Verdict
from planner.metrics import METRICS
from services.results import results_of
from services.verdicts import CaseState, judge_hypotheses
from services.workspace import Workspace
from ui.parts import KINDS
from ui.report_parts import Cell, Mark, Paragraph, Report, Section, Table
from ui.text import t
from ui.views import TABLE, figure_in_words, figure_title, leaves
from ui.words import metrics_in_words

# How each mark is to be read. Only those that a report shows stand in it.
MEANINGS = {
    "measured": "A real server answered Flipline's instrument. It decides.",
    "observed": "What users really did. It decides what is asked of demand.",
    "imported": "Measured by others, by their rules. It decides only where nothing was measured here.",
    "entered": "Typed in by a person. It decides only where nothing better is known.",
    "documented": "A fact of the catalogue with its source. It decides what only the makers can say.",
    "engine-alone": "The engine's own bench, without server, queue and HTTP. An expectation; it decides nothing.",
    "simulated": "Answered by the emulator to test the instrument. It decides nothing.",
    "planning": "Computed, with the losses that are usual. An expectation; it decides nothing.",
    "coverage": "Computed limit, with the experts counted that a step reads. It decides nothing.",
    "bound": "Computed limit of the memory bandwidth: no server is faster. It decides nothing.",
    "holds": "What is known shows that the condition is met.",
    "fails": "What is known shows that the condition is not met.",
    "near": "Decided, but within the stated margin of the limit.",
    "undecided": "There is evidence, and it is too little at this sample size.",
    "unmeasured": "It could be measured, and nobody did.",
    "unmeasurable": "No figure of this plan could decide it.",
    "invalid run": "All there is comes from runs that broke a rule of validity.",
    "expired": "What is known is too old, or was taken under another contract.",
    "conflicting": "Valid figures of the same standing disagree.",
}  # fmt: skip


def evidence_section(ws: Workspace, state: CaseState) -> Section:
    """Every figure that a verdict or an operating point rests on, by its id."""
    known = {e.id: e for e in state.evidence}
    used = [known[i] for i in dict.fromkeys(_used(ws, state)) if i in known]
    rows = tuple((e.id, _words(e), Mark(e.kind.value), e.at.date().isoformat()) for e in used)
    table = Table((t("Id"), t("Figure"), t("Kind"), t("When")), rows)
    return Section(t("Evidence used"), (table,) if rows else (), appendix=True)


def _words(e: Evidence) -> str:
    """The figure as a line; what was noted of a run's stands among its findings."""
    return metrics_in_words(figure_in_words(e.model_copy(update={"note": ""}) if e.start else e))


def _used(ws: Workspace, state: CaseState) -> Iterator[str]:
    for judged in judge_hypotheses(state):
        yield from (i for part in judged.parts for leaf in leaves(part) for i in leaf.used)
    for one in results_of(ws, state):
        for knee in one.knees:
            yield from (i for step in (knee.at, knee.fails_at) if step for v in _all(step.verdict) for i in v.used)


def _all(verdict: Verdict) -> Iterator[Verdict]:
    yield verdict
    for part in verdict.parts:
        yield from _all(part)


def findings_section(state: CaseState) -> Section:
    """What the rules of validity and the instrument had to say about each run."""
    found: dict[str, list[str]] = {}
    for run in state.runs:
        for finding in run.findings:
            found.setdefault(finding, []).append(f"{run.candidate} {run.stage}{run.start}")
    rows = tuple((finding, ", ".join(where)) for finding, where in found.items())
    table = Table((t("Finding"), t("Candidate, stage and start")), rows)
    return Section(t("Findings of the runs"), (table,) if rows else (), appendix=True)


def hashes_section(state: CaseState) -> Section:
    """The SHA-256 of requirements, plan and bundles: whoever holds the files can check them."""
    rows: list[tuple[Cell, ...]] = []
    if state.version:
        rows.append((t("Requirements version {n}", n=state.version.n), state.version.sha256))
    if state.plan:
        rows.append((t("Plan"), state.plan.sha256()))
    for run in state.runs:
        name = t("{who} stage {stage} start {n}", who=run.candidate, stage=run.stage, n=run.start)
        rows.append((t("Bundle of {run}", run=name), run.sha256))
    table = Table((t("What"), t("SHA-256")), tuple(rows))
    return Section(t("Hashes"), (table,) if rows else (), appendix=True)


def reading_section(report: Report) -> Section:
    """What the marks that this report shows mean, and how its metrics are defined."""
    marks = [m for m in report.marks() if m.key in MEANINGS]
    marks.sort(key=lambda m: (m.key not in KINDS, list(MEANINGS).index(m.key)))
    metrics = dict.fromkeys(m for m, _ in TABLE)
    blocks = (
        Table((t("Word"), t("Meaning")), tuple((m, t(MEANINGS[m.key])) for m in marks)),
        Paragraph(t("Ranges: smallest and largest over starts and repeats; n counts requests."), tone="note"),
        Table((t("Metric"), t("Definition")), tuple((figure_title(m), t(METRICS[m].definition)) for m in metrics)),
    )
    return Section(t("How to read it"), blocks, appendix=True)
