"""The same users one after the other and all at once."""

from __future__ import annotations

from planner.conditions import Kind
from planner.frozen import Frozen
from planner.throughput import ThroughputInputs, running_batch, step_s, weights_read_gb


class Completion(Frozen):
    """When the last user has an answer, one after the other and all at once, and what a step reads."""

    kind: Kind
    users: int
    output_tokens: int
    sequential_s: float
    batched_s: float
    step_weights_gb: float
    step_kv_gb: float

    @property
    def speed_up(self) -> float:
        """How many times sooner the last user is served."""
        return self.sequential_s / self.batched_s

    @property
    def step_gb(self) -> float:
        """Bytes of one step, in GB."""
        return self.step_weights_gb + self.step_kv_gb


def completion(inputs: ThroughputInputs, kind: Kind, users: int) -> Completion:
    """Sequential against batched completion of `users` answers; those beyond the KV cache follow in waves."""
    running = running_batch(inputs, users)
    waves = -(-users // running)
    return Completion(
        kind=kind,
        users=users,
        output_tokens=inputs.output_tokens,
        sequential_s=users * inputs.output_tokens * step_s(inputs, kind, 1),
        batched_s=waves * inputs.output_tokens * step_s(inputs, kind, running),
        step_weights_gb=weights_read_gb(inputs, kind, inputs.step_tokens(running)),
        step_kv_gb=running * inputs.kv_gb_per_request,
    )
