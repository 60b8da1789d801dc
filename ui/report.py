"""The report of a PoC for people without the app: everything that a meeting reads, in that order, from one case."""

from __future__ import annotations

from collections.abc import Iterator

from services.next_runs import next_runs
from services.quality import precision_warnings
from services.verdicts import CaseState, Users, headline, judge_hypotheses, users_served
from services.workspace import Workspace
from ui.next_words import next_rows
from ui.report_evidence import evidence_section, findings_section, hashes_section, reading_section
from ui.report_parts import Block, Mark, Paragraph, Report, Section, Table, marked, table_of
from ui.report_plan import question_section, ran_section
from ui.report_results import (
    capacity_section,
    comparison_section,
    figures_section,
    quality_section,
    rates_section,
    speed_section,
    theory_section,
)
from ui.report_verdicts import verdicts_section
from ui.text import t, tn
from ui.views import SEEN, of_older_versions, other_loads


def report_of(ws: Workspace, state: CaseState) -> Report:
    """The report of a case as it stands; the same state makes the same report."""
    asked = headline(state)
    parts = (
        question_section(ws, state),
        ran_section(state),
        verdicts_section(state),
        capacity_section(ws, state),
        speed_section(state),
        rates_section(state),
        comparison_section(state),
        quality_section(state),
        theory_section(ws, state),
        next_section(ws, state),
        figures_section(state),
        findings_section(state),
        evidence_section(ws, state),
        hashes_section(state),
    )
    said = Section(t("In short"), _in_short(state))
    report = Report(
        title=t("PoC report: {case}", case=state.case.title), headline=_headline(asked), under=_under(state),
        sections=tuple(s for s in (said, *parts) if s.blocks),
    )  # fmt: skip
    return report._replace(sections=(*report.sections, reading_section(report))) if report.marks() else report


def _headline(asked: Users) -> Paragraph:
    return Paragraph(asked.sentence, marked(asked.kind))


def _under(state: CaseState) -> str:
    version = t("requirements version {n}", n=state.version.n) if state.version else t("no requirements yet")
    plan = t("plan {sha}", sha=state.plan.sha256()[:12]) if state.plan else t("no plan yet")
    return t("As it stood on {day}: {what}.", day=state.context.now.date().isoformat(), what=f"{version}, {plan}")


def _in_short(state: CaseState) -> tuple[Block, ...]:
    """What a reader must know before any figure: other candidates, open verdicts, what decides nothing."""
    found: list[Block] = [Paragraph(finding, tone="warning") for finding in state.findings]
    if state.requirements is None or state.plan is None:
        return (*found, Paragraph(t("There is no plan yet, so there is nothing to judge.")))
    said = headline(state)
    others = (users_served(state, c.id) for c in state.plan.candidates)
    found += [Paragraph(o.sentence, marked(o.kind)) for o in others if o != said]
    found += [Paragraph(warning, tone="warning") for warning in precision_warnings(state)]
    found += _hypotheses(state)
    if state.plan_is_stale:
        found.append(Paragraph(t("The requirements changed after the plan was made."), tone="warning"))
    seen = {f.kind.value for f in state.evidence.facts if f.kind in SEEN}
    if "simulated" in seen:
        text = t("Simulated figures come from the emulator. They test the instrument and decide nothing.")
        found.append(Paragraph(text, tone="warning"))
    if "measured" not in seen:
        found.append(Paragraph(t("Nothing was measured here yet: what is shown comes from elsewhere."), tone="warning"))
    if elsewhere := other_loads(state):
        text = t("Left out of the charts, since taken at another load or length than this plan's: figures of {points}.",
                 points=", ".join(elsewhere))  # fmt: skip
        found.append(Paragraph(text, tone="warning"))
    if older := of_older_versions(state):
        text = t("Left out of the charts: older figures of {who}, under another version or other settings.",
                 who=", ".join(older))  # fmt: skip
        found.append(Paragraph(text, tone="note"))
    return tuple(found)


def _hypotheses(state: CaseState) -> Iterator[Block]:
    """How many hypotheses are in which state, and each with its own in a line."""
    judged = judge_hypotheses(state)
    states = [v.verdict.state.value for v in judged]
    if not judged:
        return
    counts = ", ".join(f"{t(s)} {states.count(s)}" for s in dict.fromkeys(states))
    yield Paragraph(tn(len(states), "{n} hypothesis: {counts}.", "{n} hypotheses: {counts}.", counts=counts))
    rows = tuple(
        (
            v.hypothesis.id, Mark(v.verdict.state.value), v.hypothesis.statement,
            Mark(v.verdict.kind.value) if v.verdict.kind else "–", v.hypothesis.if_rejected,
        )
        for v in judged
    )  # fmt: skip
    yield Table(("", t("State"), t("Hypothesis"), t("Known by"), t("What follows if it fails")), rows)


def next_section(ws: Workspace, state: CaseState) -> Section:
    """The runs that could still change the decision."""
    if state.plan is None:
        return Section(t("What to measure next"), ())
    runs = next_runs(ws, state)
    if not runs:
        nothing = Paragraph(t("Nothing that could be measured would change the decision."))
        return Section(t("What to measure next"), (nothing,))
    return Section(t("What to measure next"), (table_of(next_rows(runs)),))
