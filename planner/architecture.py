"""What a model is made of: parameters per module, and what each kind of layer keeps per token or per request.

A class of architecture is modelled here or refused; nothing falls back to "dense".
"""

from __future__ import annotations

from typing import Literal

from planner.catalog import GatedDeltaNet, Mamba2, Mla, Model
from planner.errors import InputError
from planner.frozen import Frozen

# Architecture -> the blocks of the catalogue entry that it cannot do without.
MODELLED: dict[str, tuple[str, ...]] = {
    "dense_gqa": (),
    "dense_swa": ("sliding_window",),
    "dense_hybrid_gdn": ("linear_attention",),
    "moe_gqa": ("moe",),
    "moe_swa": ("moe", "sliding_window"),
    "moe_mla": ("moe", "mla"),
    "moe_hybrid_gdn": ("moe", "linear_attention"),
    "moe_hybrid_mamba2": ("moe", "linear_attention"),
}


class Modules(Frozen):
    """Parameters per module of the whole model. Norms and biases (about 0.1 %) are left out.

    `experts_stored` counts what the kernels keep, padding included; `experts` what the model has.
    """

    embedding: int
    lm_head: int
    attention: int
    mlp: int
    router: int
    experts: int
    experts_stored: int

    @property
    def total(self) -> int:
        """All parameters: the figure for memory, whatever is active."""
        return self.embedding + self.lm_head + self.attention + self.mlp + self.router + self.experts

    @property
    def vocabulary_projection(self) -> int:
        """Weights that turn a hidden state into logits: the output projection, or the tied embedding table."""
        return self.lm_head or self.embedding

    def active(self, expert_share: float) -> float:
        """Parameters that one token passes through in a decode step, the embedding table not counted.

        With tied embeddings the table is read as the output projection.
        """
        always = self.vocabulary_projection + self.attention + self.mlp + self.router
        return always + self.experts * expert_share


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


def check_modelled(model: Model) -> None:
    """Raise InputError unless the architecture is modelled and its entry carries the blocks that it needs."""
    needed = MODELLED.get(model.architecture)
    if needed is None:
        raise InputError(
            f"architecture {model.architecture!r} is not modelled, so no size is given for it.",
            where=model.id,
            fix=f"Modelled: {', '.join(MODELLED)}.",
        )
    missing = [block for block in needed if getattr(model, block) is None]
    if missing:
        raise InputError(
            f"architecture {model.architecture!r} needs {' and '.join(missing)}.",
            where=model.id,
            fix="Add the block from the model's config.json to the entry.",
        )


def modules(model: Model) -> Modules:
    """Parameters per module from the dimensions. Raises InputError for an architecture that is not modelled."""
    check_modelled(model)
    h, moe = model.hidden_size, model.moe
    embedding = model.vocab_size * h
    dense_layers = _dense_mlp_layers(model)
    if dense_layers and model.intermediate_size is None:
        raise InputError("intermediate_size is unknown, but the model has dense layers.", where=model.id)
    mlp = dense_layers * 3 * h * (model.intermediate_size or 0)
    router = experts = stored = 0
    if moe:
        mlp += moe.moe_layers * moe.matrices_per_expert * h * moe.shared_intermediate_size
        router = moe.moe_layers * h * moe.n_routed_experts
        per_width = moe.moe_layers * moe.n_routed_experts * moe.matrices_per_expert * h
        experts = per_width * moe.moe_intermediate_size
        stored = per_width * (moe.stored_intermediate_size or moe.moe_intermediate_size)
    return Modules(
        embedding=embedding,
        lm_head=0 if model.tie_word_embeddings else embedding,
        attention=_attention(model),
        mlp=mlp,
        router=router,
        experts=experts,
        experts_stored=stored,
    )


def _dense_mlp_layers(model: Model) -> int:
    if model.moe is None:
        return model.num_hidden_layers
    return model.num_hidden_layers if model.moe.parallel_dense_mlp else model.moe.first_k_dense


