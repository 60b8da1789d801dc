"""The first part of a report: what was asked, what is required, and what ran on which machine under which contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.condition_line import format_test
from planner.conditions import STANDING, Evidence, Kind
from planner.poc import Plan
from planner.requirements import Requirements
from services.comparison import comparison, pairs
from services.gpu_request import question
from services.plans import unstated_fields
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.report_parts import Block, Cell, Heading, Mark, Paragraph, Section, Table
from ui.text import t
from ui.views import SEEN
from ui.words import metrics_in_words

NOT_STATED = "–"
# What the contract states of the server and machine that were really there, as columns.
OBSERVED = (
    ("engine_version_reported", "Version"), ("gpu", "Device"), ("gpu_count", "Devices"), ("driver", "Driver"),
    ("runtime", "Runtime"), ("os", "OS"), ("cpu", "CPU"), ("load_generator", "Load from"),
)  # fmt: skip


def question_section(ws: Workspace, state: CaseState) -> Section:
    """The question of the plan, the requirements in short, and the service levels that everything is judged by."""
    r, plan = state.requirements, state.plan
    blocks: list[Block] = []
    if r and plan:
        blocks.append(Paragraph(question(r, plan), tone="result"))
    if r:
        blocks.append(Table((t("Required"), ""), tuple(_required(ws, r))))
    if plan and plan.service_levels:
        levels = metrics_in_words("; ".join(map(format_test, plan.service_levels)))
        blocks.append(Paragraph(t("All levels together: {levels}.", levels=levels)))
    return Section(t("Question and requirements"), tuple(blocks))


def _required(ws: Workspace, r: Requirements) -> Iterator[tuple[Cell, ...]]:
    machine, model = r.hardware[0], r.favourite_plan
    yield (
        t("Users at the peak"),
        t("{low:,} to {high:,} at once; requests a minute from each: {n:g}", low=r.peak_users_min,
          high=r.peak_users_max, n=r.requests_per_user_per_min),
    )  # fmt: skip
    yield (
        t("Speed per user"),
        t("{x:g} tok/s promised at p{p}, {y:g} tok/s aimed at", x=r.user_tok_s_promise, p=r.user_tok_s_percentile,
          y=r.user_tok_s_target),
    )  # fmt: skip
    yield t("First token"), t("within {x:g} s at p{p}", x=r.ttft_s, p=r.ttft_percentile)
    if r.completion_s is not None:
        tokens = r.completion_answer_tokens or r.output_tokens
        yield t("Answer complete"), t("within {x:g} s for {n:,} tokens", x=r.completion_s, n=tokens)
    yield (
        t("Lengths"),
        t("{i:,} tokens in, {o:,} out, context {c:,}", i=r.input_tokens, o=r.output_tokens, c=r.context_tokens),
    )
    yield t("Model"), f"{model.model}, {model.quantization}, {t('KV cache')} {model.kv_cache_dtype}"
    yield t("Machine"), f"{machine.count} x {ws.catalog.gpu(machine.gpu).name}, {machine.os}"


def ran_section(state: CaseState) -> Section:
    """Candidates, what was really there, what their contracts allow, each run, and what came from elsewhere."""
    plan = state.plan
    if plan is None:
        return Section(t("What ran"), ())
    blocks: list[Block] = [_candidates(plan), *_there(state), Heading(t("Contract"))]
    blocks += [Paragraph(sentence) for sentence in _contract_words(plan)]
    for left, right in pairs(state):
        parity = comparison(state, left, right).parity
        allowed = t("a side states no contract") if parity is None else t(parity.state)
        named = "; ".join(map(str, parity.differences)) if parity else ""
        who = t("{a} against {b}", a=left, b=right)
        blocks.append(Paragraph(f"{who}: {allowed}{': ' if named else ''}{named}."))
    return Section(t("What ran"), (*blocks, *_runs(state), *_elsewhere(state)))


def _candidates(plan: Plan) -> Table:
    columns = (
        ("engine_version", t("Version asked")), ("weight_format", t("Weights")), ("quantization", t("Precision")),
        ("kv_cache_dtype", t("KV cache")), ("max_num_seqs", t("Batch limit")), ("max_model_len", t("Context")),
    )  # fmt: skip
    rows = tuple(
        (c.id, t(c.role), c.engine, *(c.contract.get(field) or NOT_STATED for field, _ in columns))
        for c in plan.candidates
    )
    return Table((t("Candidate"), t("Role"), t("Engine"), *(words for _, words in columns)), rows)


def _there(state: CaseState) -> Iterator[Block]:
    """What server and machine really were, a row for each that was seen."""
    rows: dict[tuple[Cell, ...], None] = {}
    for e in state.evidence:
        if e.candidate and e.kind in SEEN and e.contract in state.context.contracts:
            stated = state.context.contracts[e.contract].stated()
            row = tuple(stated.get(field, NOT_STATED) for field, _ in OBSERVED)
            rows[(e.candidate, Mark(e.kind.value), *row)] = None
    if rows:
        yield Heading(t("What was there"))
        ordered = tuple(sorted(rows, key=str))
        yield Table((t("Candidate"), t("Kind"), *(t(words) for _, words in OBSERVED)), ordered, wide=True)


def _contract_words(plan: Plan) -> Iterator[str]:
    declared = ", ".join(plan.declared_differences)
    yield t("Differences declared beforehand: {fields}.", fields=declared or t("none"))
    if unstated := unstated_fields(plan):
        yield t("Not stated, and so equal to nothing: {fields}.", fields=", ".join(unstated))


def _runs(state: CaseState) -> Iterator[Block]:
    """Every bundle with its hash, how it ended, and how many of its figures count; what was found stands at the end."""
    yield Heading(t("Runs"))
    if not state.runs:
        yield Paragraph(t("No run was taken in."))
        return
    of_run: dict[str, list[Evidence]] = {}
    for e in state.evidence:
        of_run.setdefault(e.source, []).append(e)
    head = (
        t("Candidate"), t("Stage"), t("Start"), t("Kind"), t("Status"), t("When (UTC)"), t("Bundle"),
        t("Figures that count"), t("Findings"),
    )  # fmt: skip
    rows = tuple(
        (
            run.candidate, run.stage, str(run.start), Mark(run.kind.value), t(run.status),
            run.created_at[:16].replace("T", " "), run.sha256[:12], _validity(of_run.get(run.sha256[:12], ())),
            f"{len(run.findings):,}",
        )
        for run in state.runs
    )  # fmt: skip
    yield Table(head, rows, wide=True)


def _validity(figures: Sequence[Evidence]) -> str:
    """How many figures of a run count, and which rules spoiled the others."""
    spoiled = dict.fromkeys(rule for e in figures for rule in e.spoiled_by)
    counted = t("{n} of {m}", n=sum(e.valid for e in figures), m=len(figures))
    return f"{counted}: {'; '.join(spoiled)}" if spoiled else counted


def _elsewhere(state: CaseState) -> Iterator[Block]:
    """Figures that no run of this case gave: where they come from, how they are known, how many."""
    runs = {run.sha256[:12] for run in state.runs}
    found: dict[tuple[str, str, Kind], int] = {}
    notes: dict[tuple[str, str, Kind], str] = {}
    for e in state.evidence:
        if e.kind in STANDING and e.source not in runs:
            key = (e.candidate or NOT_STATED, e.source, e.kind)
            found[key] = found.get(key, 0) + 1
            notes.setdefault(key, e.note)
    if found:
        yield Heading(t("From elsewhere"))
        yield Table(
            (t("Candidate"), t("Source"), t("Kind"), t("Figures"), t("Note")), tuple(_source_rows(found, notes))
        )


def _source_rows(
    found: Mapping[tuple[str, str, Kind], int], notes: Mapping[tuple[str, str, Kind], str]
) -> Iterator[tuple[Cell, ...]]:
    for key in sorted(found, key=str):
        candidate, source, kind = key
        yield candidate, source, Mark(kind.value), f"{found[key]:,}", notes[key] or NOT_STATED
