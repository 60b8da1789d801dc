"""Load points that no stage of a plan runs: the loads under which figures from elsewhere were taken."""

from __future__ import annotations

from collections.abc import Iterable

from planner.loads import LoadPoint
from planner.poc import Plan


def run_points(plan: Plan) -> tuple[LoadPoint, ...]:
    """The points of a plan that some stage runs."""
    named = {name for stage in plan.stages for name in stage.points}
    return tuple(p for p in plan.load_points if p.name in named)


def offered_elsewhere(plan: Plan) -> tuple[LoadPoint, ...]:
    """The points of a plan that none of its stages runs."""
    run = run_points(plan)
    return tuple(p for p in plan.load_points if p not in run)


def with_offered(plan: Plan, points: Iterable[LoadPoint]) -> Plan:
    """A plan that knows these points besides its own, which keep their names."""
    known = {p.name for p in plan.load_points}
    return plan.model_copy(update={
        "load_points": (*plan.load_points, *(p for p in points if p.name not in known))
    })  # fmt: skip
