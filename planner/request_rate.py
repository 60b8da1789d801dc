"""Units for a rate of requests, beside the units for users at once: what one unit finishes at a safe utilisation."""

from __future__ import annotations

from planner.conditions import Kind
from planner.frozen import Frozen
from planner.pipeline import staged_largest, staged_row
from planner.requirements import Requirements
from planner.scaling import units_for_rate
from planner.throughput import ThroughputInputs

DEFAULT_UTILISATION = 0.7


class RateNeeded(Frozen):
    """Units for a peak of requests per second by the planning value.

    `in_flight` is what that rate means at the target speed (Little's law), without waiting; `batch` is the largest that
    keeps the target, at which one unit finishes `unit_rate_per_s`. Where not one user gets the target, units are None.
    """

    peak_rate_per_s: float
    utilisation: float
    batch: int
    unit_rate_per_s: float
    in_flight: float
    units: int | None
    units_with_spare: int | None


def rate_needed(
    inputs: ThroughputInputs, stages: int, r: Requirements, peak_rate_per_s: float, utilisation: float
) -> RateNeeded:  # fmt: skip
    """Requests per second that one unit finishes within the target speed, and the units that keep it at utilisation."""
    target = r.user_tok_s_target
    batch = staged_largest(inputs, stages, Kind.PLANNING, target)
    total = staged_row(inputs, stages, Kind.PLANNING, batch, target, target).total_tok_s if batch else 0.0
    unit_rate = total / r.output_tokens
    units, spared = units_for_rate(peak_rate_per_s, unit_rate, utilisation) if batch else (None, None)
    return RateNeeded(
        peak_rate_per_s=peak_rate_per_s, utilisation=utilisation, batch=batch, unit_rate_per_s=unit_rate,
        in_flight=peak_rate_per_s * r.output_tokens / r.user_tok_s_target, units=units, units_with_spare=spared,
    )  # fmt: skip


def offered_rate(r: Requirements) -> float:
    """Requests per second at the upper end of the peak, from users and requests per user and minute."""
    return r.peak_users_max * r.requests_per_user_per_min / 60
