"""How many requests of a log were in flight at once, from the time each took, or from a stated latency."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import repeat

from pydantic import Field

from planner.frozen import Frozen
from planner.statistics import percentile

DAY_S = 86_400.0


class LatencyModel(Frozen):
    """How long an answer is assumed to take: the first token after `first_s`, then `tok_s` tokens a second."""

    first_s: float = Field(ge=0, le=3600)
    tok_s: float = Field(gt=0, le=100_000)

    def seconds(self, output_tokens: int) -> float:
        """Time in flight of one request; one without an answer is gone when its first token would have come."""
        return self.first_s + output_tokens / self.tok_s


class InFlight(Frozen):
    """Requests in flight at once. A request that ends when another comes does not overlap it.

    `series` has the highest number in each bin of `bin_s` seconds, `daily` that of each calendar day, in UTC where the
    log states zones. `mean` is over time, from the first arrival to the last (Little: rate times time in flight).
    `known` counts the requests whose time stands in the log; that of the others is assumed.
    """

    peak: int
    mean: float | None
    bin_s: float
    series: tuple[int, ...]
    daily: tuple[int, ...]
    known: int

    @property
    def usual_peak(self) -> int:
        """The median of the daily peaks, rounded up."""
        return math.ceil(percentile(self.daily, 50))


def in_flight(
    at_s: array[float], took_s: array[float] | None, output_tokens: array[int], latency: LatencyModel | None,
    bin_s: float, since_midnight_s: float,
) -> InFlight | None:  # fmt: skip
    """Levels over time; None when a request's time in flight is neither in the log nor assumed.

    `at_s` is sorted and begins at 0, which is `since_midnight_s` into the first day.
    """
    known = sum(map(math.isfinite, took_s)) if took_s is not None else 0
    if latency is None and known < len(at_s):
        return None
    # Where a clock of whole seconds lets a request end as it came, it was there at that moment all the same.
    stated = map(float.__add__, at_s, _durations(took_s, output_tokens, latency))
    ends = sorted(map(max, stated, map(math.nextafter, at_s, repeat(math.inf))))
    levels = array("q", _levels(at_s, ends))
    span = at_s[-1]
    inside = math.fsum(min(e, span) for e in ends) - math.fsum(at_s)
    bins = int(span // bin_s) + 1
    days = int((since_midnight_s + span) // DAY_S) + 1
    return InFlight(
        peak=max(levels), mean=inside / span if span > 0 else None, bin_s=bin_s,
        series=tuple(_peaks(at_s, ends, levels, (bin_s * i for i in range(bins + 1)))),
        daily=tuple(_peaks(at_s, ends, levels, (DAY_S * d - since_midnight_s for d in range(days + 1)))),
        known=known,
    )  # fmt: skip


def _durations(took_s: array[float] | None, output_tokens: array[int], latency: LatencyModel | None) -> Iterator[float]:
    if latency is None:
        return iter(took_s or ())
    assumed = map(latency.seconds, output_tokens)
    if took_s is None:
        return assumed
    return (known if known == known else other for known, other in zip(took_s, assumed, strict=True))


def _levels(at_s: array[float], ends: list[float]) -> Iterator[int]:
    """The number in flight just after each arrival."""
    gone = 0
    for arrived, now in enumerate(at_s, 1):
        while gone < arrived and ends[gone] <= now:
            gone += 1
        yield arrived - gone


def _peaks(at_s: array[float], ends: list[float], levels: array[int], edges: Iterable[float]) -> Iterator[int]:
    """The highest level between each two edges: of an arrival inside, or of those who were there at its beginning."""
    steps = iter(edges)
    begin = next(steps)
    for end in steps:
        first, after = bisect_left(at_s, begin), bisect_left(at_s, end)
        carried = first - bisect_right(ends, begin)
        yield max(max(levels[first:after], default=0), carried)
        begin = end
