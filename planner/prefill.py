"""What prompts cost: their operations, the first token without a queue, and what they take from those who decode."""

from __future__ import annotations

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.model_schema import Model
from planner.throughput import MFU, ThroughputInputs, step_s

# First token at up to 8 in flight: ms per request in flight, and the share of the matrix rate that one prompt reaches.
FIRST_TOKEN = {"dense": (15.0, 0.6), "moe": (9.0, 0.2)}
FEW_IN_FLIGHT = 4


def prefill_flops(model: Model, active_params: float, input_tokens: int) -> float:
    """Floating-point operations of one prompt: 2 per active parameter and token, and causal attention over pairs.

    `active_params` without the output projection, which runs for the last token only. Layers that see a window or
    keep a state pay for the pairs inside it (Hoffmann et al. 2022, appendix F; causal half counted).
    """
    linear, window = model.linear_attention, model.sliding_window
    full = model.num_hidden_layers
    pairs = 0.0
    if linear:
        full = linear.full_attention_layers
    elif window:
        full = window.full_attention_layers
        inside = min(window.window, input_tokens)
        pairs += window.windowed_layers * (inside * input_tokens - inside**2 / 2)
    pairs += full * input_tokens**2 / 2
    return 2.0 * active_params * input_tokens + 4.0 * pairs * model.num_attention_heads * model.head_dim


class FirstToken(Frozen):
    """Time to first token of a request that waits for nobody: a floor, and a planning value for few in flight."""

    floor_ms: float
    planning_ms: float
    prefill_ms_at_peak: float


def first_token(inputs: ThroughputInputs, in_flight: int = FEW_IN_FLIGHT) -> FirstToken | None:
    """TTFT without a queue, at a few requests in flight; None when the matrix rate is unknown.

    The floor is prefill at the usable matrix rate, or one reading of the weights if that takes longer. The planning
    value holds up to 8 in flight on vLLM; its errors are in docs/prediction.md. Beyond, TTFT is queueing.
    """
    if inputs.prefill_s is None:
        return None
    reading_s = inputs.active_weight_gb / (inputs.tensor_parallel * inputs.bandwidth_gb_s)
    fixed_ms, share = FIRST_TOKEN[inputs.family]
    peak_ms = inputs.prefill_s * 1000
    floor_ms = max(peak_ms, reading_s * 1000)
    planning_ms = max(floor_ms, fixed_ms * in_flight + peak_ms / share)
    return FirstToken(floor_ms=floor_ms, planning_ms=planning_ms, prefill_ms_at_peak=peak_ms)


class Interference(Frozen):
    """What long prompts do to those who decode, by the planning value, in ms.

    `undisturbed_ms` is a step without prompts, `averaged_ms` what prompts add to each step on average (and `share` of
    the step that is), `chunk_ms` what one chunk adds to the one step that carries it, `spike_ms` that step as a reader
    sees it: the gap between two tokens.
    """

    batch: int
    chunk_tokens: int
    undisturbed_ms: float
    averaged_ms: float
    chunk_ms: float

    @property
    def spike_ms(self) -> float:
        """The gap between two tokens while a chunk is computed."""
        return self.undisturbed_ms + self.chunk_ms

    @property
    def share(self) -> float:
        """Share of an average step that goes to prompts of others."""
        return self.averaged_ms / (self.undisturbed_ms + self.averaged_ms)


def interference(
    inputs: ThroughputInputs, batch: int, input_tokens: int, chunk_tokens: int = 8192
) -> Interference | None:
    """Prompts of `input_tokens` beside `batch` requests that decode; None when the matrix rate is unknown.

    `chunk_tokens` is the engine's budget of prompt tokens per step (vLLM max_num_batched_tokens); a prompt that is
    shorter is computed in one step. Raises InputError for lengths below 1.
    """
    if input_tokens < 1 or chunk_tokens < 1:
        raise InputError(f"prompts of {input_tokens} tokens in chunks of {chunk_tokens} are none.", where="prefill")
    if inputs.prefill_s is None:
        return None
    tokens = inputs.speculation.tokens_per_step if inputs.speculation else 1.0
    alone = step_s(inputs.model_copy(update={"averages_prefill": False}), Kind.PLANNING, batch)
    chunk_s = inputs.prefill_s / MFU[inputs.family] * min(chunk_tokens, input_tokens) / input_tokens
    return Interference(
        batch=batch, chunk_tokens=chunk_tokens, undisturbed_ms=1000 * tokens * alone,
        averaged_ms=1000 * tokens * (step_s(inputs, Kind.PLANNING, batch) - alone), chunk_ms=1000 * chunk_s,
    )  # fmt: skip
