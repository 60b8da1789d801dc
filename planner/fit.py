"""A model on a device: its whole memory picture, and what to change where it does not fit, as sentences."""

from __future__ import annotations

from pydantic import Field

from planner.device_memory import DeviceMemory, MemoryBudget, device_memory, memory_budget
from planner.errors import InputError
from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.kv_blocks import EngineKv, engine_kv
from planner.memory import (
    Reserve,
    Weights,
    kv_bytes_per_request,
    kv_bytes_per_token,
    reserve,
    stage_weights,
    weight_bytes,
)
from planner.model_schema import Model
from planner.quantization import QUANTIZATIONS, Quantization, check_runs, runs_natively
from planner.units import format_gb, format_gib

SMALLER_FORMATS = ("fp8", "int4")


class FitSettings(Frozen):
    """What decides the memory besides model and device.

    `devices` share every layer of one copy of the model (tensor parallel); `pipeline_parallel` such groups share its
    layers. `speculative_tokens` are drafted per step, by the model's own draft layers where it has some, else by a
    draft model of `draft_gb`. `tenants_gb` is what other programs on the device hold: embedding model, reranker. Both
    in decimal GB.
    """

    context_tokens: int = Field(ge=1, le=100_000_000)
    kv_dtype: str = "fp16"
    devices: int = Field(default=1, ge=1, le=64)
    pipeline_parallel: int = Field(default=1, ge=1, le=64)
    tenants_gb: float = Field(default=0.0, ge=0, le=10_000)
    max_num_seqs: int = Field(default=256, ge=1)
    max_num_batched_tokens: int = Field(default=8192, ge=16)
    prefix_caching: bool = True
    speculative_tokens: int = Field(default=0, ge=0, le=16)
    draft_gb: float = Field(default=0.0, ge=0, le=10_000)
    fraction: float | None = Field(default=None, gt=0, le=1)


class Footprint(Frozen):
    """The memory side of a sizing, per device except `weights`, which are the whole model's."""

    settings: FitSettings
    device: DeviceMemory
    weights: Weights
    reserve: Reserve
    budget: MemoryBudget
    kv_bytes_per_token: int
    kv_bytes_per_request: int
    engine_kv: EngineKv

    @property
    def requests_that_fit(self) -> int:
        """Requests of the full context that the KV cache holds at once."""
        return int(self.engine_kv.max_concurrency)


def footprint(model: Model, quant: Quantization, gpu: Gpu, settings: FitSettings) -> Footprint:
    """Split the device of the fullest pipeline stage and count requests.

    Raises InputError for what is not modelled, unknown, does not divide or cannot run on this device.
    """
    check_runs(quant, gpu.compute_capability, gpu.name)
    devices, stages = settings.devices, settings.pipeline_parallel
    device = device_memory(gpu, settings.tenants_gb, settings.fraction)
    weights = weight_bytes(model, quant, drafts=settings.speculative_tokens > 0, draft_gb=settings.draft_gb)
    held = stage_weights(model, weights, devices, stages)
    kept = [
        reserve(model, settings.max_num_seqs, settings.max_num_batched_tokens, devices, last_stage=s == stages - 1)
        for s in range(stages)
    ]
    fullest = max(range(stages), key=lambda s: held[s] + kept[s].total)
    budget = memory_budget(
        device_total=device.total, outside=device.outside, tenants=device.tenants, weights=held[fullest],
        reserve=kept[fullest].total,
    )  # fmt: skip
    return Footprint(
        settings=settings, device=device, weights=weights, reserve=kept[fullest], budget=budget,
        kv_bytes_per_token=kv_bytes_per_token(model, settings.kv_dtype, devices, stages),
        kv_bytes_per_request=kv_bytes_per_request(model, settings.context_tokens, settings.kv_dtype, devices, stages),
        engine_kv=engine_kv(
            model, budget.kv, settings.context_tokens, kv_dtype=settings.kv_dtype, tensor_parallel=devices,
            pipeline_parallel=stages, max_num_batched_tokens=settings.max_num_batched_tokens,
            prefix_caching=settings.prefix_caching, speculative_tokens=settings.speculative_tokens,
        ),
    )  # fmt: skip


