"""Layers spread over stages: every figure of a unit from what one part of its batch sees.

A unit of S stages cuts its batch into S parts that pass the stages one behind the other. Each part is served as on one
stage's devices that held the whole model, so a unit gives S times a part's total at a part's speed per user;
handing on costs some 50 us a stage, which is below the error of the planning value.
"""

from __future__ import annotations

import math

from planner.completion import Completion, completion
from planner.conditions import Kind
from planner.errors import InputError
from planner.scaling import Binding, UnitsNeeded, units_needed
from planner.throughput import BatchRow, ThroughputInputs, batch_row, largest_batch, step_s


def part_of(inputs: ThroughputInputs, stages: int) -> ThroughputInputs:
    """The inputs of one part: its share of the KV cache. Raises InputError where that holds not one request."""
    if stages == 1 or inputs.kv_capacity is None:
        return inputs
    if inputs.kv_capacity < stages:
        raise InputError(
            f"{inputs.kv_capacity} requests fit, fewer than {stages} stages: some would always stand idle.",
            where="pipeline parallel", fix="Use fewer stages or a shorter context.",
        )  # fmt: skip
    return inputs.model_copy(update={"kv_capacity": inputs.kv_capacity // stages})


def staged_row(
    inputs: ThroughputInputs, stages: int, kind: Kind, batch: int, promise: float, target: float
) -> BatchRow:  # fmt: skip
    """One row of the batch table for a unit of so many stages."""
    row = batch_row(part_of(inputs, stages), kind, -(-batch // stages), promise, target)
    running = min(batch, row.running * stages)
    return row.model_copy(update={"batch": batch, "running": running, "total_tok_s": running * row.user_tok_s})


def staged_largest(inputs: ThroughputInputs, stages: int, kind: Kind, user_rate: float) -> int:
    """Largest batch of a unit that still gives each user the rate."""
    return stages * largest_batch(part_of(inputs, stages), kind, user_rate)


def staged_units(inputs: ThroughputInputs, stages: int, kind: Kind, users: int, target: float) -> UnitsNeeded:
    """Units of so many stages under both constraints."""
    part = units_needed(part_of(inputs, stages), kind, -(-users // stages), target)
    if stages == 1:
        return part
    largest, total = part.largest_batch * stages, staged_row(inputs, stages, kind, users, target, target).total_tok_s
    by_total = math.ceil(users * target / total - 1e-9)
    by_user = math.ceil(users / largest) if largest else None
    binding: Binding = part.binding if by_user is None or by_user >= by_total else "total throughput"
    if binding == "total throughput" and by_user is not None and by_user >= by_total:
        binding = "per-user speed"
    return part.model_copy(update={
        "users": users, "needed_tok_s": users * target, "unit_tok_s": total, "unit_user_tok_s": total / users,
        "largest_batch": largest, "units_by_total": by_total, "units_by_user": by_user, "binding": binding,
    })  # fmt: skip


def staged_completion(inputs: ThroughputInputs, stages: int, kind: Kind, users: int) -> Completion:
    """Sequential against batched completion on a unit of so many stages."""
    part = completion(part_of(inputs, stages), kind, -(-users // stages))
    alone_s = users * inputs.output_tokens * step_s(inputs, kind, 1)
    return part.model_copy(update={"users": users, "sequential_s": alone_s})
