"""What each kind of layer keeps on one device, per token or per request."""

from __future__ import annotations

from typing import Literal

from planner.architecture import check_modelled
from planner.frozen import Frozen
from planner.model_schema import GatedDeltaNet, Mamba2, Mla, Model
from planner.splits import check_pipeline, check_tensor_parallel, stage_layers


class CacheLayers(Frozen):
    """Layers of one kind: `elements` per token and layer on one device, or a fixed state per request.

    `bytes_8bit` replaces elements x width where an 8-bit cache has its own layout. `read_tokens` limits how much of
    the context one decode step reads (sparse attention); `extra_bytes` are kept per token whatever the precision.
    """

    kind: Literal["full", "window", "state"]
    layers: int
    elements: int = 0
    bytes_8bit: int | None = None
    extra_bytes: int = 0
    window: int | None = None
    read_tokens: int | None = None
    state_bytes: int = 0

    def bytes_per_token(self, width: int) -> int:
        """Bytes that one token adds in one layer on one device; `width` is bytes per element."""
        packed = self.bytes_8bit if width == 1 and self.bytes_8bit is not None else self.elements * width
        return packed + self.extra_bytes

    def bytes_per_request(self, context: int, width: int) -> int:
        """Bytes that one request of `context` tokens holds in all layers of this kind on one device."""
        tokens = min(context, self.window) if self.window else context
        return self.layers * (tokens * self.bytes_per_token(width) + self.state_bytes)

    def bytes_read(self, context: int, width: int) -> int:
        """Bytes that one decode step reads of one request on one device."""
        if self.read_tokens is None:
            return self.bytes_per_request(context, width)
        attended = min(context, self.read_tokens)
        packed = self.bytes_per_token(width) - self.extra_bytes
        return self.layers * (attended * packed + context * self.extra_bytes)


def cache_layers(
    model: Model, tensor_parallel: int = 1, pipeline_parallel: int = 1, speculative_tokens: int = 0
) -> tuple[CacheLayers, ...]:
    """What one device of the largest pipeline stage keeps per kind of layer.

    KV heads are split over at most as many devices as there are heads; a latent vector is kept whole on each. Draft
    layers and the inputs of their tokens count where `speculative_tokens` are drafted. Raises InputError for an
    architecture that is not modelled or a split that does not divide.
    """
    check_modelled(model)
    check_tensor_parallel(model, tensor_parallel)
    check_pipeline(model, pipeline_parallel)
    drafts = model.mtp_layers if speculative_tokens else 0
    kinds = _kinds(model, tensor_parallel, speculative_tokens)
    share = max(stage_layers(model.num_hidden_layers, pipeline_parallel)) / model.num_hidden_layers
    # Kinds are taken as evenly spread over the stages; a part of a layer is a whole one. The draft is on the last.
    return tuple(
        c.model_copy(update={"layers": -(-round(c.layers * share * 1e6) // 10**6) + drafts * (i == 0)})
        for i, c in enumerate(kinds)
    )


def _kinds(model: Model, tensor_parallel: int, speculative_tokens: int) -> tuple[CacheLayers, ...]:
    """Kinds of layers of the whole model; the first is the one that a draft layer is like."""
    if model.mla:
        return (_latent_cache(model.mla, model.num_hidden_layers),)
    own = _per_head(model.num_key_value_heads, model.head_dim, tensor_parallel)
    linear, window = model.linear_attention, model.sliding_window
    if linear:
        state = _state_bytes(linear, speculative_tokens) // tensor_parallel
        return (
            CacheLayers(kind="full", layers=linear.full_attention_layers, elements=own),
            CacheLayers(kind="state", layers=linear.layers, state_bytes=state),
        )
    if not window:
        return (CacheLayers(kind="full", layers=model.num_hidden_layers, elements=own),)
    shared = model.global_attention
    full = _per_head(shared.num_key_value_heads, shared.head_dim, tensor_parallel) if shared else own
    windowed = CacheLayers(kind="window", layers=window.windowed_layers, elements=own, window=window.window)
    if not window.full_attention_layers:
        return (windowed,)
    return (CacheLayers(kind="full", layers=window.full_attention_layers, elements=full), windowed)


def _per_head(kv_heads: int, head_dim: int, tensor_parallel: int) -> int:
    return 2 * -(-kv_heads // min(tensor_parallel, kv_heads)) * head_dim


def _latent_cache(mla: Mla, layers: int) -> CacheLayers:
    """With a sparse-attention indexer, an 8-bit cache keeps 512 B + 4 scales + 64 x 2 B and a 128-wide key with scale.

    788 bytes per token and layer reproduce sgl-project/sglang#11309: 65.49 GiB hold 1,462,784 tokens over 61 layers.
    """
    latent = mla.kv_lora_rank + mla.qk_rope_head_dim
    if mla.index_head_dim is None:
        return CacheLayers(kind="full", layers=layers, elements=latent)
    packed = mla.kv_lora_rank + 4 * (mla.kv_lora_rank // 128) + 2 * mla.qk_rope_head_dim
    return CacheLayers(
        kind="full", layers=layers, elements=latent, bytes_8bit=packed, extra_bytes=mla.index_head_dim + 4,
        read_tokens=mla.index_topk,
    )  # fmt: skip


def _state_bytes(linear: GatedDeltaNet | Mamba2, speculative_tokens: int) -> int:
    """State in 32 bit, convolution inputs in 16 bit, per layer and request.

    Qwen3.5-35B-A3B gives 62.8 MiB over 30 layers, as llama.cpp logs (63 MiB). With three drafted tokens a layer of
    Nemotron-3-Super gives 4,317,184 B = 8,432 tokens x 512 B, the block that vLLM logs.
    """
    if isinstance(linear, Mamba2):
        inner = linear.heads * linear.head_dim
        channels = inner + 2 * linear.groups * linear.state
        state = inner * linear.state
    else:
        keys, values = linear.num_key_heads * linear.key_head_dim, linear.num_value_heads * linear.value_head_dim
        channels, state = 2 * keys + values, values * linear.key_head_dim
    # The last convolution input is the current token, so kernel - 1 of them are kept, and those of drafted tokens.
    return 4 * state + 2 * channels * (linear.conv_kernel - 1 + speculative_tokens)
