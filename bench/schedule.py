"""When requests are sent: computed before the run from one seed, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from planner.loads import LoadPoint


class TraceRow(NamedTuple):
    """One request of a recorded trace: seconds after its first one, and lengths in tokens."""

    at_s: float
    input_tokens: int
    output_tokens: int


def seeded(*parts: object) -> random.Random:
    """A generator whose state follows from the parts alone; never from `hash()`, which differs between processes."""
    digest = hashlib.sha256("\x1f".join(str(p) for p in parts).encode()).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))


def gap(point: LoadPoint, rng: random.Random, rate: float) -> float:
    """One interval in seconds between sends at a constant rate.

    constant: 1/rate. poisson: exponential. gamma: shape = burstiness and mean 1/rate, so burstiness 1 is poisson and
    smaller values come in bursts (as vLLM's benchmark defines it).
    """
    if point.arrival == "constant":
        return 1.0 / rate
    shape = 1.0 if point.arrival == "poisson" else point.burstiness
    return rng.gammavariate(shape, 1.0 / (rate * shape))


def ramp_time(point: LoadPoint, count: float) -> float:
    """When a ramp has sent `count` requests on average, in seconds after t0: the inverse of LoadPoint.expected_by."""
    start, end, length = point.rate_per_s or 1.0, point.rate_to_per_s or 1.0, point.ramp_s or 1.0
    inside = point.expected_by(length)
    if count > inside:
        return length + (count - inside) / end
    rise = (end - start) / length
    return 2 * count / (start + math.sqrt(start**2 + 2 * rise * count))


def send_times(point: LoadPoint, seed: int, repeat: int, n: int, trace: Sequence[TraceRow] = ()) -> list[float]:
    """The first `n` send times of an open loop, ramp or trace in seconds after t0; a longer list begins alike.

    A ramp draws the intervals of a rate of 1/s and stretches time by the rate's integral: with poisson arrivals that
    is exactly the process whose rate changes so (Cinlar 1975, Introduction to Stochastic Processes, ch. 4). A trace
    has as many as were recorded, the same in every repeat.
    """
    if point.shape == "trace":
        return [row.at_s for row in trace[:n]]
    rng = seeded("arrivals", seed, point.load_hash(), repeat)
    ramp = point.shape == "ramp"
    rate = 1.0 if ramp else point.rate_per_s or 1.0
    now, times = 0.0, []
    for _ in range(n):
        now += gap(point, rng, rate)
        times.append(ramp_time(point, now) if ramp else now)
    return times


def slot_starts(point: LoadPoint, e2e_s: float) -> list[float]:
    """Start of each slot of a closed loop in seconds after t0, given how long one request takes.

    Spread over one request, so that equal lengths do not march in step; over a part of it when a slot has few
    requests, so that all of them overlap.
    """
    slots = min(point.in_flight or 1, point.requests)
    rounds = point.requests / slots
    spread = e2e_s * min(1.0, max(0.1, (rounds - 1) / 4))
    return [spread * k / slots for k in range(slots)]
