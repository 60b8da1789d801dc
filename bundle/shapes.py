"""Metrics that only some load shapes have: gaps beside long prompts, the price of a JSON schema, a quality set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bundle.quality import Judged, items_of
from bundle.records import Record
from bundle.samples import gaps
from planner.statistics import percentile, share_interval


class Disturbance(NamedTuple):
    """The victims' gaps between chunks in ms, before the long prompts came and while they were on the server."""

    quiet: list[float]
    disturbed: list[float]


def disturbance(records: Sequence[Record]) -> Disturbance:
    """Part the victims' gaps by the cohort `aggressor`; all are quiet when none was sent.

    A gap counts as disturbed when any of it lies between the first dispatch and the last end of an aggressor.
    """
    sent = [r for r in records if r.cohort == "aggressor" and r.dispatched_s is not None]
    begin = min((r.dispatched_s or 0.0 for r in sent), default=float("inf"))
    end = max((r.end_s if r.end_s is not None else float("inf") for r in sent), default=float("inf"))
    found = [g for r in records if r.cohort == "victim" and r.outcome == "ok" for g in gaps(r)]
    return Disturbance(
        quiet=[g.ms for g in found if g.end_s <= begin],
        disturbed=[g.ms for g in found if g.end_s > begin and g.end_s - g.ms / 1000 < end],
    )


class Figured(NamedTuple):
    """One figure with its sample size and, for a share, its 95 % Clopper-Pearson interval and the set's items."""

    metric: str
    value: float
    n: int
    interval: tuple[float, float] | None = None
    items: tuple[tuple[str, bool], ...] = ()


def _share(metric: str, hits: Sequence[bool], items: tuple[tuple[str, bool], ...] = ()) -> Iterator[Figured]:
    if hits:
        k, n = sum(hits), len(hits)
        yield Figured(metric, k / n, n, share_interval(k, n), items)


def _ms_per_token(r: Record) -> float | None:
    """From dispatch to the end over the output tokens, in ms.

    Not tpot_ms: under a grammar an engine may hold tokens back (llama-server sent 39 in the last 12 chunks), so that
    neither their times nor the first chunk's count are known.
    """
    if r.end_s is None or r.dispatched_s is None or not r.output_tokens:
        return None
    return (r.end_s - r.dispatched_s) * 1000 / r.output_tokens


def figures(records: Sequence[Record], plain: Sequence[Record], judged: Sequence[Judged]) -> Iterator[Figured]:
    """What a repeat gives beside the common metrics; `plain` are the records of its pair without a JSON schema."""
    yield from _share("pass_rate", [j.passed for j in judged], items_of(judged))
    answered = [r for r in records if r.is_load and r.json_valid is not None]
    yield from _share("json_valid", [bool(r.json_valid) for r in answered])
    speed = {r.request: t for r in plain if r.is_load and r.outcome == "ok" and (t := _ms_per_token(r))}
    ratios = [t / speed[r.request] for r in answered if r.request in speed and (t := _ms_per_token(r))]
    if ratios:
        yield Figured("structured_cost", percentile(ratios, 50), len(ratios))
