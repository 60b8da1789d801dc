"""Weights, KV cache, reserve and other tenants: how a device's memory splits, and how many requests fit.

Sizes are bytes on one device unless a name says otherwise. Memory counts all parameters, never the active ones.
"""

from __future__ import annotations

import math
from typing import Literal

from planner.architecture import CacheLayers, cache_layers, modules
from planner.catalog import Gpu, Model
from planner.errors import InputError
from planner.frozen import Frozen
from planner.quantization import KV_BYTES, Quantization
from planner.units import GB, GIB, format_gb

VLLM_BLOCK_TOKENS = 16

# Reserve of vLLM 0.17 and later, from 38 start-up logs of vLLM 0.19 on H100 (jgchn/llm-d-planner@d3121e0).
LOGIT_COPIES = {"dense": 3.9, "moe": 4.3}  # copies of max_num_seqs x vocabulary in 32 bit; seen 3.7-4.1 and 3.7-4.9
NON_TORCH_GIB = {1: 0.25, 2: 2.1}  # one device; two or more, where the collectives keep buffers
CUDA_GRAPHS_GIB = 1.0  # seen 0.5-1.9
RESERVE_BAND = "about -30 % to +40 %; two and a half times the activations before vLLM 0.17"

# Where the driver's total is unknown: the lowest share of the nominal GiB that a driver reported (B300: 268.6 of 288).
REPORTED_SHARE = 0.93
DEFAULT_FRACTION = 0.90  # gpu_memory_utilization of vLLM up to 0.19; 0.92 later


class Weights(Frozen):
    """Bytes of weights of the whole model by module; `extra` is a vision tower and the like."""

    embedding: int
    lm_head: int
    attention: int
    mlp: int
    router: int
    experts: int
    extra: int

    @property
    def total(self) -> int:
        """All weights in memory."""
        return self.embedding + self.lm_head + self.attention + self.mlp + self.router + self.experts + self.extra

    @property
    def always_read(self) -> int:
        """Read in every decode step whatever is routed: all but experts, embedding look-up and vision tower."""
        return (self.lm_head or self.embedding) + self.attention + self.mlp + self.router


def weight_bytes(model: Model, quant: Quantization) -> Weights:
    """Weights by formula from the dimensions, each module in its own width (text-only: within 1 % of vLLM's logs).

    Raises InputError for an architecture that is not modelled.
    """
    counted = modules(model)
    # Padding belongs to the kernels of the packed format; 16-bit experts are stored as they are.
    experts = counted.experts_stored if quant.id == "mxfp4" else counted.experts
    return Weights(
        embedding=round(counted.embedding * quant.bits_of("embedding") / 8),
        lm_head=round(counted.lm_head * quant.bits_of("lm_head") / 8),
        attention=round(counted.attention * quant.bits_of("attention") / 8),
        mlp=round(counted.mlp * quant.bits_of("mlp") / 8),
        router=round(counted.router * quant.bits_of("router") / 8),
        experts=round(experts * quant.bits_of("experts") / 8),
        extra=round(model.extra_weights_gib * GIB),
    )


def kv_bytes_per_token(model: Model, kv_dtype: str, tensor_parallel: int = 1) -> int:
    """Bytes that one more token adds in all layers that keep it, inside every window."""
    width = KV_BYTES[kv_dtype]
    return sum(c.layers * c.bytes_per_token(width) for c in cache_layers(model, tensor_parallel) if c.kind != "state")


def kv_bytes_per_request(model: Model, context: int, kv_dtype: str, tensor_parallel: int = 1) -> int:
    """Bytes that one request of `context` tokens holds: windows cut off, fixed states added."""
    width = KV_BYTES[kv_dtype]
    return sum(c.bytes_per_request(context, width) for c in cache_layers(model, tensor_parallel))


def kv_bytes_read_per_request(model: Model, context: int, kv_dtype: str, tensor_parallel: int = 1) -> int:
    """Bytes that one decode step reads of one request; less than it holds only with sparse attention."""
    width = KV_BYTES[kv_dtype]
    return sum(c.bytes_read(context, width) for c in cache_layers(model, tensor_parallel))


def requests_that_fit(kv_pool_bytes: float, kv_request_bytes: float) -> int:
    """Requests whose KV cache fits the pool at once, by division alone."""
    return max(0, math.floor(kv_pool_bytes / kv_request_bytes + 1e-9))


