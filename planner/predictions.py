"""What sizing expects at each load point, as evidence of the kinds that never decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from planner.capacity import Sizing
from planner.conditions import Evidence, Kind
from planner.loads import LoadPoint
from planner.throughput import KINDS, total_tok_s, user_tok_s


def predict(sizing: Sizing, candidate: str, points: Sequence[LoadPoint], at: datetime) -> tuple[Evidence, ...]:
    """Speed per user, in total and over the coverage bound at closed points, and the first token when nobody waits.

    Empty where the sizing knows no speed. Open loops are left out: their load follows from latency, not the reverse; so
    are points whose requests are not as long as those that the sizing counts.
    """
    return tuple(_predictions(sizing, candidate, points, at))


def _predictions(sizing: Sizing, candidate: str, points: Sequence[LoadPoint], at: datetime) -> Iterator[Evidence]:
    if sizing.inputs is None:
        return

    def piece(kind: Kind, point: str, metric: str, statistic: str, value: float, unit: str) -> Evidence:
        return Evidence(
            id=f"sizing/{candidate}/{point}/{metric}/{statistic}/{kind.value}",
            metric=metric,
            statistic=statistic,
            value=value,
            unit=unit,
            kind=kind,
            source="sizing",
            at=at,
            candidate=candidate,
            load_point=point,
            note=f"{sizing.model} on {sizing.gpu}, {sizing.context_tokens:,} tokens of context",
        )

    for name, in_flight in _counted(sizing, points):
        for kind in KINDS:
            user = user_tok_s(sizing.inputs, kind, in_flight)
            yield piece(kind, name, "user_tok_s", "p5", user, "tok/s")
            total = total_tok_s(sizing.inputs, kind, in_flight)
            yield piece(kind, name, "output_tok_s", "value", total, "tok/s")
        over = total_tok_s(sizing.inputs, Kind.PLANNING, in_flight) / total_tok_s(
            sizing.inputs, Kind.COVERAGE, in_flight
        )
        yield piece(Kind.PLANNING, name, "measured_over_bound", "value", over, "x")
        if in_flight == 1 and sizing.first_token:
            yield piece(Kind.PLANNING, name, "ttft_ms", "p95", sizing.first_token.planning_ms, "ms")
            yield piece(Kind.BOUND, name, "ttft_ms", "p95", sizing.first_token.floor_ms, "ms")


def bound_tok_s(sizing: Sizing, points: Sequence[LoadPoint]) -> dict[str, float]:
    """The coverage bound of the total per closed point, in tok/s: what measured_over_bound divides by."""
    if sizing.inputs is None:
        return {}
    return {
        name: round(total_tok_s(sizing.inputs, Kind.COVERAGE, in_flight), 3)
        for name, in_flight in _counted(sizing, points)
    }


def _counted(sizing: Sizing, points: Sequence[LoadPoint]) -> Iterator[tuple[str, int]]:
    """Closed points whose requests surely hold as many tokens as the sizing counts, with how many are in flight."""
    for p in points:
        if (
            p.shape == "closed"
            and p.in_flight
            and not p.free_length
            and p.input_tokens + p.output_tokens == sizing.context_tokens
        ):
            yield p.name, p.in_flight
