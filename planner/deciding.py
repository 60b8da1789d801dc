"""From chosen pieces of evidence to holds, fails or undecided: one rule per sort of metric.

Percentiles and shares: exact one-sided binomial test at 95 %, both ways, failures beyond. Means, rates and ratios:
over engine starts, min to max under five, else a t interval. Outcomes: the worst start. Demand: a window long enough.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from planner.conditions import Condition, Evidence, Kind, More
from planner.metrics import Level, quantity
from planner.observed_days import observed_days
from planner.statistics import (
    binomial_at_least,
    binomial_at_most,
    mean_interval,
    median_coverage,
    percentile,
    samples_needed,
    share_interval,
)

MIN_STARTS = 3
SHARES = frozenset({"goodput", "error_share", "completed_share"})
OUTCOMES = frozenset(
    {"started", "oom", "restarts", "preemptions", "waiting", "running", "kv_use", "prefix_hit", "startup_s"}
)
AS_STATED = frozenset({Kind.IMPORTED, Kind.ENTERED, Kind.DOCUMENTED})
Side = Literal["holds", "fails"]


class Decision(NamedTuple):
    """What the pieces say: side (None: undecided), representative value, and the words that justify it.

    `more` is what would decide an undecided one, where that is known; `contradicts`: starts decide alone, and differ.
    """

    side: Side | None
    value: float
    because: str
    n: int | None = None
    effective_n: float | None = None
    interval: tuple[float, float] | None = None
    more: More | None = None
    contradicts: bool = False


def decide(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    """Decide one condition at one load point from pieces of equal standing.

    Raises ValueError for an empty sequence.
    """
    if not pieces:
        raise ValueError("nothing to decide on")
    if condition.of.level is Level.DEMAND:
        seen = observed_days(condition.statistic, condition.window_days or 1, pieces)
        side = _side(condition, seen.value) if seen.enough else None
        return Decision(side, seen.value, seen.because, more=seen.more)
    if condition.of.spread_of:
        return _spread(condition, list(per_start(pieces).values()))
    if all(p.kind in AS_STATED for p in pieces) and not _counted(condition, pieces):
        return _as_stated(condition, pieces)
    if condition.statistic.startswith("p"):
        return _percentile(condition, pieces)
    if condition.metric in SHARES:
        return _share(condition, pieces)
    if condition.metric == "pass_rate":
        return _of_a_set(condition, pieces)
    if condition.metric in OUTCOMES or condition.statistic == "max" or condition.of.level is Level.STATIC:
        return _worst(condition, pieces)
    return over_starts(condition, list(per_start(pieces).values()), all(p.kind is Kind.OBSERVED for p in pieces))


def per_start(pieces: Sequence[Evidence]) -> dict[str, float]:
    """Mean value per engine start: repeats inside one start are not independent of it."""
    values: dict[str, list[float]] = defaultdict(list)
    for p in pieces:
        values[p.source].append(p.value)
    return {source: math.fsum(v) / len(v) for source, v in sorted(values.items())}


def allowed_share(condition: Condition) -> float:
    """Share of samples that may lie beyond the threshold: 5 % for `p95 <=`, and for `p5 >=`."""
    q = int(condition.statistic.removeprefix("p")) / 100
    return 1 - q if condition.comparison == "<=" else q


def _counted(condition: Condition, pieces: Sequence[Evidence]) -> bool:
    return condition.statistic.startswith("p") and all(
        p.n and p.beyond(condition.threshold, condition.comparison) is not None for p in pieces
    )


def _side(condition: Condition, value: float) -> Side:
    return "holds" if condition.holds_for(value) else "fails"


def _as_stated(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    values = [p.value for p in pieces]
    value = percentile(values, 50)
    sides = {_side(condition, v) for v in values}
    kind = pieces[0].kind.value
    words = {Kind.DOCUMENTED: "as documented"}.get(pieces[0].kind, f"as {kind}")
    who = "; ".join(sorted({p.note or p.source for p in pieces}))
    n = sum(p.n for p in pieces if p.n) or None
    if len(sides) > 1:
        return Decision(None, value, f"{words}, the values disagree ({who})", n, None, (min(values), max(values)))
    counted = f", n = {n}" if n else ", n not stated" if pieces[0].kind is not Kind.DOCUMENTED else ""
    return Decision(_side(condition, value), value, f"{words}{counted} ({who})", n, None, (min(values), max(values)))


def _percentile(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    value = percentile([p.value for p in pieces], 50)
    interval = (min(p.value for p in pieces), max(p.value for p in pieces))
    counts = [(p, p.beyond(condition.threshold, condition.comparison)) for p in pieces if p.n]
    if not counts or any(k is None for _, k in counts):
        uncounted = "requests beyond this threshold were not counted; summarise the bundle again"
        return _implied(condition, [p for p, _ in counts]) or Decision(None, value, uncounted, None, None, interval)
    share = allowed_share(condition)
    by_source: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for p, k in counts:
        by_source[p.source].append((k or 0, p.n or 0, p.effective_n or float(p.n or 0)))
    everything = [c for group in by_source.values() for c in group]
    side, beyond, n, effective = _test(everything, share)
    alone = {_test(group, share)[0] for group in by_source.values()} - {None}
    starts = f"{len(by_source)} start{'s' if len(by_source) > 1 else ''}"
    words = f"{beyond} of {n} beyond, {share:.0%} allowed, {starts}"
    if effective < n * 0.95:
        words += f", worth {effective:.0f} independent samples"
    if len(alone | {side} - {None}) > 1:
        return _contradicting(value, words, n, effective, interval)
    more = _more(beyond * effective / n, effective, share) if side is None else None
    return Decision(side, value, words + _in_words(more), n, effective, interval, more)


def _implied(condition: Condition, pieces: Sequence[Evidence]) -> Decision | None:
    """What limits that were counted say of one that was not: what keeps a tighter one keeps it, and the reverse."""
    of_each = [{x.threshold for x in p.exceedances if x.comparison == condition.comparison} for p in pieces]
    limits = set.intersection(*of_each) if of_each else set()
    for limit in sorted(limits, key=lambda x: (abs(x - condition.threshold), x)):
        tighter = (limit < condition.threshold) == (condition.comparison == "<=")
        found = _percentile(condition.model_copy(update={"threshold": limit}), pieces)
        if found.side == ("holds" if tighter else "fails"):
            stricter = f"by {quantity(limit, condition.unit)}, which is {'tighter' if tighter else 'looser'}"
            return found._replace(because=f"{stricter}: {found.because}")
    return None


def _test(counts: Sequence[tuple[int, int, float]], share: float) -> tuple[Side | None, int, int, float]:
    """Pool (beyond, n, effective n) and test both ways; both counts are shrunk to the effective sample size."""
    beyond = sum(k for k, _, _ in counts)
    n = sum(c for _, c, _ in counts)
    effective = math.fsum(e for _, _, e in counts)
    shrink = min(1.0, effective / n)
    size = math.floor(n * shrink + 1e-9)
    if binomial_at_most(math.ceil(beyond * shrink - 1e-9), size, share) <= 0.05:
        return "holds", beyond, n, effective
    if binomial_at_least(math.floor(beyond * shrink + 1e-9), size, share) <= 0.05:
        return "fails", beyond, n, effective
    return None, beyond, n, effective


def _contradicting(
    value: float, words: str, n: int, effective: float, interval: tuple[float, float]
) -> Decision:  # fmt: skip
    return Decision(None, value, f"starts contradict each other: {words}", n, effective, interval, contradicts=True)


def _more(beyond: float, effective: float, share: float, of: Literal["requests", "items"] = "requests") -> More:
    return More(n=math.ceil(samples_needed(share, math.ceil(beyond - 1e-9)) - effective), of=of)


def _in_words(more: More | None) -> str:
    return f"; at least {more.n} more {more.of} without a further one beyond would decide it" if more else ""


def _share(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    """Test a share of requests as a percentile is tested; a share of exactly all or none is never proved."""
    limit = condition.threshold
    if condition.comparison not in ("<=", ">=") or not all(p.n for p in pieces) or not 0 <= limit <= 1:
        return _worst(condition, pieces)
    good = condition.comparison == ">="
    allowed = 1 - limit if good else limit
    by_source: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for p in pieces:
        n = p.n or 0
        bad = round((1 - p.value if good else p.value) * n)
        by_source[p.source].append((bad, n, p.effective_n or float(n)))
    side, bad, n, effective = _test([c for group in by_source.values() for c in group], allowed)
    alone = {_test(group, allowed)[0] for group in by_source.values()} - {None}
    values = [p.value for p in pieces]
    interval = (min(values), max(values))
    value = 1 - bad / n if good else bad / n
    words = f"{bad} of {n} missed, {allowed:.3g} allowed"
    if len(alone | {side} - {None}) > 1:
        return _contradicting(value, words, n, effective, interval)
    more = _more(bad * effective / n, effective, allowed) if side is None and 0 < allowed < 1 else None
    if side is None and more is None:
        words += "; that none ever does cannot be proved: ask for a share, or 'is'"
    return Decision(side, value, words + _in_words(more), n, effective, interval, more)


def _of_a_set(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    """Test the share of a set that passes: the items are the sample, since every start answers the same ones."""
    n, limit = max(p.n or 0 for p in pieces), condition.threshold
    starts = per_start(pieces)
    value = math.fsum(starts.values()) / len(starts)
    if not n or condition.comparison not in ("<=", ">=") or not 0 <= limit <= 1:
        return _worst(condition, pieces)
    good = condition.comparison == ">="
    bad, allowed = (n * (1 - value), 1 - limit) if good else (n * value, limit)
    counted = round(bad)
    side, *_ = _test([(counted, n, float(n))], allowed)
    interval = share_interval(n - counted if good else counted, n)
    shown = f"{quantity(interval[0], 'share')} to {quantity(interval[1], 'share')}"
    words = f"{n} items, 95 % interval {shown}" + (f", mean of {len(starts)} starts" if len(starts) > 1 else "")
    more = _more(counted, n, allowed, "items") if side is None and 0 < allowed < 1 else None
    return Decision(side, value, words + _in_words(more), n, float(n), interval, more)


def _worst(condition: Condition, pieces: Sequence[Evidence]) -> Decision:
    worst = min(pieces, key=lambda p: (condition.distance(p.value), p.id))
    values = [p.value for p in pieces]
    starts = len({p.source for p in pieces})
    failed = len({p.source for p in pieces if not condition.holds_for(p.value)})
    words = (
        f"{failed} of {starts} starts missed it"
        if failed
        else f"in {'all ' if starts > 1 else ''}{starts} of {starts} starts"
    )
    n = sum(p.n for p in pieces if p.n) or starts
    return Decision(_side(condition, worst.value), worst.value, words, n, None, (min(values), max(values)))


def _spread(condition: Condition, values: Sequence[float]) -> Decision:
    """Decide how far starts lie apart: more starts only widen it, so what is beyond an upper limit stays beyond."""
    low, high, n = min(values), max(values), len(values)
    spread = (high - low) / high if high else 0.0
    beyond = condition.comparison == "<=" and not condition.holds_for(spread)
    shown = f"{quantity(low, 'tokens')} to {quantity(high, 'tokens')} over {n} start{'s' if n > 1 else ''}"
    if n < MIN_STARTS and not beyond:
        return Decision(None, spread, f"{shown}, {MIN_STARTS - n} more would decide it", n, None, (spread, spread))
    return Decision(_side(condition, spread), spread, shown, n, None, (spread, spread))


def over_starts(condition: Condition, values: Sequence[float], in_production: bool = False) -> Decision:
    """Decide a mean-type figure from one value per engine start; observed production figures stand alone."""
    typical = percentile(values, 50)
    n = len(values)
    low, high = mean_interval(values)
    shown = f"{quantity(low, condition.unit)} to {quantity(high, condition.unit)}"
    if n < MIN_STARTS and not in_production:
        missing = MIN_STARTS - n
        words = f"{n} start{'s' if n > 1 else ''} of the engine, {missing} more would decide it"
        more = More(n=missing, of="starts")
        return Decision(None, typical, words, n, None, (min(values), max(values)), more)
    spread = (
        f"min to max over {n} starts, {shown}; covers the median {median_coverage(n):.0%} of the time"
        if n < 5
        else f"95 % one-sided t interval over {n} starts, {shown}"
    )
    return Decision(side_of_range(condition, low, high), typical, spread, n, None, (low, high))


def side_of_range(condition: Condition, low: float, high: float) -> Side | None:
    """The side on which every value from `low` to `high` lies, or None."""
    sides = {_side(condition, low), _side(condition, high)}
    spans = condition.comparison == "between" and low < condition.threshold and high > (condition.upper or 0.0)
    return None if len(sides) > 1 or (spans and sides == {"fails"}) else sides.pop()
