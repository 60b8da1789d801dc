"""How many units the users need under both constraints."""

from __future__ import annotations

import math
from typing import Literal

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.requirements import Requirements
from planner.throughput import ThroughputInputs, largest_batch, step_s, total_tok_s
from planner.units import format_tok_s

BY_KIND = {
    Kind.BOUND: "by the bound",
    Kind.COVERAGE: "when experts touched are counted",
    Kind.PLANNING: "by the planning value",
}
Binding = Literal["per-user speed", "total throughput", "KV memory", "out of reach"]


class UnitsNeeded(Frozen):
    """Units for a number of users in one mode, under both constraints; None where no number of units is enough."""

    kind: Kind
    users: int
    target_tok_s: float
    needed_tok_s: float
    unit_tok_s: float
    unit_user_tok_s: float
    alone_tok_s: float
    largest_batch: int
    units_by_total: int
    units_by_user: int | None
    binding: Binding

    @property
    def units(self) -> int | None:
        """Units that satisfy both constraints."""
        return None if self.units_by_user is None else max(self.units_by_total, self.units_by_user)

    @property
    def units_with_spare(self) -> int | None:
        """N + 1."""
        return None if self.units is None else self.units + 1


def units_for_rate(peak_rate: float, unit_rate: float, utilisation: float = 0.7, spare: int = 1) -> tuple[int, int]:
    """Units for a peak rate when each runs at `utilisation` of its measured capacity, and the same with spares."""
    if unit_rate <= 0 or not 0 < utilisation <= 1:
        raise InputError("capacity must be above 0 and utilisation above 0 and at most 1.", where="units for a rate")
    units = math.ceil(peak_rate / (unit_rate * utilisation) - 1e-9)
    return units, units + spare


def units_needed(inputs: ThroughputInputs, kind: Kind, users: int, target: float) -> UnitsNeeded:
    """Both constraints: users x target in total, and the largest batch that still gives each user the target."""
    batch = largest_batch(inputs, kind, target)
    unit_total = total_tok_s(inputs, kind, users)
    by_total = math.ceil(users * target / unit_total - 1e-9)
    by_user = math.ceil(users / batch) if batch else None
    binding: Binding = "total throughput"
    if by_user is None:
        binding = "out of reach"
    elif by_user >= by_total:
        at_capacity = batch == inputs.kv_capacity and 1.0 / step_s(inputs, kind, batch + 1) >= target
        binding = "KV memory" if at_capacity else "per-user speed"
    return UnitsNeeded(
        kind=kind, users=users, target_tok_s=target, needed_tok_s=users * target, unit_tok_s=unit_total,
        unit_user_tok_s=unit_total / users,
        alone_tok_s=1.0 / step_s(inputs, kind, 1), largest_batch=batch, units_by_total=by_total, units_by_user=by_user,
        binding=binding,
    )  # fmt: skip


def units_sentence(units: tuple[UnitsNeeded, ...], r: Requirements, dense: bool, devices: int) -> str:
    """The answer for the upper end of the peak in two sentences: what one unit gives, and how many are needed."""
    at_peak = [u for u in units if u.users == r.peak_users_max]
    if not at_peak:
        return "No number of units can be given: see the warnings."
    # Without experts to touch, coverage says what the bound says.
    shown = [u for u in at_peak if not (dense and u.kind is Kind.COVERAGE)]
    users = "1 user" if r.peak_users_max == 1 else f"{r.peak_users_max:,} users"
    counts = ", ".join(_count_words(u, first=i == 0) for i, u in enumerate(shown))
    bindings = sorted({u.binding for u in shown})
    decides = bindings[0] if len(bindings) == 1 else shown[-1].binding
    tail = "" if decides == "out of reach" else f"; {decides} decides"
    of = f" of {devices} devices" if devices > 1 else ""
    bound = at_peak[0]
    each = format_tok_s(bound.unit_user_tok_s)
    return (
        f"One unit{of} gives {users} at once {format_tok_s(bound.unit_tok_s)} by the bound, {each} each; "
        f"needed are {format_tok_s(bound.needed_tok_s)}. "
        f"At {r.user_tok_s_target:g} tok/s each that is {counts}{tail}."
    )


def _count_words(u: UnitsNeeded, *, first: bool) -> str:
    if u.units is None:
        return f"out of reach {BY_KIND[u.kind]} ({format_tok_s(u.alone_tok_s)} for one user alone)"
    unit = (" unit" if u.units == 1 else " units") if first else ""
    return f"{u.units}{unit} {BY_KIND[u.kind]}"
