"""Percentiles and means over the requests of one repeat, with counted exceedances and their worth in samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundle.evidence_maker import EvidenceMaker
from bundle.records import Record
from bundle.run_data import RepeatData
from bundle.samples import PER_REQUEST, counted, cut_off, itl_ms, mean_in_flight, waves
from planner.conditions import Condition, Evidence, Exceedance
from planner.metrics import PERCENTILES
from planner.statistics import effective_n, percentile

# What a failed request counts as: it never came. One hour stands for never, since a stored figure is finite.
NEVER_MS = 3_600_000.0
NEVER = dict.fromkeys(("ttft_ms", "ttft_service_ms", "tpot_ms", "e2e_ms"), NEVER_MS) | {"user_tok_s": 0.0}


def of_requests(data: RepeatData, maker: EvidenceMaker, conditions: Sequence[Condition]) -> Iterator[Evidence]:
    """Every latency and speed of the requests of one repeat."""
    load = counted(data.records, data.window)
    in_flight = crowd(data, load)
    block = waves(load, in_flight)
    for metric, of in PER_REQUEST.items():
        known = [(v, block[r.request]) for r in load if r.outcome == "ok" and (v := of(r)) is not None]
        never = [(NEVER[metric], block[r.request]) for r in load if r.outcome == "failed"]
        values = [v for v, _ in known + never]
        if not values:
            continue
        worth = effective_n([v for v, _ in known], [b for _, b in known]) * len(values) / len(known) if known else 0.0
        waited = _waited_in_vain(data) if metric in ("ttft_ms", "e2e_ms") else []
        yield from statistics(data, maker, conditions, metric, values, worth or float(len(values)), waited)
    gaps = [g for r in load if r.outcome == "ok" for g in itl_ms(r)]
    if gaps:
        steps = len(gaps) / max(1.0, in_flight)
        yield from statistics(data, maker, conditions, "itl_ms", gaps, steps, [])
        yield maker.make("itl_ms", max(gaps), "max", data, n=len(gaps))


def crowd(data: RepeatData, load: Sequence[Record]) -> float:
    """Requests in flight on average; where no record says when it was dispatched, what the load point states."""
    timeless = len(load) > 1 and len({r.dispatched_s for r in load}) == 1
    return float(data.point.in_flight) if timeless and data.point.in_flight else mean_in_flight(load)


def _waited_in_vain(data: RepeatData) -> list[float]:
    """How long, in ms, requests that we cut off had already waited for a first token."""
    cut = [r for r in cut_off(data.records, data.window) if r.first_token_s is None and r.end_s is not None]
    return [((r.end_s or 0.0) - r.scheduled_s) * 1000 for r in cut]


def statistics(
    data: RepeatData, maker: EvidenceMaker, conditions: Sequence[Condition], metric: str, values: Sequence[float],
    effective: float, waited: Sequence[float],
) -> Iterator[Evidence]:  # fmt: skip
    """Percentiles and mean with counted exceedances.

    A request that we cut off after it had waited past every asked threshold counts as one that never came; the others
    that we cut off are not judged.
    """
    for statistic in (*PERCENTILES, "mean"):
        asked = _asked(conditions, metric, statistic)
        limit = max((t for t, op in asked if op == "<="), default=None)
        in_vain = sum(w > limit for w in waited) if limit is not None else 0
        all_values = [*values, *([NEVER.get(metric, NEVER_MS)] * in_vain)]
        n = len(all_values)
        value = sum(all_values) / n if statistic == "mean" else percentile(all_values, float(statistic[1:]))
        beyond = tuple(
            Exceedance(
                threshold=t,
                comparison="<=" if op == "<=" else ">=",
                beyond=sum((v > t) if op == "<=" else (v < t) for v in all_values),
            )
            for t, op in asked
        )
        worth = min(float(n), effective + in_vain)
        yield maker.make(metric, value, statistic, data, n=n, effective_n=worth, exceedances=beyond)


def _asked(conditions: Sequence[Condition], metric: str, statistic: str) -> list[tuple[float, str]]:
    """Thresholds that conditions ask about, with their comparison."""
    return sorted(
        {
            (c.threshold, c.comparison)
            for c in conditions
            if c.metric == metric and c.statistic == statistic and c.comparison in ("<=", ">=") and not c.over
        }
    )
