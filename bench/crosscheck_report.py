"""What the cross-check says: the figures of both clients under both definitions, and whether they agree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from bench.commands import PLAIN_WIDTH
from bundle.records import Record
from bundle.samples import PER_REQUEST, counted, steady_window, tokens_in
from planner.errors import ServerError
from planner.loads import LoadPoint

# Their name of a figure, and how far beyond A/A it may differ; None is only told.
METRICS: dict[str, tuple[str, str, float | None]] = {
    "output_tok_s": ("output_throughput", "tok/s", 0.03),
    "ttft_ms": ("mean_ttft_ms", "ms", 0.05),
    "tpot_ms": ("mean_tpot_ms", "ms", 0.05),
    "e2e_ms": ("mean_e2el_ms", "ms", None),
}


# Share of a pass that our client waited for a core, and of the cores that other programs took; as bundle/validity.py.
WAITED, OTHER_LOAD = 0.01, 0.1


class Row(NamedTuple):
    """One metric: every pass of both, the largest A/A, the median difference, and what is allowed, as shares."""

    metric: str
    unit: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    ours_by_our_definition: float
    a_a: float
    difference: float
    allowed: float | None

    @property
    def agrees(self) -> bool | None:
        """Within A/A and the slack; None where nothing is demanded."""
        return None if self.allowed is None else abs(self.difference) <= self.allowed


class Report(NamedTuple):
    """What both clients said about one load point of one server."""

    candidate: str
    point: LoadPoint
    server_version: str | None
    client_version: str
    prompt_tokens: tuple[float, float]
    rows: tuple[Row, ...]
    servers_ttft_ms: tuple[tuple[float, ...], tuple[float, ...]]
    waited_for_core: float | None
    other_load: float | None = None

    @property
    def agrees(self) -> bool:
        """Every metric that has a limit is within it."""
        return all(row.agrees is not False for row in self.rows)


def under_their_definitions(records: Sequence[Record]) -> dict[str, float]:
    """Figures of one pass as vLLM's client would count them; raises ServerError when a request failed."""
    failed = [r for r in records if r.outcome != "ok"]
    if failed or not records:
        why = f": {failed[0].error}" if failed else ""
        raise ServerError(f"{len(failed)} of {len(records)} requests of ours failed{why}.")
    start = min(r.scheduled_s for r in records)
    end = max(r.end_s or 0.0 for r in records)
    ttft = [(r.first_token_s or 0.0) - (r.dispatched_s or 0.0) for r in records]
    latency = [(r.last_token_s or 0.0) - (r.dispatched_s or 0.0) for r in records]
    tokens = [r.output_tokens or 0 for r in records]
    per_token = [(whole - first) / (n - 1) for whole, first, n in zip(latency, ttft, tokens, strict=True) if n > 1]
    return {
        "output_tok_s": sum(tokens) / (end - start),
        "ttft_ms": 1000 * fmean(ttft),
        "tpot_ms": 1000 * fmean(per_token) if per_token else 0.0,
        "e2e_ms": 1000 * fmean(latency),
    }


def under_our_definitions(records: Sequence[Record], point: LoadPoint) -> dict[str, float]:
    """The same figures as a bundle's summary defines them: steady window, means over requests scheduled inside."""
    window = steady_window(records, point)
    load = counted(records, window)
    latencies = [m for m in METRICS if m in PER_REQUEST]
    means = {m: fmean(v for r in load if (v := PER_REQUEST[m](r)) is not None) for m in latencies}
    return {"output_tok_s": tokens_in(records, window.begin_s, window.end_s) / window.length_s, **means}


def compare(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]], own: dict[str, float]) -> list[Row]:
    """Rows of a report from the figures of every pass, one more of ours; `own` are ours by our own definitions."""
    rows = []
    for metric, (_, unit, slack) in METRICS.items():
        a, b = [p[metric] for p in ours], [p[metric] for p in theirs]
        around = [(before, after) for before, after in pairwise(a)]
        noise = max(abs(after - before) / fmean((before, after)) for before, after in around)
        difference = median(v / fmean(pair) - 1 for v, pair in zip(b, around, strict=True))
        allowed = None if slack is None else noise + slack
        rows.append(Row(metric, unit, tuple(a), tuple(b), own[metric], noise, difference, allowed))
    return rows


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    rows = [r._asdict() | {"agrees": r.agrees} for r in report.rows]
    return report._asdict() | {"point": report.point.model_dump(mode="json"), "rows": rows, "agrees": report.agrees}


def print_report(report: Report) -> None:
    """The report as a table for a person, with what else must be known to read it."""
    print(f"{report.candidate} {report.server_version or ''}, {report.point.in_words()}, "
          f"{report.point.requests} requests a pass; vLLM's client {report.client_version}")  # fmt: skip
    print(f"Prompt tokens, mean: ours {report.prompt_tokens[0]:g}, theirs {report.prompt_tokens[1]:g}")
    table = Table("metric", "ours, our definition", "ours, theirs", "vLLM's client", "A/A", "difference", "allowed", "",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    words = {True: "agrees", False: "DIFFERS", None: ""}
    for r in report.rows:
        figures = (r.ours_by_our_definition, median(r.ours), median(r.theirs))
        table.add_row(f"{r.metric} ({r.unit})", *(f"{v:.4g}" for v in figures), f"{r.a_a:.1%}", f"{r.difference:+.1%}",
                      "" if r.allowed is None else f"{r.allowed:.1%}", words[r.agrees])  # fmt: skip
    (Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)).print(table)
    print("Medians over the passes; A/A is the largest difference between two neighbouring passes of ours.")
    if all(report.servers_ttft_ms):
        told = (f"{median(v):.4g}" for v in report.servers_ttft_ms)
        print("The server's own mean TTFT in ms, under ours and under theirs with its warm-up: " + ", ".join(told))
    if said := another_load(report):
        print(f"Another load on the machine: {said}. This says little about either client.")


def another_load(report: Report) -> str:
    """What else the machine did while our client measured; nothing where it kept to itself."""
    if report.other_load is not None and report.other_load > OTHER_LOAD:
        return f"other programs took {report.other_load:.0%} of its cores"
    if report.waited_for_core is not None and report.waited_for_core > WAITED:
        return f"our client waited for a core {report.waited_for_core:.0%} of a pass"
    return ""
