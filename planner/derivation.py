"""How a figure came about: formula in words, inputs with their sources, assumptions that dominate, known error."""

from __future__ import annotations

from planner.catalog import Gpu, Model
from planner.conditions import Kind
from planner.cost import Cost
from planner.fit import Footprint
from planner.frozen import Frozen
from planner.memory import CUDA_GRAPHS_GIB, NON_TORCH_GIB, RESERVE_BAND
from planner.quantization import Quantization
from planner.requirements import Requirements
from planner.scaling import UnitsNeeded
from planner.throughput import (
    BANDWIDTH_EFFICIENCY,
    MFU,
    Completion,
    FirstToken,
    ThroughputInputs,
    layer_overhead_us,
    step_s,
)
from planner.units import format_duration, format_gb, format_gib, format_tok_s


class DerivedInput(Frozen):
    """One input of a figure, as text with its unit, and where it comes from."""

    name: str
    value: str
    source: str


class Derivation(Frozen):
    """One figure explained; `band` is the known error of this kind of estimate."""

    key: str
    title: str
    value: str
    formula: str
    inputs: tuple[DerivedInput, ...]
    assumptions: tuple[str, ...] = ()
    band: str

    def lines(self) -> tuple[str, ...]:
        """The explanation as plain text, one statement a line."""
        return (
            f"{self.title}: {self.value}",
            f"formula: {self.formula}",
            *(f"{i.name} = {i.value} ({i.source})" for i in self.inputs),
            *(f"assumes: {a}" for a in self.assumptions),
            f"known error: {self.band}",
        )


REQUIREMENTS = "requirements"


def _given(name: str, value: str, source: str) -> DerivedInput:
    return DerivedInput(name=name, value=value, source=source)


def memory_derivations(model: Model, quant: Quantization, gpu: Gpu, memory: Footprint) -> tuple[Derivation, ...]:
    """Weights, KV cache, reserve and the requests that fit."""
    settings, device, budget = memory.settings, memory.device, memory.budget
    weights, kept, engine = memory.weights, memory.reserve, memory.engine_kv
    token, context = memory.kv_bytes_per_token, settings.context_tokens
    dimensions = _given("dimensions", model.id, model.source)
    cache = _given("KV cache precision", settings.kv_dtype, "model plan")
    return (
        Derivation(
            key="weights", title="Weights", value=format_gb(weights.total),
            formula="parameters per module x bits of that module / 8, all experts counted",
            inputs=(dimensions, _given("format", f"{quant.id}, {quant.bits:g} bit", quant.basis),
                    _given("experts", format_gb(weights.experts), "computed from the dimensions")),
            assumptions=("norms and biases are left out (0.1 %)", "weights divide evenly over the devices"),
            band="text-only within 1 % of vLLM's log (mean 0.4 %); a vision tower that is not stated adds 1-1.5 GB",
        ),
        Derivation(
            key="kv_per_token", title="KV cache per token", value=f"{token:,} bytes",
            formula="kept elements per layer x layers x bytes per element, by kind of layer",
            inputs=(dimensions, cache),
            assumptions=("tokens inside every sliding window",) if model.sliding_window else (),
            band="exact for the modelled architectures",
        ),
        Derivation(
            key="kv_per_request", title="KV cache per request", value=format_gb(memory.kv_bytes_per_request),
            formula="full layers x context + windowed layers x min(context, window) + fixed state",
            inputs=(_given("per token", f"{token:,} bytes", "computed"),
                    _given("context", f"{context:,} tokens", REQUIREMENTS)),
            assumptions=("every request fills its context",),
            band="exact for the modelled architectures",
        ),
        Derivation(
            key="reserve", title="Reserve of the engine", value=format_gib(kept.total),
            formula="peak activations + buffers outside the allocator + captured graphs",
            inputs=(_given("activations", format_gib(kept.activations), "vLLM 0.19 logs on H100: copies of the logits"),
                    _given("outside the allocator", format_gib(kept.non_torch),
                           f"the same logs: {NON_TORCH_GIB[1]:g} GiB, {NON_TORCH_GIB[2]:g} with several devices"),
                    _given("graphs", f"{CUDA_GRAPHS_GIB:g} GiB", "the same logs: 0.5-1.9")),
            assumptions=("vLLM 0.17 or later",),
            band=RESERVE_BAND,
        ),
        Derivation(
            key="kv_pool", title="KV cache", value=format_gb(budget.kv),
            formula="device total - left outside - other tenants - weights - reserve",
            inputs=(_given("device total", format_gib(device.total), device.assumed or gpu.source),
                    _given("left outside", format_gb(budget.outside),
                           f"engine takes {device.gpu_memory_utilization:.2f} of the total"),
                    _given("other tenants", format_gb(budget.tenants), REQUIREMENTS)),
            assumptions=("the driver's total, not the figure on the box",),
            band="follows the reserve: 2-6 GiB by engine version; 20 % between starts were seen on small cards",
        ),
        Derivation(
            key="requests_that_fit", title="Requests that fit at once", value=f"{memory.requests_that_fit:,}",
            formula="blocks in the pool / blocks per request, rounded down",
            inputs=(_given("blocks", f"{engine.blocks:,} of {engine.block_tokens} tokens", "vLLM's block arithmetic"),
                    _given("context", f"{context:,} tokens", REQUIREMENTS)),
            assumptions=("every request fills its context", "no prefix is shared"),
            band="0.1 % from a known pool, hybrids and windows included; else as the pool",
        ),
    )  # fmt: skip


