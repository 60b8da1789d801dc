"""What a speed is computed from, put together from the catalogue: bytes, layers, rates."""

from __future__ import annotations

from planner.architecture import modules
from planner.errors import InputError
from planner.gpu_schema import Gpu
from planner.memory import Weights, kv_bytes_read_per_request
from planner.model_schema import Model
from planner.prefill import prefill_flops
from planner.quantization import Quantization, runs_natively
from planner.speculation import Speculation
from planner.throughput import MeasuredRatio, ThroughputInputs
from planner.units import GB

# Launches on hosts of an older generation, and where host and device share a package, relative to LAUNCH_US.
LAUNCH_SCALE = {"Ampere": 2.0}
UNIFIED_LAUNCH_SCALE = 0.5
# Share of the data sheet's matrix rate that software for an architecture can use at all, where it is known to be low.
USABLE_RATE = {"CDNA3": 0.2}


def speed_inputs(
    model: Model, quant: Quantization, gpu: Gpu, weights: Weights, *, input_tokens: int, output_tokens: int,
    context_tokens: int, kv_dtype: str = "fp16", tensor_parallel: int = 1, kv_capacity: int | None = None,
    bandwidth_share: float = 1.0, measured: tuple[MeasuredRatio, ...] = (), speculation: Speculation | None = None,
) -> ThroughputInputs:  # fmt: skip
    """A speed's inputs from the catalogue; the bound takes the maker's active parameters where they are stated.

    `context_tokens` is how much of a request's KV a step reads. Raises InputError where the bandwidth is unknown.
    """
    if gpu.bandwidth_gb_s is None:
        raise InputError("memory bandwidth is unknown.", where=gpu.id, fix="State bandwidth_gb_s in an own entry.")
    share = model.moe.experts_per_token / model.moe.n_routed_experts if model.moe else 0.0
    counted = (weights.always_read + weights.experts * share) / GB
    stated = model.nominal_active_params_b
    nominal = stated * quant.bits / 8 if stated and "attention" in quant.narrow else (stated or 0) * 2
    rate = matrix_rate(quant, gpu)
    prefill = token = None
    if rate:
        per_s = rate[0] * 1e12 * tensor_parallel
        active = modules(model).active(share)
        body = active - modules(model).vocabulary_projection
        prefill, token = prefill_flops(model, body, input_tokens) / per_s, 2 * active / per_s
    read = kv_bytes_read_per_request(model, context_tokens, kv_dtype, tensor_parallel)
    return ThroughputInputs(
        # A maker's figure above the count would make the bound slower than what it bounds.
        active_weight_gb=min(nominal, counted) if nominal else counted,
        always_read_gb=weights.always_read / GB,
        experts_gb=weights.experts / GB,
        n_experts=model.moe.n_routed_experts if model.moe else 0,
        experts_per_token=model.moe.experts_per_token if model.moe else 0,
        kv_gb_per_request=read * tensor_parallel / GB,
        bandwidth_gb_s=gpu.bandwidth_gb_s * bandwidth_share,
        layers=model.num_hidden_layers,
        tensor_parallel=tensor_parallel,
        output_tokens=output_tokens,
        prefill_s=prefill,
        token_s=token,
        launch_scale=launch_scale(gpu),
        kv_capacity=kv_capacity,
        measured=measured,
        speculation=speculation,
    )


def matrix_rate(quant: Quantization, gpu: Gpu) -> tuple[float, str] | None:
    """Dense TFLOPS that prompts can use, and how it is known: the units of 8-bit formats, else 16 bit; None if unknown.

    4-bit weights were nowhere measured above the 16-bit rate: Gemma-4-31B in NVFP4 prefills at 48 TFLOPS on GB10, where
    a 16-bit multiplication reaches 102 (djangodevreng/dgx-spark-benchmarks@5636536). Experts in FP8 gained little there
    too (Qwen3.6-35B-A3B: 20 TFLOPS in BF16, 22 in FP8); the MFU of mixtures allows for it on the larger devices only.
    """
    native = gpu.tflops(quant.computes_in) if runs_natively(quant, gpu.compute_capability) else None
    found = (native if quant.bits >= 8 else None) or gpu.tflops("bf16")
    if found is None:
        return None
    usable = USABLE_RATE.get(gpu.architecture, 1.0)
    return found if usable == 1 else (found[0] * usable, f"{found[1]}, {usable:.0%} usable")


def launch_scale(gpu: Gpu) -> float:
    """Launch overhead on this accelerator's usual host, relative to Hopper's."""
    return UNIFIED_LAUNCH_SCALE if gpu.unified_memory else LAUNCH_SCALE.get(gpu.architecture, 1.0)
