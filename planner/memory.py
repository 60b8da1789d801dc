"""Weights, KV bytes and reserve of a model: what one device has to hold.

Sizes are bytes on one device unless a name says otherwise. Memory counts all parameters, never the active ones.
"""

from __future__ import annotations

import math

from planner.architecture import draft_parameters, linear_attention_parameters, modules, vision_parameters
from planner.frozen import Frozen
from planner.kv_layers import cache_layers
from planner.model_schema import Model
from planner.quantization import KV_BYTES, Quantization
from planner.splits import check_pipeline, stage_layers
from planner.units import GB, GIB

# Reserve of vLLM 0.17 and later, from 38 start-up logs of vLLM 0.19 on H100 (jgchn/llm-d-planner@d3121e0).
LOGIT_COPIES = {"dense": 3.9, "moe": 4.3}  # copies of max_num_seqs x vocabulary in 32 bit; seen 3.7-4.1 and 3.7-4.9
NON_TORCH_GIB = {1: 0.25, 2: 2.1}  # one device; two or more, where the collectives keep buffers
OLDER_NON_TORCH_GIB = 0.6  # two or more devices before vLLM 0.17
CUDA_GRAPHS_GIB = 1.0  # seen 0.5-1.9
RESERVE_BAND = "about -30 % to +40 %; two and a half times the activations before vLLM 0.17"

VllmVersion = tuple[int, int]
VLLM_READ: VllmVersion = (0, 33)  # the version whose facts are in the catalogue
SMALLER_ACTIVATIONS_FROM: VllmVersion = (0, 17)
OLDER_ACTIVATIONS = 2.5  # Qwen3-14B: 5.64 GiB before, 2.23 GiB after (llm-d-planner#194)
GRAPHS_INSIDE_FROM: VllmVersion = (0, 21)  # earlier, graphs were captured on top of the fraction


class Weights(Frozen):
    """Bytes of weights of the whole model by module; `extra` is a vision tower, a draft model and the like."""

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


def weight_bytes(model: Model, quant: Quantization, *, drafts: bool = False, draft_gb: float = 0.0) -> Weights:
    """Weights by formula from the dimensions, each module in its own width (text-only: within 1 % of vLLM's logs).

    With `drafts` the layers for speculative decoding are loaded too, in 16 bit as publishers leave them; `draft_gb` is
    a draft model beside them, in decimal GB.
    Raises InputError for an architecture that is not modelled.
    """
    counted = modules(model)
    # Padding belongs to the kernels of the packed format; 16-bit experts are stored as they are.
    experts = counted.experts_stored if quant.id == "mxfp4" else counted.experts
    linear = linear_attention_parameters(model)
    attention = (counted.attention - linear) * quant.bits_of("attention") + linear * quant.bits_of_linear_attention
    extra = round(model.extra_weights_gib * GIB) or vision_parameters(model) * 2
    return Weights(
        embedding=round(counted.embedding * quant.bits_of("embedding") / 8),
        lm_head=round(counted.lm_head * quant.bits_of("lm_head") / 8),
        attention=round(attention / 8),
        mlp=round(counted.mlp * quant.bits_of("mlp") / 8),
        router=round(counted.router * quant.bits_of("router") / 8),
        experts=round(experts * quant.bits_of("experts") / 8),
        extra=extra + (draft_parameters(model) * 2 if drafts else 0) + round(draft_gb * GB),
    )


def stage_weights(model: Model, weights: Weights, tensor_parallel: int = 1, pipeline_parallel: int = 1) -> list[int]:
    """Weights on one device of each pipeline stage: layers shared out, tables at the ends, routers whole on each.

    The first stage has the embedding table and `extra`, the last the output projection (with tied
    embeddings a second copy of the table). Raises InputError when a stage would have no layer.
    """
    check_pipeline(model, pipeline_parallel)
    layers = (weights.attention + weights.mlp + weights.experts) / tensor_parallel + weights.router
    shares = [n / model.num_hidden_layers for n in stage_layers(model.num_hidden_layers, pipeline_parallel)]
    found = [layers * share for share in shares]
    found[0] += (weights.embedding + weights.extra) / tensor_parallel
    projection = weights.lm_head or (weights.embedding if pipeline_parallel > 1 else 0)
    found[-1] += projection / tensor_parallel
    return [round(size) for size in found]


