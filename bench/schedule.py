"""When requests are sent: computed before the run from one seed, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import random

from planner.conditions import LoadPoint


def seeded(*parts: object) -> random.Random:
    """A generator whose state follows from the parts alone; never from `hash()`, which differs between processes."""
    digest = hashlib.sha256("\x1f".join(str(p) for p in parts).encode()).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))


def gap(point: LoadPoint, rng: random.Random) -> float:
    """One interval in seconds between sends of an open loop.

    constant: 1/rate. poisson: exponential. gamma: shape = burstiness and mean 1/rate, so burstiness 1 is poisson and
    smaller values come in bursts (as vLLM's benchmark defines it).
    """
    rate = point.rate_per_s or 1.0
    if point.arrival == "constant":
        return 1.0 / rate
    shape = 1.0 if point.arrival == "poisson" else point.burstiness
    return rng.gammavariate(shape, 1.0 / (rate * shape))


def open_times(point: LoadPoint, seed: int, repeat: int, n: int) -> list[float]:
    """The first `n` send times of an open loop in seconds after t0; a longer list begins with the shorter one."""
    rng = seeded("arrivals", seed, point.load_hash(), repeat)
    now, times = 0.0, []
    for _ in range(n):
        now += gap(point, rng)
        times.append(now)
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
