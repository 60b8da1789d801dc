"""What a log of requests says about demand: lengths, rates, bursts, sessions, shared prefixes. Pure arithmetic.

How many requests were in flight at once is in planner/traffic_in_flight.py. A million rows are plain arrays here, not
objects: 8 bytes a figure.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import repeat
from operator import add, floordiv, mul, sub
from typing import NamedTuple

from planner.frozen import Frozen
from planner.loads import Arrival
from planner.statistics import percentile
from planner.traffic_in_flight import DAY_S, InFlight, LatencyModel, in_flight

MINUTE_S, HOUR_S = 60.0, 3600.0
EPOCH_FROM_S = 1e8  # a clock that shows more than this counts from 1970 (1973 or later); less counts from its own zero
# Bins of the series that a chart shows: the shortest that gives at most so many points.
BINS_S = (1.0, 10.0, MINUTE_S, 600.0, HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S)
MOST_POINTS = 400
# Coefficient of variation of the gaps: 0 is a metronome, 1 is Poisson, more comes in bursts.
REGULAR_BELOW, BURSTS_ABOVE = 0.3, 1.25
LEAST_FOR_BURSTS = 30


class Requests(NamedTuple):
    """A log as columns, one place a request, by time. A column that the log does not have is None.

    `at_s` counts from the first request, which came when the log's clock showed `clock_s`. `took_s` is NaN, `session`
    and `prefix` are -1 where a row does not say. `seen_tokens` are those of the prompt in a prefix that an earlier
    request had already brought.
    """

    input_tokens: array[int]
    output_tokens: array[int]
    at_s: array[float] | None = None
    clock_s: float = 0.0
    took_s: array[float] | None = None
    session: array[int] | None = None
    prefix: array[int] | None = None
    seen_tokens: array[int] | None = None

    @property
    def begin(self) -> datetime | None:
        """When the first request came, if the clock tells the date."""
        return datetime.fromtimestamp(self.clock_s, UTC) if self.at_s and self.clock_s >= EPOCH_FROM_S else None


class LengthFigures(Frozen):
    """How long something is, in tokens; `cv` is standard deviation over mean.

    `by_power` counts lengths by size: the first are those of 0 tokens, number i those from 2^(i-1) to below 2^i.
    """

    mean: float
    cv: float
    p50: float
    p90: float
    p95: float
    p99: float
    longest: int
    by_power: tuple[int, ...]


class Rates(Frozen):
    """How often requests came. `series` is requests a second, bin after bin of `bin_s` seconds, the last one partial.

    `gap_cv` is the coefficient of variation of the times between requests: over the whole log, and in the hour with
    most requests, where day and night do not count as bursts. `dispersion` is variance over mean of the requests in
    whole minutes (1 for Poisson; Cox and Lewis 1966, The Statistical Analysis of Series of Events, ch. 4).
    """

    mean_per_s: float | None
    busiest_minute: int
    busiest_hour: int
    bin_s: float
    series: tuple[float, ...]
    gap_cv: float | None
    busiest_hour_gap_cv: float | None
    dispersion: float | None

    @property
    def arrival(self) -> Arrival | None:
        """The arrival process that is nearest to the busiest hour."""
        cv = self.busiest_hour_gap_cv
        if cv is None:
            return None
        return "constant" if cv < REGULAR_BELOW else "gamma" if cv > BURSTS_ABOVE else "poisson"


class Sessions(Frozen):
    """Conversations: how many, and requests in each. `without` are requests that name none."""

    n: int
    turns_mean: float
    turns_p95: float
    turns_most: int
    without: int


class Prefixes(Frozen):
    """What prompts share: the share of prompt tokens, and of requests, that an earlier request had brought already."""

    token_share: float | None
    request_share: float | None


class TrafficSummary(Frozen):
    """Everything that is said about a log; what it does not hold is None. `unanswered` are requests of 0 tokens out."""

    n: int
    unanswered: int
    begin: datetime | None
    span_s: float | None
    input_tokens: LengthFigures
    output_tokens: LengthFigures | None
    whole_tokens: LengthFigures
    rates: Rates | None
    in_flight: InFlight | None
    prefixes: Prefixes | None
    sessions: Sessions | None


def summarise(r: Requests, latency: LatencyModel | None = None) -> TrafficSummary:
    """The figures of a log with one request or more; `latency` says how long answers take where the log does not.

    Raises ValueError for a log without requests.
    """
    if not r.input_tokens:
        raise ValueError("a log without requests has no figures")
    answers = [n for n in r.output_tokens if n]
    return TrafficSummary(
        n=len(r.input_tokens), unanswered=len(r.output_tokens) - len(answers), begin=r.begin,
        span_s=r.at_s[-1] if r.at_s else None, input_tokens=lengths(r.input_tokens),
        output_tokens=lengths(answers) if answers else None,
        whole_tokens=lengths(map(add, r.input_tokens, r.output_tokens)),
        rates=rates(r.at_s) if r.at_s else None, prefixes=prefixes(r), sessions=sessions(r.session),
        in_flight=in_flight(r.at_s, r.took_s, r.output_tokens, latency, bin_s(r.at_s[-1]), r.clock_s % DAY_S)
        if r.at_s else None,
    )  # fmt: skip


def lengths(tokens: Iterable[int]) -> LengthFigures:
    """Figures of lengths in tokens; percentiles as everywhere here, between order statistics."""
    ordered = sorted(tokens)
    mean, cv = _mean_cv(ordered)
    p50, p90, p95, p99 = (percentile(ordered, q) for q in (50, 90, 95, 99))
    sizes = Counter(map(int.bit_length, ordered))
    by_power = tuple(sizes[i] for i in range(ordered[-1].bit_length() + 1))
    return LengthFigures(mean=mean, cv=cv, p50=p50, p90=p90, p95=p95, p99=p99, longest=ordered[-1], by_power=by_power)


def _mean_cv(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and population standard deviation over it; 0 for a mean of 0."""
    n = len(values)
    mean = math.fsum(values) / n
    if mean <= 0:
        return mean, 0.0
    return mean, math.sqrt(max(0.0, math.fsum(map(mul, values, values)) / n - mean * mean)) / mean


