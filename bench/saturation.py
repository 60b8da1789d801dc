"""A stop rule of open loops: the queue and the wait for the first token keep growing, so nothing new will be learned.

What waits is counted here, at the client, so that it is known of every engine and holds whatever queues in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from bench.exchange import Exchange

LOOK_EVERY_S = 0.5
PARTS = 3
GROWS_BY = 1.2  # from one third of the watched time to the next; a server that keeps up goes up and down
AT_LEAST = 4.0  # waiting on average in the last third
_ANSWER_FROM_READ = 3  # the first reads hold headers and role; one token late does no harm here


class Look(NamedTuple):
    """At a time: how many had no token yet, and how long the first of them had waited, in seconds."""

    at: float
    waiting: int
    oldest_s: float


class Saturation:
    """Watches one repeat; saturated when both figures grew through each third of the last `within_s` seconds."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._looks: list[Look] = []

    def look(self, now: float, in_flight: Sequence[Exchange]) -> str:
        """Take in how things stand; the reason to stop, or nothing."""
        waits = [now - e.dispatched for e in in_flight if len(e.wire) < _ANSWER_FROM_READ]
        self._looks.append(Look(now, len(waits), max(waits, default=0.0)))
        if now - self._looks[0].at < self._within_s:
            return ""
        while now - self._looks[0].at > self._within_s + LOOK_EVERY_S:
            self._looks.pop(0)
        parts = [self._part(k) for k in range(PARTS)]
        grown = all(parts) and all(
            fmean(getattr(x, name) for x in b) > GROWS_BY * fmean(getattr(x, name) for x in a)
            for name in ("waiting", "oldest_s") for a, b in pairwise(parts)
        )  # fmt: skip
        if not grown or fmean(x.waiting for x in parts[-1]) < AT_LEAST:
            return ""
        last = self._looks[-1]
        return (f"saturated: queue and wait grew for {self._within_s:g} s, to {last.waiting} requests without a token, "
                f"the first of them for {last.oldest_s:.1f} s")  # fmt: skip

    def _part(self, k: int) -> list[Look]:
        begin, length = self._looks[0].at, (self._looks[-1].at - self._looks[0].at) / PARTS
        inside = [x for x in self._looks if begin + k * length <= x.at < begin + (k + 1) * length]
        return [*inside, self._looks[-1]] if k == PARTS - 1 else inside
