"""Warm-up of one load point: rounds of requests whose answers do not count."""

from __future__ import annotations

import asyncio

from bench.asking import WARMUP, Asking
from bench.inputs import NO_INPUTS
from bench.outcome import failed_at_first_sight
from bench.prompts import PromptMaker
from bench.target import Target
from bundle.manifest import Warmup
from planner.loads import LoadPoint

ROUNDS = 5
AGREES = 0.1


async def warm_up(target: Target, point: LoadPoint, prompts: PromptMaker, salt: str) -> tuple[Warmup, float]:
    """Send other prompts of the same lengths until two rounds agree; returns that and one request's seconds.

    A round is warmup_requests at once; rounds agree when their mean durations differ by at most 10 %.
    """
    durations: list[float] = []
    asking, sent = Asking(target, point, prompts, NO_INPUTS, salt), 0
    for _ in range(ROUNDS if point.warmup_requests else 0):
        made = [asking.request(WARMUP, sent + i) for i in range(point.warmup_requests)]
        sent += len(made)
        ended = await asyncio.gather(*(
            target.pool.exchange(request, timeout_s=target.timeout_s) for request in made
        ))  # fmt: skip
        good = [e.end - e.dispatched for e in ended if e.end and not failed_at_first_sight(e)]
        if not good:
            return Warmup(requests=sent, rounds=len(durations) + 1, settled=False), 0.0
        durations.append(sum(good) / len(good))
        if len(durations) > 1 and abs(durations[-1] - durations[-2]) <= AGREES * max(durations[-2:]):
            return Warmup(requests=sent, rounds=len(durations), settled=True), durations[-1]
    return Warmup(requests=sent, rounds=len(durations), settled=False), durations[-1] if durations else 0.0
