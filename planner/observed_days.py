"""What was observed of users over a window of days: one value, and whether enough of the window was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from planner.conditions import Evidence, More
from planner.statistics import percentile

MIN_COVERAGE = 0.9
DAY_S = 86_400.0


class Observed(NamedTuple):
    """A value over the days that were seen; it decides where they are `enough`, else `more` would, where known."""

    value: float
    enough: bool
    because: str
    more: More | None = None


def observed_days(statistic: str, asked_days: int, pieces: Sequence[Evidence]) -> Observed:
    """Join all observed days into the asked window that ends with the newest of them.

    A piece covers the days before its `at`; where several cover a day, the larger value counts for maxima.
    """
    end = max(p.at for p in pieces)
    begin = end - timedelta(days=asked_days)
    inside = [p for p in pieces if p.at > begin]
    known = (end - min(_since(p) for p in inside)).total_seconds() / DAY_S
    value = _over_days(statistic, inside)
    if known < asked_days - 1e-6:
        missing = math.ceil(asked_days - known - 1e-6)
        more = f"{missing} more day{'s' if missing > 1 else ''}"
        words = f"observed over {asked_days - missing} days, {asked_days} needed: {more}"
        return Observed(value, False, words, More(n=missing, of="days"))
    covered = _covered_days(inside, begin, end) / asked_days
    if covered < MIN_COVERAGE - 1e-9:
        words = f"only {covered:.0%} of the last {asked_days} days is covered, {MIN_COVERAGE:.0%} needed"
        return Observed(value, False, words)
    return Observed(value, True, f"observed over {asked_days} days to {end:%Y-%m-%d}, {covered:.0%} covered")


def _over_days(statistic: str, pieces: Sequence[Evidence]) -> float:
    """Maximum, percentile, or mean weighted by the days that each piece covers."""
    if statistic == "max":
        return max(p.value for p in pieces)
    if statistic == "mean":
        days = math.fsum(p.window_days or 1.0 for p in pieces)
        return math.fsum(p.value * (p.window_days or 1.0) for p in pieces) / days
    return percentile([p.value for p in pieces], float(statistic.removeprefix("p")))


def _since(p: Evidence) -> datetime:
    return p.at - timedelta(days=p.window_days or 1.0)


def _covered_days(pieces: Sequence[Evidence], begin: datetime, end: datetime) -> float:
    """Days of the window that some piece covers; a piece with holes covers only its share, of several the fullest."""
    spans = sorted((max(begin, _since(p)), p.at, p.coverage if p.coverage is not None else 1.0) for p in pieces)
    edges = sorted({begin, end, *(edge for since, until, _ in spans for edge in (since, until))})
    over: list[tuple[float, datetime]] = []  # those that have begun: the fullest first, with its end
    covered_s, i = 0.0, 0
    for here, there in pairwise(edges):
        while i < len(spans) and spans[i][0] <= here:
            heappush(over, (-spans[i][2], spans[i][1]))
            i += 1
        while over and over[0][1] <= here:
            heappop(over)
        covered_s += -over[0][0] * (there - here).total_seconds() if over else 0.0
    return covered_s / DAY_S