def _attention(model: Model) -> int:
    h, heads = model.hidden_size, model.num_attention_heads
    if model.mla:
        return model.num_hidden_layers * _latent(model.mla, h, heads)
    linear = model.linear_attention
    gate = 2 if isinstance(linear, GatedDeltaNet) and linear.attn_output_gate else 1
    own = h * model.head_dim * ((1 + gate) * heads + 2 * model.num_key_value_heads)
    if linear:
        return linear.full_attention_layers * own + linear.layers * _linear(linear, h)
    shared = model.global_attention
    if shared and model.sliding_window:
        kv = (1 if shared.k_eq_v else 2) * shared.num_key_value_heads
        full = h * shared.head_dim * (2 * heads + kv)
        return model.sliding_window.full_attention_layers * full + model.sliding_window.windowed_layers * own
    return model.num_hidden_layers * own


def _latent(mla: Mla, h: int, heads: int) -> int:
    query_width = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    query = h * query_width if mla.q_lora_rank is None else mla.q_lora_rank * (h + query_width)
    down = h * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    return query + down + up + heads * mla.v_head_dim * h


def _linear(linear: GatedDeltaNet | Mamba2, h: int) -> int:
    if isinstance(linear, Mamba2):
        inner, side = linear.heads * linear.head_dim, 2 * linear.groups * linear.state
        return h * (2 * inner + side + linear.heads) + (inner + side) * linear.conv_kernel + inner * h
    keys, values = linear.num_key_heads * linear.key_head_dim, linear.num_value_heads * linear.value_head_dim
    projections = h * (2 * keys + 2 * values + 2 * linear.num_value_heads)
    return projections + (2 * keys + values) * linear.conv_kernel + values * h


def cache_layers(model: Model, tensor_parallel: int = 1) -> tuple[CacheLayers, ...]:
    """What one device keeps per kind of layer when `tensor_parallel` devices share the model.

    KV heads are split over at most as many devices as there are heads; a latent vector is kept whole on each.
    Raises InputError for an architecture that is not modelled or heads that the devices cannot share.
    """
    check_modelled(model)
    check_tensor_parallel(model, tensor_parallel)
    if model.mla:
        return (_latent_cache(model.mla, model.num_hidden_layers),)
    own = _per_head(model.num_key_value_heads, model.head_dim, tensor_parallel)
    linear, window = model.linear_attention, model.sliding_window
    if linear:
        state = _state_bytes(linear) // tensor_parallel
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


def check_tensor_parallel(model: Model, tensor_parallel: int) -> None:
    """Raise InputError unless the attention heads divide over the devices."""
    if tensor_parallel < 1 or model.num_attention_heads % tensor_parallel:
        fits = [n for n in (1, 2, 4, 8, 16) if model.num_attention_heads % n == 0]
        raise InputError(
            f"{model.num_attention_heads} attention heads do not divide over {tensor_parallel} devices.",
            where=model.id,
            fix=f"Tensor parallel can be {', '.join(map(str, fits))}.",
        )


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


def _state_bytes(linear: GatedDeltaNet | Mamba2) -> int:
    """State in 32 bit, convolution inputs in 16 bit, per layer and request.

    Qwen3.5-35B-A3B gives 62.8 MiB over 30 layers, as llama.cpp logs (63 MiB).
    """
    if isinstance(linear, Mamba2):
        inner = linear.heads * linear.head_dim
        channels = inner + 2 * linear.groups * linear.state
        state = inner * linear.state
    else:
        keys, values = linear.num_key_heads * linear.key_head_dim, linear.num_value_heads * linear.value_head_dim
        channels, state = 2 * keys + values, values * linear.key_head_dim
    # The last convolution input is the current token, so kernel - 1 of them are kept.
    return 4 * state + 2 * channels * (linear.conv_kernel - 1)
