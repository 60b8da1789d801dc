"""What to measure next: the runs that could still change the decision, most telling first; what is settled is left out.

Order: what could end the plan, then what could change the favourite or re-open the decision, then what changes the
plan or a setting, then what is decided but close. Within each, what the plan and the decision ask stands before what
the score proposes, then what is predicted to fail comes first, then what costs least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from planner.choosing import OF_A_START
from planner.condition_line import EVERY_POINT
from planner.conditions import STANDING, Condition, Evidence, More, State, Verdict
from planner.hypothesis_cost import Run, effort
from planner.hypothesis_schema import Hypothesis, Stakes
from planner.known import Known
from planner.metrics import Level
from planner.plan_budget import PlanCost
from planner.poc import Plan
from planner.sample_size import counted_requests

Could = Literal["end the plan", "change the favourite", "change the plan", "change a setting", "tip over"]
COULD: tuple[Could, ...] = (
    "end the plan", "change the favourite", "change the plan", "change a setting", "tip over",
)  # fmt: skip
OF_STAKES: dict[Stakes, Could] = {
    "ends the plan": "end the plan", "changes the plan": "change the plan", "changes a setting": "change a setting",
}  # fmt: skip
OPEN = frozenset({State.UNMEASURED, State.INVALID_RUN, State.EXPIRED, State.CONFLICTING, State.UNDECIDED})
DAY_MIN = 24 * 60.0
_Seen = set[tuple[str, str | None, str | None]]  # metric, candidate, load point of what can decide


class Asked(NamedTuple):
    """One thing that stands on evidence: a hypothesis, a flip condition, a proposal of the score.

    `verdict` is that of all conditions together, `parts` one per condition; `then` is what follows from a no.
    """

    id: str
    kind: Literal["hypothesis", "flip condition", "proposal"]
    could: Could
    conditions: tuple[Condition, ...]
    verdict: Verdict
    parts: tuple[Verdict, ...]
    then: str


class Change(NamedTuple):
    """What a run could still change: which hypothesis or condition, how it stands, and what would follow."""

    id: str
    kind: str
    could: Could
    state: str
    then: str
    doubtful: bool


class Next(NamedTuple):
    """One run worth making: a candidate at a load point (none: a start is enough), or days of observation.

    `starts` are fresh engine starts, `more` what is missing where it is known, `minutes` what it takes where that is
    known. `in_plan` is False for what the plan does not run yet.
    """

    candidate: str
    point: str
    starts: int
    more: More | None
    minutes: float | None
    changes: tuple[Change, ...]
    in_plan: bool = True

    @property
    def could(self) -> Could:
        """The most that it could change."""
        return min((c.could for c in self.changes), key=COULD.index)

    @property
    def what(self) -> str:
        """The run in words."""
        if not self.candidate:
            days = f"{self.more.n} more day{'s' if self.more.n > 1 else ''}" if self.more else "production"
            return f"observe {days}"
        return f"{self.candidate} at {self.point}" if self.point else f"start {self.candidate}"

    @property
    def amount(self) -> str:
        """How much of it."""
        starts = f"{self.starts} start{'s' if self.starts != 1 else ''}" if self.candidate else ""
        missing = f"{self.more.n} more {self.more.of}" if self.more and self.more.of in ("requests", "items") else ""
        return ", ".join(x for x in (starts, missing) if x)


class _Need(NamedTuple):
    """What one open leaf needs: where, how much, and what it could change."""

    candidate: str
    point: str
    more: More | None
    change: Change


def could_change(h: Hypothesis) -> Could:
    """The most that a rejected hypothesis changes: as it states, else by what it asks."""
    if any(c.over for c in h.conditions) and h.stakes != "ends the plan":
        return "change the favourite"
    if h.stakes:
        return OF_STAKES[h.stakes]
    return "end the plan" if any(c.metric in OF_A_START for c in h.conditions) else "change the plan"


def measure_next(
    plan: Plan, asked: Iterable[Asked], evidence: Iterable[Evidence], cost: PlanCost | None = None
) -> tuple[Next, ...]:
    """Order what is still open by what it could change; `cost` is the plan's, where it is known."""
    wanted = tuple(asked)
    figures = Known.of(evidence).of_metric(*{_seen_as(c) for a in wanted for c in a.conditions})
    seen: _Seen = {(e.metric, e.candidate, e.load_point) for e in figures if e.valid and e.kind in STANDING}
    needs = [need for a in wanted for need in _needs(plan, a, seen)]
    groups: dict[tuple[str, str], list[_Need]] = {}
    for need in needs:
        groups.setdefault((need.candidate, need.point), []).append(need)
    points = {p.name: i for i, p in enumerate(plan.load_points)}
    _starts_ride_along(groups, points)
    found = [_next(plan, *key, group, cost) for key, group in groups.items()]
    order = {c.id: i for i, c in enumerate(plan.candidates)}

    def place(n: Next) -> tuple[object, ...]:
        only_proposed = all(c.kind == "proposal" for c in n.changes if c.could == n.could)
        doubtful = any(c.doubtful for c in n.changes)
        minutes = math.inf if n.minutes is None else n.minutes
        return (COULD.index(n.could), only_proposed, not doubtful, minutes, -len(n.changes),
                order.get(n.candidate, len(order)), points.get(n.point, -1), n.candidate, n.point)  # fmt: skip

    return tuple(sorted(found, key=place))