def kv_bytes_per_token(model: Model, kv_dtype: str, tensor_parallel: int = 1, pipeline_parallel: int = 1) -> int:
    """Bytes that one more token adds in all layers of a device that keep it, inside every window."""
    kinds = cache_layers(model, tensor_parallel, pipeline_parallel)
    return sum(c.layers * c.bytes_per_token(KV_BYTES[kv_dtype]) for c in kinds if c.kind != "state")


def kv_bytes_per_request(
    model: Model, context: int, kv_dtype: str, tensor_parallel: int = 1, pipeline_parallel: int = 1
) -> int:
    """Bytes that one request of `context` tokens holds on a device: windows cut off, fixed states added."""
    kinds = cache_layers(model, tensor_parallel, pipeline_parallel)
    return sum(c.bytes_per_request(context, KV_BYTES[kv_dtype]) for c in kinds)


def kv_bytes_read_per_request(model: Model, context: int, kv_dtype: str, tensor_parallel: int = 1) -> int:
    """Bytes that one decode step reads of one request; less than it holds only with sparse attention."""
    width = KV_BYTES[kv_dtype]
    return sum(c.bytes_read(context, width) for c in cache_layers(model, tensor_parallel))


def requests_that_fit(kv_pool_bytes: float, kv_request_bytes: float) -> int:
    """Requests whose KV cache fits the pool at once, by division alone."""
    return max(0, math.floor(kv_pool_bytes / kv_request_bytes + 1e-9))


class Reserve(Frozen):
    """What an engine keeps besides weights and KV cache inside its fraction, on one device."""

    activations: int
    non_torch: int
    cuda_graphs: int

    @property
    def total(self) -> int:
        """All three."""
        return self.activations + self.non_torch + self.cuda_graphs


def reserve(
    model: Model, max_num_seqs: int, max_num_batched_tokens: int, tensor_parallel: int = 1, *,
    last_stage: bool = True, vllm: VllmVersion = VLLM_READ,
) -> Reserve:  # fmt: skip
    """Peak activations, buffers outside the allocator and captured graphs.

    Activations peak either at the logits (copies x max_num_seqs x vocabulary x 4 B; only the last pipeline stage has
    them) or in the widest layer of a prefill chunk (tokens x 2 B x (3 x MLP width + 4 x hidden)), whichever is larger.
    Before vLLM 0.17 there were more copies of the logits and fewer buffers; graphs count from 0.21 on, before they
    came on top of the fraction. Band: RESERVE_BAND.
    """
    logits = LOGIT_COPIES["moe" if model.moe else "dense"] * max_num_seqs * model.vocab_size * 4
    width = model.intermediate_size or 0
    if model.moe:
        width = model.moe.experts_per_token * model.moe.moe_intermediate_size + model.moe.shared_intermediate_size
    chunk = max_num_batched_tokens * 2 * (3 * width / tensor_parallel + 4 * model.hidden_size)
    older = vllm < SMALLER_ACTIVATIONS_FROM
    logits *= (OLDER_ACTIVATIONS if older else 1.0) * last_stage
    several = OLDER_NON_TORCH_GIB if older else NON_TORCH_GIB[2]
    return Reserve(
        activations=round(max(logits, chunk)),
        non_torch=round((NON_TORCH_GIB[1] if tensor_parallel == 1 else several) * GIB),
        cuda_graphs=round(CUDA_GRAPHS_GIB * GIB) if vllm >= GRAPHS_INSIDE_FROM else 0,
    )
