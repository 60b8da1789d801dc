"""What a model is made of: parameters per module.

A class of architecture is modelled here or refused; nothing falls back to "dense".
"""

from __future__ import annotations

from planner.errors import InputError
from planner.frozen import Frozen
from planner.model_schema import GatedDeltaNet, Mamba2, Mla, Model

# Architecture -> the blocks of the catalogue entry that it cannot do without. Multi-head attention is "gqa" with as
# many KV heads as heads; "gqa" with a window block is chunked local attention.
MODELLED: dict[str, tuple[str, ...]] = {
    "dense_gqa": (),
    "dense_mla": ("mla",),
    "dense_swa": ("sliding_window",),
    "dense_hybrid_gdn": ("linear_attention",),
    "dense_hybrid_mamba2": ("linear_attention",),
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
    mlp = dense_layers * model.mlp_matrices * h * (model.intermediate_size or 0)
    router = experts = stored = 0
    if moe:
        mlp += moe.moe_layers * moe.matrices_per_expert * h * moe.shared_intermediate_size
        mlp += moe.moe_layers * 2 * h * (moe.latent_size or 0)
        router = moe.moe_layers * h * moe.n_routed_experts
        per_width = moe.moe_layers * moe.n_routed_experts * moe.matrices_per_expert * (moe.latent_size or h)
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


def vision_parameters(model: Model) -> int:
    """Parameters of the vision tower by formula; 0 without one. Patch and position embeddings (1 %) are left out."""
    tower = model.vision
    if tower is None:
        return 0
    h = tower.hidden_size
    return tower.layers * (4 * h * h + tower.matrices * h * tower.intermediate_size) + tower.projector


def linear_attention_parameters(model: Model) -> int:
    """Parameters of the layers with a fixed state, which `attention` includes; 0 without any."""
    linear = model.linear_attention
    return linear.layers * _linear(linear, model.hidden_size) if linear else 0


def draft_parameters(model: Model) -> int:
    """Parameters of the draft layers: each is one attention layer and one MLP or one layer of experts."""
    counted, linear, moe = modules(model), model.linear_attention, model.moe
    attending = linear.full_attention_layers if linear else model.num_hidden_layers
    attention = (counted.attention - linear_attention_parameters(model)) // attending
    feeding = moe.moe_layers if moe else _dense_mlp_layers(model)
    return model.mtp_layers * (attention + (counted.mlp + counted.router + counted.experts) // max(1, feeding))


def _dense_mlp_layers(model: Model) -> int:
    if model.mlp_layers is not None:
        return model.mlp_layers
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
        return linear.full_attention_layers * own + linear_attention_parameters(model)
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
