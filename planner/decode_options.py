"""Two ways to serve that change the decode step: a draft that guesses ahead, and layers spread over stages."""

from __future__ import annotations

from pydantic import Field

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.throughput import ThroughputInputs, step_s

# One hop of activations to the next stage: a launch and a transfer of a few kB to a few MB.
STAGE_HOP_US = 50.0


class Speculation(Frozen):
    """Speculative decoding: `draft_tokens` guessed ahead, each accepted with `acceptance` whatever came before it.

    `draft_cost` is one draft step / one step of the model at the same batch: 0 for n-gram look-up, about 0.05 for a
    draft head. Independent acceptance is the paper's assumption (Leviathan, Kalman and Matias 2023, section 2.2); real
    acceptance falls with the position and differs between code and prose: measure it.
    """

    draft_tokens: int = Field(ge=1, le=64)
    acceptance: float = Field(ge=0, le=1)
    draft_cost: float = Field(default=0.05, ge=0, le=1)

    @property
    def tokens_per_step(self) -> float:
        """Expected tokens of one verification: (1 - a^(k+1)) / (1 - a), equation 1 of the paper."""
        if self.acceptance == 1:
            return self.draft_tokens + 1.0
        return (1 - self.acceptance ** (self.draft_tokens + 1)) / (1 - self.acceptance)


def speculative_token_s(inputs: ThroughputInputs, kind: Kind, batch: int, speculation: Speculation) -> float:
    """Mean seconds between two tokens of one request with a draft, to compare with `step_s`.

    A verification computes batch x (draft + 1) tokens: it touches the experts of all of them and pays their
    multiplications, but reads each request's KV once. Prompts are charged per token, as without a draft.
    """
    plain = step_s(inputs.model_copy(update={"averages_prefill": False}), kind, batch)
    tokens = batch * (speculation.draft_tokens + 1)
    per_token = inputs.kv_gb_per_request / (speculation.draft_tokens + 1)
    widened = inputs.model_copy(update={"kv_gb_per_request": per_token, "averages_prefill": False, "measured": ()})
    undrafted = inputs.model_copy(update={"averages_prefill": False, "measured": ()})
    # Measurements are of plain steps: they scale the verification by what they say of the plain step.
    verify = step_s(widened, kind, tokens) * plain / step_s(undrafted, kind, batch)
    prompts = step_s(inputs, kind, batch) - plain
    drafted = verify + speculation.draft_tokens * speculation.draft_cost * plain
    return drafted / speculation.tokens_per_step + prompts


def pipeline_step_s(inputs: ThroughputInputs, kind: Kind, batch: int, stages: int) -> float:
    """Seconds between two tokens of one request when the layers lie on `stages` units, one after the other.

    The batch is cut into as many parts, each at another stage; a token passes all of them, so one request is never
    faster than on one unit that held all layers, and only the KV of others gets out of its way. `inputs` describe one
    stage's devices with the weights of the whole model. Raises InputError where a stage would have no layer.
    """
    if not 1 <= stages <= inputs.layers:
        raise InputError(f"{inputs.layers} layers do not spread over {stages} stages.", where="pipeline parallel")
    part = -(-batch // stages)
    return step_s(inputs, kind, part) + (stages - 1) * STAGE_HOP_US * 1e-6
