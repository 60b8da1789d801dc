"""Decode speed from what one step reads: bound, coverage and planning value.

    bound      step = (active weights + batch x KV per request) / bandwidth
    coverage   the same, with the experts that `batch` tokens touch: E (1 - (1 - k/E)^batch) of E
    planning   coverage at 0.8 of the bandwidth + layers x overhead + batch x prefill / (MFU x output length)

The planning step counts batch^0.9 tokens as independent in their choice of experts, and is never shorter than coverage
or than its multiplications at the MFU. With a draft a step verifies several tokens of each request. Sources: the case's
calculator (bound); expected distinct experts under uniform routing (coverage); the constants are few, physical and the
same for every model: docs/prediction.md has them with their sources and the errors reached on public measurements.
"""

from __future__ import annotations

import math
from functools import lru_cache

from pydantic import Field, field_validator

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.speculation import Speculation

KINDS = (Kind.BOUND, Kind.COVERAGE, Kind.PLANNING)
BANDWIDTH_EFFICIENCY = 0.8
# Tokens of one batch share experts more than chance would have it: they touch as many as batch^0.9 independent ones.
ROUTING_INDEPENDENCE = 0.9
# Share of the matrix rate that prompts and large batches reach.
MFU = {"dense": 0.6, "moe": 0.3}
# Microseconds per layer: kernel launches (a layer with experts routes, permutes and runs two grouped multiplications),
# and the two all-reduces where devices share the model.
LAUNCH_US = {"dense": 20.0, "moe": 55.0}
COLLECTIVE_US = {1: 0.0, 2: 35.0, 4: 40.0, 8: 50.0}


class MeasuredRatio(Frozen):
    """What the team's own runs reached at one batch: measured speed / speed by the coverage bound; n runs, spread."""

    batch: int = Field(ge=1, le=4096)
    ratio: float = Field(gt=0)
    n: int = Field(ge=1)
    spread: float = Field(ge=0)


class ThroughputInputs(Frozen):
    """All that a speed is computed from, explicit, so that a figure can be reproduced from it alone.

    GB are decimal and count all devices that share the model. `active_weight_gb` is what the bound reads per step:
    where the maker states a round number of active parameters ("A3B"), that number in the plan's precision. The
    seed's calculator does the same (3.0 GB for 3 billion FP8 weights; counted by module it is 3.4 GB, because the
    output projection stays 16 bit), so its printed integers come out exactly. Coverage and planning never use it:
    they read `always_read_gb` and the touched share of `experts_gb`, counted by module.

    `prefill_s` is one prompt's prefill at the usable matrix rate, `token_s` one token's multiplications in a decode
    step; None when that rate is unknown, and then left out. `launch_scale` stretches the launch overhead.
    `kv_capacity` is how many requests of full context fit; None sets no limit. `averages_prefill` False leaves prefill
    out of the steps, for a caller that charges each prompt where it is computed. `measured` replaces the constants of
    the planning value where the team has measured, in ascending order of batch; it is of steps without a draft.
    """

    active_weight_gb: float = Field(gt=0)
    always_read_gb: float = Field(ge=0)
    experts_gb: float = Field(default=0.0, ge=0)
    n_experts: int = Field(default=0, ge=0)
    experts_per_token: int = Field(default=0, ge=0)
    kv_gb_per_request: float = Field(ge=0)
    bandwidth_gb_s: float = Field(gt=0)
    layers: int = Field(ge=1)
    tensor_parallel: int = Field(default=1, ge=1)
    output_tokens: int = Field(ge=1)
    prefill_s: float | None = Field(default=None, ge=0)
    token_s: float | None = Field(default=None, ge=0)
    launch_scale: float = Field(default=1.0, gt=0)
    kv_capacity: int | None = Field(default=None, ge=0)
    efficiency: float = Field(default=BANDWIDTH_EFFICIENCY, gt=0, le=1)
    averages_prefill: bool = True
    measured: tuple[MeasuredRatio, ...] = ()
    speculation: Speculation | None = None

    @field_validator("measured")
    @classmethod
    def _one_per_batch(cls, measured: tuple[MeasuredRatio, ...]) -> tuple[MeasuredRatio, ...]:
        batches = [m.batch for m in measured]
        if len(set(batches)) < len(batches):
            raise ValueError("measured: two ratios for one batch; pool the runs first.")
        return tuple(sorted(measured, key=lambda m: m.batch))

    @property
    def family(self) -> str:
        """dense or moe: the planning constants differ."""
        return "moe" if self.n_experts else "dense"

    def step_tokens(self, batch: int) -> int:
        """Tokens that one step of `batch` requests computes: with a draft the guesses are verified together."""
        return batch * (1 + self.speculation.draft_tokens) if self.speculation else batch


