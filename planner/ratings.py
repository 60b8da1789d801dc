"""What the catalogue rates, and what it does not know: a criterion without a rating is unknown, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.engine_schema import Axis, Engine
from planner.sensitivity import Rating
from planner.weighting import CRITERIA

# By which of these ratings an engine's speed under load stands or falls; no document proves the speed itself.
SPEED_CRITERIA = ("batching", "kv_management", "quantization")


def rated(engine: Engine, criterion: str) -> Axis:
    """The engine's entry for a criterion; one that its file lacks is an unknown rating."""
    found = engine.axes.get(criterion)
    if found is not None:
        return found
    return Axis(
        statement="Not rated.", rating=None, reason="The engine's file says nothing on this.", confidence="low",
        evidence_kind="inferred", versions=engine.version, read_on=engine.read_on,
        source=(f"{engine.id}.yaml has no entry for it",),
    )  # fmt: skip


def engine_ratings(engines: Mapping[str, Engine], criteria: Iterable[str] = CRITERIA) -> dict[str, dict[str, Rating]]:
    """Ratings by engine and criterion, None for unknown."""
    named = tuple(criteria)
    return {id: {c: a.rating if (a := e.axes.get(c)) else None for c in named} for id, e in engines.items()}