class EngineKv(Frozen):
    """The KV pool as vLLM counts it: blocks, tokens per block, groups of layers, tokens, requests of full length."""

    blocks: int
    block_tokens: int
    groups: int
    tokens: int
    max_concurrency: float


def engine_kv(
    model: Model, kv_pool_bytes: float, max_model_len: int, *, kv_dtype: str = "fp16", tensor_parallel: int = 1,
    max_num_batched_tokens: int = 8192,
) -> EngineKv:  # fmt: skip
    """The pool in vLLM's own block and group arithmetic, so that its start-up lines come out.

    Kinds of layers are padded to groups of equal size, every group's block has the same bytes, and a window keeps
    ceil(min(window - 1 + max_num_batched_tokens, length) / block) + 1 blocks (vllm/v1/core/kv_cache_utils.py, 0.19).
    """
    kinds = cache_layers(model, tensor_parallel)
    width = KV_BYTES[kv_dtype]
    group_size = _group_size([c.layers for c in kinds])
    groups = {c.kind: -(-c.layers // group_size) for c in kinds}
    page = _page_bytes(kinds, width)
    block = {c.kind: max_model_len if c.kind == "state" else page // c.bytes_per_token(width) for c in kinds}
    blocks = int(kv_pool_bytes // (page * group_size))
    per_request = sum(
        groups[c.kind] * _blocks_per_request(c, max_model_len, block[c.kind], max_num_batched_tokens) for c in kinds
    )
    smallest = min(block.values())
    return EngineKv(
        blocks=blocks,
        block_tokens=smallest,
        groups=sum(groups.values()),
        tokens=blocks // sum(groups.values()) * smallest,
        max_concurrency=blocks / per_request,
    )


def largest_context(
    model: Model, kv_pool_bytes: float, requests: int, *, kv_dtype: str = "fp16", tensor_parallel: int = 1,
    max_num_batched_tokens: int = 8192,
) -> int:  # fmt: skip
    """Longest context in tokens, up to the model's own limit, at which `requests` fit at once; 0 when none does."""
    low, high = 0, model.max_position_embeddings
    while low < high:
        middle = (low + high + 1) // 2
        held = engine_kv(
            model, kv_pool_bytes, middle, kv_dtype=kv_dtype, tensor_parallel=tensor_parallel,
            max_num_batched_tokens=max_num_batched_tokens,
        )  # fmt: skip
        low, high = (middle, high) if held.max_concurrency >= requests else (low, middle - 1)
    return low


def _group_size(counts: list[int]) -> int:
    # A kind that is barely larger is not split: that would pad more than it saves.
    return max(counts) if max(counts) < 1.25 * min(counts) else min(counts)


def _page_bytes(kinds: tuple[CacheLayers, ...], width: int) -> int:
    """Bytes of one block in one layer: the widest kind's 16 tokens, grown until a fixed state fits into it."""
    token = max(c.bytes_per_token(width) for c in kinds if c.kind != "state")
    state = max((c.state_bytes for c in kinds if c.kind == "state"), default=0)
    multiples = max(1, -(-state // (token * VLLM_BLOCK_TOKENS)))
    return multiples * VLLM_BLOCK_TOKENS * token


def _blocks_per_request(c: CacheLayers, length: int, block: int, batched_tokens: int) -> int:
    if c.kind == "state":
        return 1
    if c.window is not None:
        return -(-min(c.window - 1 + batched_tokens, length) // block) + 1
    return -(-length // block)


class Reserve(Frozen):
    """What an engine keeps besides weights and KV cache, on one device."""

    activations: int
    non_torch: int
    cuda_graphs: int

    @property
    def total(self) -> int:
        """All three."""
        return self.activations + self.non_torch + self.cuda_graphs


def reserve(model: Model, max_num_seqs: int, max_num_batched_tokens: int, tensor_parallel: int = 1) -> Reserve:
    """Peak activations, buffers outside the allocator and captured graphs.

    Activations peak either at the logits (copies x max_num_seqs x vocabulary x 4 B) or in the widest layer of a
    prefill chunk (tokens x 2 B x (3 x MLP width + 4 x hidden)), whichever is larger. Band: RESERVE_BAND.
    """
    logits = LOGIT_COPIES["moe" if model.moe else "dense"] * max_num_seqs * model.vocab_size * 4
    width = model.intermediate_size or 0
    if model.moe:
        width = model.moe.experts_per_token * model.moe.moe_intermediate_size + model.moe.shared_intermediate_size
    chunk = max_num_batched_tokens * 2 * (3 * width / tensor_parallel + 4 * model.hidden_size)
    return Reserve(
        activations=round(max(logits, chunk)),
        non_torch=round(NON_TORCH_GIB[1 if tensor_parallel == 1 else 2] * GIB),
        cuda_graphs=round(CUDA_GRAPHS_GIB * GIB),
    )


PartName = Literal["outside", "tenants", "weights", "reserve", "kv"]


class MemoryBudget(Frozen):
    """One device's memory, split without remainder: outside + tenants + weights + reserve + kv = device_total.

    `outside` is left to the operating system, or unclaimed by the engine's fraction. `shortfall` is what is missing
    where weights and reserve exceed the engine's share; then `kv` is 0 and the parts exceed the device by it.
    """

    device_total: int
    outside: int
    tenants: int
    weights: int
    reserve: int
    kv: int
    shortfall: int = 0

    @property
    def fits(self) -> bool:
        """Weights and reserve leave room for a KV cache."""
        return self.shortfall == 0 and self.kv > 0

    @property
    def parts(self) -> dict[PartName, int]:
        """The split in the order in which it is drawn."""
        return {"outside": self.outside, "tenants": self.tenants, "weights": self.weights, "reserve": self.reserve,
                "kv": self.kv}  # fmt: skip

    @property
    def engine_share(self) -> int:
        """What the engine may take: device less outside and other tenants."""
        return self.device_total - self.outside - self.tenants


def memory_budget(
    *, device_total: float, outside: float, tenants: float, weights: float, reserve: float
) -> MemoryBudget:
    """Split a device; the KV cache gets what is left. All in bytes; raises InputError for a negative amount."""
    for name, amount in (("device total", device_total), ("outside", outside), ("tenants", tenants)):
        if amount < 0:
            raise InputError(f"{name} is negative: {format_gb(amount)}.", where="memory", fix="State 0 or more.")
    left = round(device_total) - round(outside) - round(tenants) - round(weights) - round(reserve)
    return MemoryBudget(
        device_total=round(device_total), outside=round(outside), tenants=round(tenants), weights=round(weights),
        reserve=round(reserve), kv=max(0, left), shortfall=max(0, -left),
    )  # fmt: skip


class DeviceMemory(Frozen):
    """What a device offers: total, what stays outside the engine, and the engine's fraction of the total."""

    total: int
    outside: int
    tenants: int
    gpu_memory_utilization: float
    assumed: str = ""


def device_memory(gpu: Gpu, tenants_gb: float, fraction: float | None = None) -> DeviceMemory:
    """Total as the driver reports it, and the largest fraction (two decimals) that leaves other tenants their memory.

    Unified memory leaves the operating system what its entry says is not usable. Raises InputError where no size is
    known or the other tenants leave nothing.
    """
    assumed = ""
    if gpu.device_total_gib is not None:
        total = gpu.device_total_gib * GIB
    elif gpu.memory_gb is not None:
        total = REPORTED_SHARE * gpu.memory_gb * GIB
        assumed = f"driver's total unknown: {REPORTED_SHARE:.0%} of {gpu.memory_gb:g} GiB taken"
    else:
        raise InputError("memory size is unknown.", where=gpu.id, fix="State memory_gb in an own entry.")
    usable = gpu.usable_gb * GB if gpu.usable_gb else total
    tenants = tenants_gb * GB
    ceiling = usable / total if gpu.usable_gb else DEFAULT_FRACTION
    free = math.floor(min(ceiling, (usable - tenants) / total) * 100 + 1e-9) / 100
    share = fraction if fraction is not None else free
    if share <= 0:
        raise InputError(
            f"other tenants take {format_gb(tenants)} of {format_gb(usable)}; nothing is left.",
            where=gpu.id,
            fix="Move them to another device.",
        )
    outside = max(0.0, total * (1 - share) - tenants)
    return DeviceMemory(
        total=round(total),
        outside=round(outside),
        tenants=round(tenants),
        gpu_memory_utilization=share,
        assumed=assumed,
    )