class BatchRow(Frozen):
    """One batch in one mode. `running` is the batch that the KV cache really holds; the rest waits in the queue."""

    kind: Kind
    batch: int
    running: int
    total_tok_s: float
    user_tok_s: float
    fits: bool
    meets_promise: bool
    meets_target: bool


def expert_coverage(n_experts: int, experts_per_token: int, batch: float) -> float:
    """Expected share of experts that `batch` tokens touch when each picks uniformly: 1 - (1 - k/E)^batch."""
    return 1.0 - math.pow(1.0 - experts_per_token / n_experts, batch)


def layer_overhead_us(inputs: ThroughputInputs) -> float:
    """Launches and all-reduce per layer; between two known numbers of devices the larger, beyond eight as for eight."""
    known = [n for n in COLLECTIVE_US if n >= inputs.tensor_parallel]
    return LAUNCH_US[inputs.family] * inputs.launch_scale + COLLECTIVE_US[min(known, default=8)]


def running_batch(inputs: ThroughputInputs, batch: int) -> int:
    """The batch clamped to what the KV cache holds. Raises InputError when it holds not one request."""
    if batch < 1:
        raise InputError(f"a batch of {batch} is not a load.", where="throughput", fix="Use 1 or more.")
    if inputs.kv_capacity is None:
        return batch
    if inputs.kv_capacity < 1:
        raise InputError("not one request fits the KV cache.", where="throughput", fix="Shorten the context.")
    return min(batch, inputs.kv_capacity)


