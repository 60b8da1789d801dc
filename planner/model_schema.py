"""The schema of catalog/models.yaml: a model's dimensions, by the names of its config.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.frozen import Frozen

Confidence = Literal["high", "medium", "low"]
Count = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=0, le=10**9)]


class Moe(Frozen):
    """Experts: how many, how many a token uses, their widths. Two or three matrices each.

    With `latent_size` the routed experts work on a hidden state projected down to it, and back up after them.
    """

    n_routed_experts: Count
    experts_per_token: Count
    moe_intermediate_size: Count
    stored_intermediate_size: Width | None = None
    shared_intermediate_size: Width = 0
    first_k_dense: Width = 0
    moe_layers: Count
    matrices_per_expert: int = Field(default=3, ge=2, le=3)
    latent_size: Count | None = None
    parallel_dense_mlp: bool = False

    @model_validator(mode="after")
    def _uses_what_it_has(self) -> Moe:
        if self.experts_per_token > self.n_routed_experts:
            raise ValueError(f"{self.experts_per_token} experts per token of only {self.n_routed_experts}.")
        return self


class SlidingWindow(Frozen):
    """Layers that see only the last `window` tokens, and those that see all."""

    window: Count
    full_attention_layers: Width
    windowed_layers: Count


class GlobalAttention(Frozen):
    """Heads of the full-attention layers where they differ from the windowed ones."""

    num_key_value_heads: Count
    head_dim: Count
    k_eq_v: bool = False


class Mla(Frozen):
    """Latent attention: one compressed vector per token instead of keys and values per head."""

    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_rope_head_dim: Count
    qk_nope_head_dim: Count
    v_head_dim: Count
    index_head_dim: Count | None = None
    index_topk: Count | None = None


class GatedDeltaNet(Frozen):
    """Linear-attention layers with a fixed state per request."""

    kind: Literal["gated_delta_net"]
    layers: Count
    full_attention_layers: Count
    num_key_heads: Count
    num_value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    attn_output_gate: bool = False


class Mamba2(Frozen):
    """State-space layers with a fixed state per request."""

    kind: Literal["mamba2"]
    layers: Count
    full_attention_layers: Count
    heads: Count
    head_dim: Count
    state: Count
    groups: Count
    conv_kernel: Count


class VisionTower(Frozen):
    """Image encoder: transformer layers with `matrices` per MLP, and `projector` parameters that lead to the text."""

    layers: Count
    hidden_size: Count
    intermediate_size: Count
    matrices: int = Field(default=2, ge=2, le=3)
    projector: Width = 0


class Model(Frozen):
    """One model's dimensions; names as in its config.json. Parameter counts are computed in architecture.py.

    `mlp_layers` says how many layers have a dense MLP where that is not one per layer; `mtp_layers` are the draft
    layers for speculative decoding, loaded only with it. `extra_weights_gib` is what an engine logged above the text
    model; without it `vision` is counted by formula.
    """

    id: str = Field(min_length=1)
    architecture: str
    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    num_key_value_heads: Count
    head_dim: Count
    intermediate_size: Count | None
    vocab_size: Count
    max_position_embeddings: Count
    tie_word_embeddings: bool
    mlp_matrices: int = Field(default=3, ge=2, le=3)
    mlp_layers: Width | None = None
    mtp_layers: Width = 0
    moe: Moe | None = None
    sliding_window: SlidingWindow | None = None
    global_attention: GlobalAttention | None = None
    mla: Mla | None = None
    linear_attention: Annotated[GatedDeltaNet | Mamba2, Field(discriminator="kind")] | None = None
    nominal_active_params_b: float | None = Field(default=None, gt=0)
    vision: VisionTower | None = None
    extra_weights_gib: float = Field(default=0.0, ge=0)
    sources: tuple[str, ...] = Field(min_length=1)
    confidence: Confidence
    note: str = ""

    @model_validator(mode="after")
    def _heads_divide(self) -> Model:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} heads do not share {self.num_key_value_heads} KV heads evenly."
            )
        return self

    @property
    def source(self) -> str:
        """Where the dimensions were read, in one line."""
        return "; ".join(self.sources)