def memory_warning(model: Model, quant: Quantization, gpu: Gpu, found: Footprint) -> str | None:
    """One sentence when weights, reserve and one request exceed a device, with every way out that would work."""
    if found.requests_that_fit:
        return None
    budget, settings = found.budget, found.settings
    weights = format_gb(found.weights.total)
    if budget.shortfall:
        count = settings.devices * settings.pipeline_parallel
        devices = "a device" if count == 1 else f"{count} devices, each"
        total = f"{format_gb(budget.device_total)} ({format_gib(budget.device_total)})"
        what = f"{weights} of weights do not fit {devices} of {total}"
        detail = (
            f"{format_gb(budget.engine_share)} are for the engine and {format_gb(budget.reserve)} of that is reserve"
        )
    else:
        what = f"not one request of {settings.context_tokens:,} tokens fits beside {weights} of weights"
        detail = f"{format_gb(budget.kv)} are left for the KV cache"
    ways = _ways_out(model, quant, gpu, settings)
    way_out = (
        f"What would do: {', or '.join(ways)}." if ways else "No format and no number of devices up to 16 would do."
    )
    return f"{gpu.name}: {what}: {detail}. {way_out}"


def _ways_out(model: Model, quant: Quantization, gpu: Gpu, settings: FitSettings) -> list[str]:
    def fits(format: Quantization, **changed: float) -> bool:
        try:
            return footprint(model, format, gpu, settings.model_copy(update=changed)).requests_that_fit > 0
        except InputError:  # heads that do not divide over that many devices, a format that does not run here
            return False

    counts = [n for n in (2, 4, 8, 16) if n > settings.devices * settings.pipeline_parallel]
    ways = [f"{n} devices" for n in counts if fits(quant, devices=n, pipeline_parallel=1)][:1]
    if not ways:  # heads or vocabulary do not divide: by layers instead
        staged = (n for n in counts if fits(quant, devices=1, pipeline_parallel=n))
        ways = [f"{n} devices, each with a part of the layers" for n in staged][:1]
    smaller = [QUANTIZATIONS[name] for name in SMALLER_FORMATS if QUANTIZATIONS[name].bits < quant.bits]
    ways += [q.id.upper() for q in smaller if fits(q)][:1]
    shorter = [n for n in (32_768, 16_384, 8192, 4096, 2048) if n < settings.context_tokens]
    ways += [f"a context of {n:,} tokens" for n in shorter if fits(quant, context_tokens=n)][:1]
    if settings.tenants_gb and fits(quant, tenants_gb=0.0):
        ways.append("a device without other tenants")
    return ways


def other_warnings(
    model: Model, quant: Quantization, gpu: Gpu, found: Footprint, *, users: int, matrix_rate_known: bool
) -> tuple[str, ...]:
    """Everything else that a reader must know before trusting the figures."""
    context, fitting, limit = found.settings.context_tokens, found.requests_that_fit, model.max_position_embeddings
    said = (
        (found.device.assumed, f"{gpu.name}: {found.device.assumed}. State device_total_gib in an own entry."),
        (gpu.bandwidth_gb_s is None, f"{gpu.name}: memory bandwidth is unknown, so no speed is given. "
                                     "State bandwidth_gb_s in an own entry."),
        (not matrix_rate_known, f"{gpu.name}: matrix rate is unknown: prefill and time to first token are left out."),
        (context > limit, f"{model.id} takes {limit:,} tokens, the context asks for {context:,}. "
                          "Shorten the context or take another model."),
        (not runs_natively(quant, gpu.compute_capability),
         f"{gpu.name} (compute capability {gpu.compute_capability}) does not compute in {quant.id}: weights are "
         "widened to 16 bit on the fly, and prefill runs at the 16-bit rate."),
        (0 < fitting < users,
         f"The KV cache holds {fitting:,} requests of {context:,} tokens at once; {users - fitting:,} of {users:,} "
         "users would wait. Shorten the context, use an 8-bit KV cache or add units."),
        (found.settings.devices > 4, f"{found.settings.devices} devices share one model: at small batches most of "
                                     "their bandwidth is lost to waiting."),
        (model.confidence != "high", f"{model.id}: dimensions are of {model.confidence} confidence ({model.source})."),
    )  # fmt: skip
    return tuple(sentence for applies, sentence in said if applies)
