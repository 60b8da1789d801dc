"""What testing a hypothesis costs: minutes of the machine and tokens, runs that several share counted once.

A run is one load point on one candidate in one stage, for all starts and repeats of the plan; what it takes stands in
the plan's cost (planner/plan_budget.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.choosing import OF_A_START
from planner.condition_line import EVERY_POINT
from planner.conditions import Condition
from planner.metrics import Level
from planner.plan_budget import PlanCost, ladder
from planner.poc import Hypothesis, Plan, Stage


class Run(NamedTuple):
    """One load point on one candidate in one stage; an empty point is the start of the server."""

    candidate: str
    stage: str
    point: str = ""


class Effort(NamedTuple):
    """Minutes and tokens of a set of runs; `unpredicted` are load points that are counted at the limit."""

    minutes: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    unpredicted: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt_tokens + self.output_tokens


def runs_of(plan: Plan, h: Hypothesis) -> frozenset[Run]:
    """Every run without which a hypothesis cannot be judged."""
    return frozenset(run for c in h.conditions for run in _of_condition(plan, c))


def every_run(plan: Plan) -> frozenset[Run]:
    """All that the plan runs, whether or not a hypothesis asks for it."""
    return frozenset(
        run for c in plan.candidates for s in plan.stages for run in _of_points(plan, c.id, s, s.points)
    )  # fmt: skip


def _of_condition(plan: Plan, condition: Condition) -> Iterator[Run]:
    if condition.of.level in (Level.DEMAND, Level.STATIC):
        return
    named = [c for c in (condition.candidate, condition.over) if c]
    for candidate in named or [c.id for c in plan.candidates]:
        if condition.metric in OF_A_START:
            yield Run(candidate, plan.stages[0].name)
        elif EVERY_POINT in condition.load_points:
            for stage in plan.stages:
                yield from _of_points(plan, candidate, stage, stage.points)
        else:
            for name in condition.load_points:
                first = next((s for s in plan.stages if name in s.points), None)
                if first:
                    yield from _of_points(plan, candidate, first, (name,))


def _of_points(plan: Plan, candidate: str, stage: Stage, names: Iterable[str]) -> Iterator[Run]:
    """The start, the points with their pairs, and the stage whose result sets this one up."""
    yield Run(candidate, stage.name)
    for name in names:
        yield Run(candidate, stage.name, name)
        if pair := plan.point(name).pair_of:
            yield Run(candidate, stage.name, pair)
    for before in plan.stages[: plan.stages.index(stage)]:
        if stage.rule and before.name == stage.rule.from_stage:
            yield from _of_points(plan, candidate, before, [p.name for p in ladder(plan, stage)])


def effort(cost: PlanCost, runs: Iterable[Run]) -> Effort:
    """Minutes and tokens of runs, as the cost of the whole plan has them."""
    wanted = set(runs)
    points = [p for p in cost.points if Run(p.candidate, p.stage, p.point) in wanted]
    starts = [s for s in cost.starts if Run(s.candidate, s.stage) in wanted]
    return Effort(
        minutes=(sum(p.total_s for p in points) + sum(s.total_s for s in starts)) / 60,
        prompt_tokens=sum(p.times * p.prompt_tokens for p in points),
        output_tokens=sum(p.times * p.output_tokens for p in points),
        unpredicted=tuple(sorted({p.point for p in points if p.ends == "no prediction"})),
    )  # fmt: skip