def bin_s(span_s: float) -> float:
    """The shortest bin that shows a span in at most MOST_POINTS points, in seconds."""
    return next((b for b in BINS_S if span_s / b < MOST_POINTS), math.ceil(span_s / MOST_POINTS / DAY_S) * DAY_S)


def rates(at_s: array[float]) -> Rates:
    """Rates and bursts of arrival times in seconds, sorted, the first at 0."""
    span, width = at_s[-1], bin_s(at_s[-1])
    bins, minutes, hours = (Counter(map(floordiv, at_s, repeat(w))) for w in (width, MINUTE_S, HOUR_S))
    busiest, most = max(hours.items(), key=lambda hour: (hour[1], -hour[0]))
    last = int(span // width)
    return Rates(
        mean_per_s=(len(at_s) - 1) / span if span > 0 else None,
        busiest_minute=max(minutes.values()), busiest_hour=most, bin_s=width,
        series=tuple(bins[i] / width for i in range(last + 1)),
        gap_cv=_gap_cv(at_s),
        busiest_hour_gap_cv=_gap_cv(_hour(at_s, busiest * HOUR_S)),
        dispersion=_dispersion(minutes, int(span // MINUTE_S)),
    )  # fmt: skip


def _hour(at_s: array[float], begin: float) -> array[float]:
    return at_s[bisect_left(at_s, begin) : bisect_left(at_s, begin + HOUR_S)]


def _gap_cv(at_s: array[float]) -> float | None:
    if len(at_s) < LEAST_FOR_BURSTS or at_s[-1] <= at_s[0]:
        return None
    return _mean_cv(array("d", map(sub, at_s[1:], at_s)))[1]


def _dispersion(per_minute: Counter[float], whole_minutes: int) -> float | None:
    counts = [n for minute, n in per_minute.items() if minute < whole_minutes]
    if whole_minutes < 2 or not counts:
        return None
    mean = sum(counts) / whole_minutes
    return (sum(n * n for n in counts) / whole_minutes - mean * mean) / mean


def sessions(session: array[int] | None) -> Sessions | None:
    """Turns per session, from the session's number of each request."""
    if session is None:
        return None
    turns = Counter(session)
    without = turns.pop(-1, 0)
    if not turns:
        return None
    ordered = sorted(turns.values())
    return Sessions(n=len(ordered), turns_mean=sum(ordered) / len(ordered), turns_p95=percentile(ordered, 95),
                    turns_most=ordered[-1], without=without)  # fmt: skip


def prefixes(r: Requests) -> Prefixes | None:
    """Shares of what an earlier request had brought; the share of tokens only where the log tells how many they are."""
    tokens = sum(r.input_tokens)
    token_share = sum(r.seen_tokens) / tokens if r.seen_tokens is not None and tokens else None
    request_share = None
    if r.prefix is not None:
        distinct = len(set(r.prefix) - {-1})
        request_share = (len(r.prefix) - r.prefix.count(-1) - distinct) / len(r.prefix)
    elif r.seen_tokens is not None:
        request_share = sum(map(bool, r.seen_tokens)) / len(r.seen_tokens)
    if token_share is None and request_share is None:
        return None
    return Prefixes(token_share=token_share, request_share=request_share)


def seen_in_blocks(blocks: Iterable[Sequence[int]], input_tokens: Iterable[int], block_tokens: int) -> array[int]:
    """Prompt tokens of each request that stand in leading blocks seen before, by time.

    `blocks` are the hashes of each prompt's blocks. A hash covers its block and all before it, as Mooncake's traces and
    vLLM's prefix cache have it (Mooncake, FAST'25, section 4), so what is shared is the run of known hashes at the
    front. A cache without end is assumed.
    """
    known: set[int] = set()
    found = array("q")
    for own, tokens in zip(blocks, input_tokens, strict=True):
        leading = 0
        for block in own:
            if block not in known:
                break
            leading += 1
        known.update(own[leading:])
        found.append(min(tokens, leading * block_tokens))
    return found


def seen_by_prefix(prefix: Iterable[int], prefix_tokens: Iterable[float], input_tokens: Iterable[int]) -> array[int]:
    """Prompt tokens in a named prefix that an earlier request had brought, by time; -1 names none, NaN is no length."""
    known: set[int] = {-1}
    found = array("q")
    for own, long, tokens in zip(prefix, prefix_tokens, input_tokens, strict=True):
        seen = own in known and own >= 0 and math.isfinite(long)
        found.append(min(tokens, round(long)) if seen else 0)
        known.add(own)
    return found