def speed_derivations(
    inputs: ThroughputInputs, gpu: Gpu, rate: tuple[float, str] | None, first: FirstToken | None, r: Requirements
) -> tuple[Derivation, ...]:
    """The three speeds and the first token."""
    bandwidth = _given("bandwidth", f"{inputs.bandwidth_gb_s:g} GB/s a device", gpu.source)
    cache = _given("KV per request", f"{inputs.kv_gb_per_request:.3f} GB", "computed at the full context")
    read = _given("always read", f"{inputs.always_read_gb:.2f} GB", "counted by module")
    experts = _given(
        "experts",
        f"{inputs.experts_per_token} of {inputs.n_experts}, {inputs.experts_gb:.1f} GB in all",
        "model's config",
    )
    routed = (experts,) if inputs.n_experts else ()
    family = "mixture of experts" if inputs.n_experts else "dense"
    overhead = layer_overhead_us(inputs.tensor_parallel)
    tflops = _given("matrix rate", f"{rate[0]:g} TFLOPS", f"{rate[1]}; {gpu.source}") if rate else None
    result = [
        Derivation(
            key="bound", title="Bound", value=_alone(inputs, Kind.BOUND),
            formula="batch x bandwidth / (active weights read once + batch x KV per request)",
            inputs=(_given("active weights", f"{inputs.active_weight_gb:.2f} GB", "maker's figure where there is one"),
                    cache, bandwidth),
            assumptions=("only bytes count", "the whole batch uses the experts of one token") if routed else
                        ("only bytes count",),
            band=f"optimistic: measured time per token at the median of public server runs ({family}) is "
                 f"{'14' if routed else '3'} times as long; for one user alone 1.2-1.5 times",
        ),
        Derivation(
            key="coverage", title="Bound with the experts touched", value=_alone(inputs, Kind.COVERAGE),
            formula="experts read = E x (1 - (1 - k/E)^batch); the rest as in the bound",
            inputs=(read, *routed, cache, bandwidth),
            assumptions=("tokens pick experts uniformly; correlated routing was measured up to 1.5 times faster",),
            band="measured time per token at the median of public server runs is 3 times as long",
        ),
        Derivation(
            key="planning", title="Planning value", value=_alone(inputs, Kind.PLANNING),
            formula=f"coverage step / {BANDWIDTH_EFFICIENCY:g} + layers x overhead + batch x prefill / (MFU x answer)",
            inputs=(read, *routed, cache, bandwidth,
                    _given("overhead", f"{overhead:g} us a layer", "checked on public runs"),
                    _given("prompt and answer", f"{r.input_tokens:,} and {r.output_tokens:,} tokens", REQUIREMENTS),
                    _given("MFU", f"{MFU[inputs.family]:g}", "checked on public runs"),
                    *((tflops,) if tflops else ())),
            assumptions=("steady state", "every request fills its context",
                         *(() if tflops else ("prefill left out: the matrix rate is unknown",))),
            band="mean error 23 %, 76 % of 1,352 public rows within 30 %" if routed else
                 "mean error 18 %, 83 % of 998 public rows within 30 %",
        ),
    ]  # fmt: skip
    if first and tflops:
        floor, planned = format_duration(first.floor_ms / 1000), format_duration(first.planning_ms / 1000)
        result.append(Derivation(
            key="first_token", title="Time to first token without a queue",
            value=f"{floor} at least, {planned} planned",
            formula="(2 x active parameters x prompt + attention pairs) / matrix rate; the plan adds a fixed part",
            inputs=(_given("prompt", f"{r.input_tokens:,} tokens", REQUIREMENTS), tflops),
            assumptions=("nobody waits; with more than 8 in flight the wait is queueing", "no prefix is cached"),
            band="planning value: mean error 32 %" if routed else "planning value: mean error 21 %",
        ))  # fmt: skip
    return tuple(result)