def _seen_as(condition: Condition) -> str:
    """The metric that a run gives for a condition."""
    return "pass_rate" if condition.of.paired else condition.metric


def _needs(plan: Plan, a: Asked, seen: _Seen) -> Iterator[_Need]:
    if a.verdict.state in (State.HOLDS, State.FAILS):
        return
    is_open = a.verdict.state in OPEN
    for condition, part in zip(a.conditions, a.parts, strict=True):
        if condition.quantifier == "any" and part.decided and part.state is not State.NEAR:
            continue
        for point, leaf in _leaves(plan, condition, part):
            if not (leaf.state in OPEN or (leaf.state is State.NEAR and not is_open)):
                continue
            could = a.could if leaf.state in OPEN else "tip over"
            doubtful = "predicted to fail" in leaf.expectation
            change = Change(a.id, a.kind, could, leaf.state.value, a.then, doubtful)
            yield from (_Need(c, point, leaf.more, change) for c in _candidates(plan, condition, point, seen))


def _leaves(plan: Plan, condition: Condition, part: Verdict) -> list[tuple[str, Verdict]]:
    """Each load point of a condition with its verdict, in the order in which planner.evaluate judges them."""
    points: Sequence[str] = condition.load_points
    if condition.of.level in (Level.DEMAND, Level.STATIC) or condition.metric in OF_A_START:
        points = ("",)
    elif points == (EVERY_POINT,):
        points = sorted(plan.points())
    leaves = part.parts or (part,)
    return list(zip(points, leaves, strict=True)) if len(points) == len(leaves) else []


def _candidates(plan: Plan, condition: Condition, point: str, seen: _Seen) -> tuple[str, ...]:
    """Who has to run: nobody for demand and facts; of two sides those without a figure, else both."""
    if condition.of.level is Level.STATIC:
        return ()
    if condition.of.level is Level.DEMAND:
        return ("",)
    sides = tuple(c for c in (condition.candidate, condition.over) if c) or tuple(c.id for c in plan.candidates)
    lacking = tuple(c for c in sides if (_seen_as(condition), c, point or None) not in seen)
    return lacking or sides


def _starts_ride_along(groups: dict[tuple[str, str], list[_Need]], points: Mapping[str, int]) -> None:
    """Any run of a candidate starts it, so what a start tells comes with the first of its runs in the plan."""
    for key in [k for k in groups if k[0] and not k[1]]:
        runs = sorted((k for k in groups if k[0] == key[0] and k[1]), key=lambda k: points.get(k[1], len(points)))
        if runs:
            groups[runs[0]] = [*groups.pop(key), *groups[runs[0]]]


def _next(plan: Plan, candidate: str, point: str, group: Sequence[_Need], cost: PlanCost | None) -> Next:
    mores = [n.more for n in group if n.point == point]  # what a start tells asks for no more than one
    more = max((m for m in mores if m), key=lambda m: m.n, default=None) if all(mores) else None
    changes = tuple(dict.fromkeys(n.change for n in group))
    if not candidate:
        return Next("", "", 0, more, more.n * DAY_MIN if more else None, changes)
    stage = next((s.name for s in plan.stages if point in s.points), plan.stages[0].name if not point else "")
    known = stage != "" and any(c.id == candidate for c in plan.candidates)
    starts = _starts(plan, point, more)
    minutes = None
    if cost and known:
        runs = {Run(candidate, stage), Run(candidate, stage, point)}
        minutes = effort(cost, runs).minutes * starts / plan.starts
    return Next(candidate, point, starts, more, minutes, changes, known)


def _starts(plan: Plan, point: str, more: More | None) -> int:
    """Starts of the engine that would do: all of the plan's, or as many as bring what is missing."""
    if more is None or more.of == "days":
        return plan.starts
    if more.of == "starts":
        return more.n
    if more.of == "items":
        return 1  # a larger set; the same one again gives the same answers
    known = plan.points().get(point)
    each = counted_requests(known) * plan.repeats if known else more.n
    return max(1, math.ceil(more.n / each))
