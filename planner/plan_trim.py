"""A plan cut down to a time budget: the least informative goes first, and what is lost is named.

In this order, until it fits:
    1. load points that no hypothesis, no service level and no stage rule names, the longest first
    2. the same for one candidate alone: a point that is asked of others only, the longest first
    3. rungs of the ladder that only a stage's rule reads, the one farthest from the predicted setting first; the
       rungs on both sides of it stay
    4. repeats within a start: they share its KV capacity and its warm machine, so they tell little that is new
    5. starts, down to the three below which no mean is decided
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from planner.condition_line import EVERY_POINT
from planner.deciding import MIN_STARTS
from planner.errors import InputError
from planner.frozen import Frozen
from planner.plan_budget import PlanCost, SpeedOf, ladder, plan_cost, predicted_setting
from planner.poc import Plan, PlanCandidate
from planner.units import format_duration


class Lost(Frozen):
    """One thing that a budget cost, in words, why it was the least informative, and the minutes that it frees."""

    what: str
    why: str
    minutes: float


class Trimmed(Frozen):
    """A plan within its budget, what it costs, and what it lost."""

    plan: Plan
    cost: PlanCost
    lost: tuple[Lost, ...]


def trim(plan: Plan, budget_min: float, speed_of: SpeedOf) -> Trimmed:
    """Cut a plan down to `budget_min` minutes of machine time; the plan that comes back carries the budget.

    Raises InputError with the least possible time when even the smallest plan takes longer.
    """
    if budget_min <= 0:
        raise InputError(f"{budget_min:g} minutes are no time.", where="budget", fix="Leave it empty for no limit.")
    now, lost = plan.model_copy(update={"budget_min": budget_min}), list[Lost]()
    cost = plan_cost(now, speed_of)
    while cost.minutes > budget_min:
        step = next(_steps(now, cost, speed_of), None)
        if step is None:
            raise InputError(
                f"{format_duration(budget_min * 60)} is not enough: without a point that a hypothesis, a service "
                f"level or a stage rule needs, with one repeat and {now.starts} starts, the plan still takes "
                f"{format_duration(cost.minutes * 60)}.",
                where="budget",
                fix=f"Give it {ceil(cost.minutes)} minutes, or take out a hypothesis or a candidate.",
            )
        smaller, what, why = step
        after = plan_cost(smaller, speed_of)
        lost.append(Lost(what=what, why=why, minutes=cost.minutes - after.minutes))
        now, cost = smaller, after
    return Trimmed(plan=now, cost=cost, lost=tuple(lost))


Step = tuple[Plan, str, str]


def _steps(plan: Plan, cost: PlanCost, speed_of: SpeedOf) -> Iterator[Step]:
    """What can still go, the least informative first; a step is the smaller plan, what it lost, and why that."""
    asked = {c.id: _asked_of(plan, c) | _read_by_rules(plan, c) for c in plan.candidates}
    named = set().union(*asked.values())
    free = [p.name for p in plan.load_points if p.name not in named and cost.minutes_of(points=(p.name,))]
    for name in sorted(free, key=lambda n: (-cost.minutes_of(points=(n,)), n)):
        yield _without(plan, name), f"load point {name}", "no hypothesis, service level or stage rule names it"
    alone = {(p.candidate, p.point): p.times * p.seconds for p in cost.points if p.point not in asked[p.candidate]}
    for (who, name), _ in sorted(alone.items(), key=lambda run: -run[1]):
        yield _skipped(plan, who, name), f"{who} at {name}", "it is asked of the other candidates only"
    for name, stage, setting in _far_rungs(plan, speed_of):
        why = f"only the rule of stage {stage} reads it, and {setting} is predicted: the knee is found less finely"
        yield _without(plan, name), f"load point {name}", why
    if plan.repeats > 1:
        yield (
            plan.model_copy(update={"repeats": plan.repeats - 1}),
            f"repeat {plan.repeats} within each start", "repeats of one start are not independent of each other",
        )  # fmt: skip
    if plan.starts > MIN_STARTS:
        yield (
            plan.model_copy(update={"starts": plan.starts - 1}),
            f"start {plan.starts} of each server", "the spread between starts is known less well",
        )  # fmt: skip


def _asked_of(plan: Plan, candidate: PlanCandidate) -> set[str]:
    """Points at which a condition asks for a candidate, and the partner of each pair among them."""
    asked = [c for h in plan.hypotheses for c in h.conditions] + list(plan.service_levels)
    mine = [c for c in asked if c.candidate is None or candidate.id in (c.candidate, c.over)]
    names = {name for c in mine for name in c.load_points}
    if EVERY_POINT in names:
        return {p.name for p in plan.load_points}
    return names | {p.pair_of for p in plan.load_points if p.pair_of and p.name in names}


def _read_by_rules(plan: Plan, candidate: PlanCandidate) -> set[str]:
    """Points that the rule of a stage that still runs on a candidate looks at."""
    return {p.name for stage in plan.stages_of(candidate) if stage.rule for p in ladder(plan, stage)}


def _far_rungs(plan: Plan, speed_of: SpeedOf) -> list[tuple[str, str, int]]:
    """Rungs that may go, the farthest from the favourite's predicted setting first, each with the stage and that.

    Without a prediction no rung may go: nobody knows which of them the rule needs.
    """
    first = next((c for c in plan.candidates if c.role == "favourite"), plan.candidates[0])
    named = set().union(*(_asked_of(plan, c) for c in plan.candidates))
    found: list[tuple[int, str, str, int]] = []
    for stage in plan.stages:
        setting = predicted_setting(plan, first, stage, speed_of)
        if setting is None:
            continue
        rungs = ladder(plan, stage)
        at = next(i for i, p in enumerate(rungs) if p.in_flight == setting)
        far = [(abs(i - at), p.name) for i, p in enumerate(rungs) if p.name not in named]
        found += [(distance, name, stage.name, setting) for distance, name in far if distance > 1]
    return [(name, stage, setting) for _, name, stage, setting in sorted(found, key=lambda x: (-x[0], x[1]))]


def _skipped(plan: Plan, candidate: str, point: str) -> Plan:
    """A plan in which one candidate skips a point, and what is paired with it."""
    gone = (point, *(p.name for p in plan.load_points if p.pair_of == point))

    def own(c: PlanCandidate) -> PlanCandidate:
        return c.model_copy(update={"skips": tuple(dict.fromkeys((*c.skips, *gone)))}) if c.id == candidate else c

    return plan.model_copy(update={"candidates": tuple(own(c) for c in plan.candidates)})


def _without(plan: Plan, name: str) -> Plan:
    """A plan without a load point, without what is paired with it, and without a stage that would be empty."""
    gone = {name} | {p.name for p in plan.load_points if p.pair_of == name}
    stages = [s.model_copy(update={"points": tuple(n for n in s.points if n not in gone)}) for s in plan.stages]
    kept = [c.model_copy(update={"skips": tuple(n for n in c.skips if n not in gone)}) for c in plan.candidates]
    return plan.model_copy(update={
        "candidates": tuple(kept),
        "load_points": tuple(p for p in plan.load_points if p.name not in gone),
        "stages": tuple(s for s in stages if s.points),
    })  # fmt: skip
