"""Explanations of the memory side: weights, KV cache, reserve, requests that fit, largest context."""

from __future__ import annotations

from planner.bands import band
from planner.derivation import REQUIREMENTS, Derivation, given
from planner.fit import Footprint
from planner.gpu_schema import Gpu
from planner.memory import CUDA_GRAPHS_GIB, NON_TORCH_GIB
from planner.model_schema import Model
from planner.quantization import Quantization
from planner.stated import BY_USER, Stated
from planner.units import GB, format_gb, format_gib


def memory_derivations(
    model: Model, quant: Quantization, gpu: Gpu, memory: Footprint, stated: Stated, largest_context: int, users: int
) -> tuple[Derivation, ...]:
    """Weights, KV cache, reserve, the requests that fit, and the largest context that `users` fit with."""
    settings, device, budget = memory.settings, memory.device, memory.budget
    weights, kept, engine = memory.weights, memory.reserve, memory.engine_kv
    token, context = memory.kv_bytes_per_token, settings.context_tokens
    dimensions = given("dimensions", model.id, model.source)
    cache = given("KV cache precision", settings.kv_dtype, "model plan")
    asked = given("context", f"{context:,} tokens", REQUIREMENTS)
    total_source = BY_USER if stated.device_total_gib is not None else device.assumed or gpu.source
    return (
        Derivation(
            key="weights", title="Weights", value=format_gb(weights.total),
            formula="parameters per module x bits of that module / 8, all experts counted",
            inputs=(dimensions, given("format", f"{quant.id}, {quant.bits:g} bit", quant.basis),
                    given("experts", format_gb(weights.experts), "computed from the dimensions"),
                    *((given("draft", f"{format_gb(settings.draft_gb * GB)} of a model of its own",
                             f"setting; and {model.mtp_layers} draft layers of the model"),)
                      if settings.speculative_tokens else ())),
            assumptions=("norms and biases are left out (0.1 %)", "weights divide evenly over the devices"),
            band=band("weights"),
        ),
        Derivation(
            key="kv_per_token", title="KV cache per token", value=f"{token:,} B",
            formula="kept elements per layer x layers x bytes per element, by kind of layer",
            inputs=(dimensions, cache),
            assumptions=("tokens inside every sliding window",) if model.sliding_window else (),
            band=band("kv_per_token"),
        ),
        Derivation(
            key="kv_per_request", title="KV cache per request", value=format_gb(memory.kv_bytes_per_request),
            formula="full layers x context + windowed layers x min(context, window) + fixed state",
            inputs=(given("per token", f"{token:,} B", "computed"), asked),
            assumptions=("every request fills its context",),
            band=band("kv_per_request"),
        ),
        Derivation(
            key="reserve", title="Reserve of the engine", value=format_gb(kept.total),
            formula="peak activations + buffers outside the allocator + captured graphs",
            inputs=(given("activations", format_gib(kept.activations), "vLLM 0.19 logs on H100: copies of the logits"),
                    given("outside the allocator", format_gib(kept.non_torch),
                          f"the same logs: {NON_TORCH_GIB[1]:g} GiB, {NON_TORCH_GIB[2]:g} with several devices"),
                    given("graphs", f"{CUDA_GRAPHS_GIB:g} GiB", "the same logs: 0.5-1.9")),
            assumptions=("vLLM 0.17 or later",),
            band=band("reserve"),
        ),
        Derivation(
            key="kv_pool", title="KV cache", value=format_gb(budget.kv),
            formula="device total - left outside - other tenants - weights - reserve",
            inputs=(given("device total", format_gib(device.total), total_source),
                    given("left outside", format_gb(budget.outside),
                          f"engine takes {device.gpu_memory_utilization:.2f} of the total"),
                    given("other tenants", format_gb(budget.tenants), REQUIREMENTS),
                    given("weights", format_gb(budget.weights), "computed, on one device"),
                    given("reserve", format_gb(budget.reserve), "computed, on one device")),
            assumptions=("the driver's total, not the figure on the box",),
            band=band("kv_pool"),
        ),
        Derivation(
            key="requests_that_fit", title="Requests that fit at once", value=f"{memory.requests_that_fit:,}",
            formula="blocks in the pool / blocks per request, rounded down",
            inputs=(given("blocks", f"{engine.blocks:,} of {engine.block_tokens} tokens", "vLLM's block arithmetic"),
                    asked),
            assumptions=("every request fills its context", "no prefix is shared"),
            band=band("requests_that_fit"),
        ),
        Derivation(
            key="largest_context", title=f"Largest context with {users:,} at once",
            value=f"{largest_context:,} tokens",
            formula="the longest context at which blocks in the pool / blocks per request is still the number of users",
            inputs=(given("blocks", f"{engine.blocks:,} of {engine.block_tokens} tokens", "vLLM's block arithmetic"),
                    given("users", f"{users:,}", REQUIREMENTS),
                    given("model's own limit", f"{model.max_position_embeddings:,} tokens", model.source)),
            assumptions=("all of them fill it at the same moment", "no prefix is shared"),
            band=band("largest_context"),
        ),
    )  # fmt: skip
