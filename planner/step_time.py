"""How long one step of a server takes, in the virtual time of planner.queueing and the real time of the emulator."""

from __future__ import annotations

from pydantic import Field

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.throughput import MFU, ThroughputInputs, step_s


class StepTime(Frozen):
    """How long a step takes: a part by its batch and a part by the prompt tokens in it.

    Either stated (`base_s`, `per_request_s`), or from the inputs of a sizing, so that a full batch in decode runs at
    planner.throughput's speed without its averaged prefill; the prompts are charged in the steps that compute them.
    """

    base_s: float = Field(default=0.0, ge=0)
    per_request_s: float = Field(default=0.0, ge=0)
    prefill_s_per_token: float = Field(default=0.0, ge=0)
    inputs: ThroughputInputs | None = None
    kind: Kind = Kind.PLANNING

    @classmethod
    def of(cls, inputs: ThroughputInputs, input_tokens: int, kind: Kind = Kind.PLANNING) -> StepTime:
        """Step times of a sizing whose prompts have `input_tokens`; raises InputError without them."""
        if input_tokens < 1:
            raise InputError(f"prompts of {input_tokens} tokens take no prefill.", where="step time")
        share = 1.0 if kind is Kind.BOUND else MFU[inputs.family]
        return cls(inputs=inputs.model_copy(update={"averages_prefill": False}), kind=kind,
                   prefill_s_per_token=(inputs.prefill_s or 0.0) / share / input_tokens)  # fmt: skip

    def seconds(self, batch: int, prefill_tokens: int = 0) -> float:
        """Seconds of one step of `batch` requests; 0 for one without work."""
        if not batch:
            return 0.0
        decode_s = step_s(self.inputs, self.kind, batch) if self.inputs else 0.0
        return decode_s + self.base_s + self.per_request_s * batch + prefill_tokens * self.prefill_s_per_token