def weights_read_gb(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    """Weights that one step of `batch` tokens reads, in GB."""
    if kind is Kind.BOUND:
        return inputs.active_weight_gb
    if not inputs.n_experts:
        return inputs.always_read_gb
    tokens = batch**ROUTING_INDEPENDENCE if kind is Kind.PLANNING else batch
    touched = expert_coverage(inputs.n_experts, inputs.experts_per_token, tokens)
    return inputs.always_read_gb + inputs.experts_gb * touched


def step_s(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    """Mean seconds between two tokens of one request while `batch` requests run; no clamp to the KV cache.

    The planning value follows the team's own measurements where there are any. With a draft it is the verification and
    the draft steps, divided by the tokens that they give. Raises InputError for a kind that is not computed here.
    """
    if inputs.speculation is None:
        return _plain_s(inputs, kind, batch)
    guess, (decode, undrafted, widened) = inputs.speculation, _drafted(inputs)
    plain_s = _plain_s(decode, kind, batch)
    # Measurements are of plain steps: they scale the verification by what they say of the plain step.
    verify_s = _plain_s(widened, kind, inputs.step_tokens(batch)) * plain_s / _plain_s(undrafted, kind, batch)
    prompts_s = _plain_s(inputs, kind, batch) - plain_s  # charged per token, as without a draft
    return (verify_s + guess.draft_tokens * guess.draft_cost * plain_s) / guess.tokens_per_step + prompts_s


@lru_cache(maxsize=32)
def _drafted(inputs: ThroughputInputs) -> tuple[ThroughputInputs, ThroughputInputs, ThroughputInputs]:
    """Inputs of a plain decode step, of one by the default constants, and of one that verifies a draft.

    A verification touches the experts of all its tokens and pays their multiplications, but reads each request's KV
    once: per token a share of it.
    """
    decode = inputs.model_copy(update={"averages_prefill": False})
    undrafted = decode.model_copy(update={"measured": ()})
    kv_gb = inputs.kv_gb_per_request / inputs.step_tokens(1)
    return decode, undrafted, undrafted.model_copy(update={"kv_gb_per_request": kv_gb})


def _plain_s(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    if kind not in KINDS:
        raise InputError(f"{kind.value!r} is not computed from bandwidth.", where="throughput")
    if kind is not Kind.PLANNING:
        return _reading_s(inputs, kind, batch)
    if not inputs.measured:
        return _planning_s(inputs, batch, averages_prefill=inputs.averages_prefill)
    table = _calibrated_s(inputs)
    if batch <= len(table):
        return table[batch - 1]
    return max(
        table[-1], _planning_s(inputs, batch, averages_prefill=inputs.averages_prefill) / correction(inputs, batch)
    )


def _reading_s(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    read_gb = weights_read_gb(inputs, kind, batch) + batch * inputs.kv_gb_per_request
    return read_gb / (inputs.tensor_parallel * inputs.bandwidth_gb_s)


def _planning_s(inputs: ThroughputInputs, batch: int, *, averages_prefill: bool) -> float:
    mfu = MFU[inputs.family]
    overhead_s = inputs.layers * layer_overhead_us(inputs) * 1e-6
    # Correlated routing saves reading, but never more than the share of the bandwidth that is lost costs.
    uniform_s = _reading_s(inputs, Kind.COVERAGE, batch)
    reading_s = max(uniform_s, _reading_s(inputs, Kind.PLANNING, batch) / inputs.efficiency)
    decode_s = max(reading_s, batch * (inputs.token_s or 0.0) / mfu) + overhead_s
    # In steady state each request's lifetime of output_tokens steps carries one prefill of every other request.
    prefill_s = batch * (inputs.prefill_s or 0.0) / (mfu * inputs.output_tokens)
    return decode_s + prefill_s if averages_prefill else decode_s


def correction(inputs: ThroughputInputs, batch: int) -> float:
    """Measured speed / speed by the default constants at this batch; 1 without measurements.

    Between two measured batches linear in the logarithm of the batch, outside them the nearest one's.
    """
    known = [(m.batch, m.ratio * _planning_s(inputs, m.batch, averages_prefill=True)
              / _reading_s(inputs, Kind.COVERAGE, m.batch)) for m in inputs.measured]  # fmt: skip
    if not known:
        return 1.0
    below = [k for k in known if k[0] <= batch]
    above = [k for k in known if k[0] >= batch]
    if not below or not above:
        return (above[:1] or below[-1:])[0][1]
    (low, first), (high, second) = below[-1], above[0]
    if low == high:
        return first
    return first + (second - first) * math.log(batch / low) / math.log(high / low)


def extrapolated(inputs: ThroughputInputs, batch: int) -> bool:
    """Whether a planning value rests on measurements made only at smaller or only at larger batches."""
    batches = [m.batch for m in inputs.measured]
    return bool(batches) and not min(batches) <= batch <= max(batches)


@lru_cache(maxsize=32)
def _calibrated_s(inputs: ThroughputInputs) -> tuple[float, ...]:
    """Planning steps of batch 1 to the largest measured one, never falling: noise must not make a larger batch faster.

    The search for the largest batch that keeps a promise relies on it.
    """
    steps: list[float] = []
    for batch in range(1, inputs.measured[-1].batch + 1):
        own = _planning_s(inputs, batch, averages_prefill=inputs.averages_prefill) / correction(inputs, batch)
        steps.append(max(own, steps[-1]) if steps else own)
    return tuple(steps)


def total_tok_s(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    """Output tokens per second of all running requests."""
    running = running_batch(inputs, batch)
    return running / step_s(inputs, kind, running)


def user_tok_s(inputs: ThroughputInputs, kind: Kind, batch: int) -> float:
    """Output tokens per second of one running request; what waits in the queue waits before its first token."""
    return 1.0 / step_s(inputs, kind, running_batch(inputs, batch))


def batch_row(inputs: ThroughputInputs, kind: Kind, batch: int, promise: float, target: float) -> BatchRow:
    """One row of the batch table; a batch that does not fit never meets a promise."""
    running = running_batch(inputs, batch)
    speed = user_tok_s(inputs, kind, batch)
    fits = running == batch
    return BatchRow(
        kind=kind, batch=batch, running=running, total_tok_s=total_tok_s(inputs, kind, batch), user_tok_s=speed,
        fits=fits, meets_promise=fits and speed >= promise, meets_target=fits and speed >= target,
    )  # fmt: skip


def largest_batch(inputs: ThroughputInputs, kind: Kind, user_rate: float, limit: int = 4096) -> int:
    """Largest batch that fits and still gives each user `user_rate` tok/s; 0 when not even one does."""
    high = limit if inputs.kv_capacity is None else min(limit, inputs.kv_capacity)
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if 1.0 / step_s(inputs, kind, middle) >= user_rate:
            low = middle
        else:
            high = middle - 1
    return low
