"""How many requests a point needs so that the wanted percentile can be claimed over the plan's starts.

A verdict tests the share of requests beyond the limit exactly, one-sided, at 95 % (planner/deciding.py). Sizes are
planned at 99 %, as MLPerf's early stopping does: p95 needs 90, 130 or 259 requests with 0, 1 or 5 beyond. Requests
that are in flight together share their steps, so a wave of them may be worth as little as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from planner.condition_line import EVERY_POINT, format_test
from planner.conditions import Condition
from planner.deciding import MIN_STARTS, OUTCOMES, SHARES, allowed_share
from planner.frozen import Frozen
from planner.loads import LoadPoint
from planner.metrics import Level
from planner.poc import Plan
from planner.statistics import CONFIDENCE, binomial_at_most, samples_needed

PLANNED_CONFIDENCE = 0.99
BEYOND = (0, 1, 5)
LEAST_REQUESTS = 24  # below, a median over the steady window says little


class Claim(Frozen):
    """Whether one condition can be decided at one point with the plan's requests, starts and repeats.

    `counted` requests lie in the steady windows of all starts; they fall into `waves`, which is what they are worth at
    least. `may_be_beyond` is how many of them may miss the limit and the condition still holds; -1: it never can.
    `needed` is the requests for 0, 1 and 5 beyond.
    """

    where: str
    test: str
    point: str
    counted: int
    waves: int
    may_be_beyond: int
    at_least_beyond: int
    needed: tuple[int, int, int]

    @property
    def possible(self) -> bool:
        """Whether the condition can hold at all, were the requests independent."""
        return self.may_be_beyond >= 0

    @property
    def sure(self) -> bool:
        """Whether it can hold even if the requests of a wave move as one."""
        return self.at_least_beyond >= 0


class StartsNeeded(Frozen):
    """A condition on a mean or a ratio, which is decided over starts: how many the plan has, and how many it takes."""

    where: str
    test: str
    starts: int
    needed: int = MIN_STARTS

    @property
    def possible(self) -> bool:
        """Whether the plan has enough starts."""
        return self.starts >= self.needed


def share_of(condition: Condition) -> float | None:
    """The share of requests that may miss the limit; None where a condition is not decided by counting requests."""
    if condition.over or condition.comparison not in ("<=", ">="):
        return None
    if condition.statistic.startswith("p") and condition.of.level is Level.REQUEST:
        return allowed_share(condition)
    if condition.metric in SHARES:
        share = 1 - condition.threshold if condition.comparison == ">=" else condition.threshold
        return share if 0 < share < 1 else None
    return None


def sizes(share: float) -> tuple[int, int, int]:
    """Requests that prove at 99 % that no more than `share` miss the limit, with 0, 1 and 5 that do."""
    zero, one, five = (samples_needed(share, k, PLANNED_CONFIDENCE) for k in BEYOND)
    return zero, one, five


def may_be_beyond(n: int, share: float) -> int:
    """Most requests of `n` that may miss the limit while a verdict holds at 95 %; -1 where it cannot even with none."""
    k = -1
    while binomial_at_most(k + 1, n, share) <= 1 - CONFIDENCE:
        k += 1
    return k


def counted_requests(point: LoadPoint) -> int:
    """Requests of one repeat in its steady window: without a closed loop's first two rounds and a ramp's rise."""
    if point.in_flight:
        begin = 2 * point.in_flight - 1
    else:
        begin = round(point.expected_by(point.ramp_s)) if point.ramp_s else 0
    return point.requests - begin if point.requests > begin + 1 else point.requests


def requests_for(conditions: Sequence[Condition], starts: int, repeats: int, beyond: int = 0) -> int:
    """Counted requests of one repeat with which every percentile asked can hold in a verdict, `beyond` missing it."""
    shares = [s for c in conditions if (s := share_of(c)) is not None]
    asked = max((samples_needed(s, beyond) for s in shares), default=0)
    return max(LEAST_REQUESTS, ceil(asked / (starts * repeats)))


def claims(plan: Plan) -> tuple[Claim, ...]:
    """Every condition that is decided by counting requests, at each of its points.

    Service levels without a point of their own are asked at every point that no hypothesis asks them at.
    """
    return tuple(
        claim(plan, where, c, plan.point(name))
        for where, c in _asked(plan)
        if share_of(c) is not None
        for name in _points(plan, c)
    )


def claim(plan: Plan, where: str, condition: Condition, point: LoadPoint) -> Claim:
    """What the plan's requests at a point can prove about a condition that is decided by counting them."""
    share = share_of(condition) or 0.0
    first = next((c for c in plan.candidates if c.id == condition.candidate), plan.candidates[0])
    times = plan.repeats * (plan.starts if first.launch.command else 1)
    counted = counted_requests(point)
    waves = ceil(counted / point.in_flight) if point.in_flight else counted
    return Claim(
        where=where, test=format_test(condition), point=point.name, counted=times * counted, waves=times * waves,
        may_be_beyond=may_be_beyond(times * counted, share), at_least_beyond=may_be_beyond(times * waves, share),
        needed=sizes(share),
    )  # fmt: skip


def starts_needed(plan: Plan) -> tuple[StartsNeeded, ...]:
    """Every condition that is decided over starts of the server: means, rates, and ratios of two candidates."""
    return tuple(
        StartsNeeded(where=where, test=format_test(c), starts=plan.starts)
        for where, c in _asked(plan)
        if share_of(c) is None and c.of.level in (Level.REQUEST, Level.RUN) and c.metric not in OUTCOMES | SHARES
    )


def _asked(plan: Plan) -> Iterator[tuple[str, Condition]]:
    yield from ((h.id, c) for h in plan.hypotheses for c in h.conditions)
    tests = {(format_test(c), name) for h in plan.hypotheses for c in h.conditions for name in c.load_points}
    for level in plan.service_levels:
        rest = [p for p in _points(plan, level) if (format_test(level), p) not in tests]
        if rest:
            yield "service level", level.model_copy(update={"load_points": tuple(rest)})


def _points(plan: Plan, condition: Condition) -> tuple[str, ...]:
    run = tuple(dict.fromkeys(n for s in plan.stages for n in s.points))
    if not condition.load_points or condition.load_points == (EVERY_POINT,):
        return run
    return tuple(n for n in condition.load_points if n in run)