def _alone(inputs: ThroughputInputs, kind: Kind) -> str:
    return f"{format_tok_s(1 / step_s(inputs, kind, 1))} for one user alone"


def scale_derivations(
    units: tuple[UnitsNeeded, ...], together: Completion, spent: Cost, gpu: Gpu, r: Requirements
) -> tuple[Derivation, ...]:
    """Units, sequential against batched completion, power and cost."""
    at_peak = [u for u in units if u.users == r.peak_users_max]
    budget = r.budget
    unknown = "not stated"
    one_by_one = format_duration(together.sequential_s)
    power = unknown if spent.unit_power_w is None else f"{spent.unit_power_w:g} W"
    return (
        Derivation(
            key="units", title=f"Units for {r.peak_users_max:,} users",
            value=", ".join(f"{u.units or 'none'} ({u.kind.value})" for u in at_peak),
            formula="the larger of users x target / total of one unit, and users / largest batch that keeps the target",
            inputs=(_given("users and target", f"{r.peak_users_max:,} at {r.user_tok_s_target:g} tok/s", REQUIREMENTS),
                    *(_given(f"largest batch, {u.kind.value}", str(u.largest_batch), "batch table") for u in at_peak),
                    *(_given(f"total of one unit, {u.kind.value}", format_tok_s(u.unit_tok_s), "batch table")
                      for u in at_peak)),
            assumptions=("users are spread evenly over units", "all generate at the same moment", "no spare unit"),
            band="as the speed that it rests on; rounding up hides small errors and shows large ones",
        ),
        Derivation(
            key="completion", title="Last of the users served",
            value=f"{one_by_one} one by one, {format_duration(together.batched_s)} together",
            formula="one by one: users x answer x step alone; together: answer x step of the whole batch",
            inputs=(_given("answer", f"{together.output_tokens:,} tokens", REQUIREMENTS),
                    _given("read per step", f"{together.step_gb:.1f} GB = {together.step_weights_gb:.1f} weights + "
                           f"{together.step_kv_gb:.1f} KV", "bound")),
            assumptions=("prefill and the engine's own time left out",),
            band="optimistic, as the bound",
        ),
        Derivation(
            key="cost", title="Energy per million tokens",
            value=unknown if spent.kwh_per_million_tokens is None else f"{spent.kwh_per_million_tokens:.2f} kWh",
            formula="board power / planning total at the largest batch that keeps the target; money: energy x price + "
                    "capital / tokens of its years",
            inputs=(_given("board power", power, gpu.source),
                    _given("price", unknown if budget.electricity_per_kwh is None
                           else f"{budget.electricity_per_kwh:g} {budget.currency}/kWh", REQUIREMENTS),
                    _given("capital", unknown if budget.capital is None else f"{budget.capital:,.0f} {budget.currency}",
                           REQUIREMENTS)),
            assumptions=("full load in all stated hours", "host and cooling left out"),
            band="as the planning value; idle hours raise it in proportion",
        ),
    )  # fmt: skip
