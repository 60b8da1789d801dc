"""A stored condition that can no longer be read: kept as it was, so that a log outlives the metrics it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue, ValidationError

from planner.condition_line import format_number
from planner.conditions import Condition
from planner.errors import FliplineError
from planner.faults import first_fault
from planner.frozen import Frozen
from planner.metrics import METRICS


class Forgotten(Frozen):
    """The stored fields of a condition that this Flipline cannot read."""

    stored: dict[str, JsonValue]

    @property
    def why(self) -> str:
        """What is gone, as a clause."""
        metric = self.stored.get("metric")
        if metric not in METRICS:
            return f"the metric {str(metric)!r} no longer exists"
        try:
            Condition.model_validate(self.stored)
        except ValidationError as e:
            return f"it can no longer be read ({first_fault(e).rstrip('.')})"
        except FliplineError as e:
            return f"it can no longer be read ({e.what.rstrip('.')})"
        return "it can be read again"

    @property
    def line(self) -> str:
        """The condition as its line was, in its base unit: what the metric was called then is not known any more."""
        s = self.stored
        over = f" over {s['over']}" if s.get("over") else ""
        who = f"{s['candidate']}{over}: " if s.get("candidate") else ""
        statistic = "" if s.get("statistic", "value") == "value" else f" {s['statistic']}"
        upper = f" and {_number(s['upper'])}" if s.get("upper") is not None else ""
        points = s.get("load_points")
        where = f" at {', '.join(map(str, points))}" if isinstance(points, list) and points else ""
        days = f" over {s['window_days']} days" if s.get("window_days") else ""
        return f"{who}{s['metric']}{statistic} {s.get('comparison')} {_number(s.get('threshold'))}{upper}{where}{days}"


def remembered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a flip condition, with a condition that cannot be read moved to `forgotten`, or back from there.

    What never was a condition (no metric, no comparison, no threshold) is left to fail.
    """
    kept = fields.get("forgotten")
    if isinstance(kept, Forgotten):
        kept = kept.model_dump()
    raw = kept.get("stored") if isinstance(kept, Mapping) else fields.get("condition")
    if not isinstance(raw, Mapping) or not _once_a_condition(raw):
        return dict(fields)
    try:
        condition = Condition.model_validate(raw)
    except (ValidationError, FliplineError):
        return {**fields, "condition": None, "forgotten": {"stored": dict(raw)}}
    return {**fields, "condition": condition, "forgotten": None}


def _once_a_condition(raw: Mapping[str, Any]) -> bool:
    return isinstance(raw.get("metric"), str) and isinstance(raw.get("comparison"), str) and "threshold" in raw


def _number(value: JsonValue) -> str:
    return format_number(value) if isinstance(value, int | float) else str(value)
