"""Heads, latent attention, dense MLPs, tied tables and the image tower of a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model_config_experts import EXPERT_WIDTH
from planner.model_config_files import Files
from planner.model_config_keys import CHECKED, TOWER_SECTIONS, TWO_MATRICES, Keys
from planner.model_config_layers import Layers
from planner.model_schema import Mla, VisionTower

UNGATED = ("relu2", "relu", "gelu_new", "gelu_fast", "quick_gelu")


def read_heads(keys: Keys, mla: Mla | None) -> tuple[int, int, int]:
    """Query heads, KV heads and head size; without num_key_value_heads every head has its own (MHA)."""
    heads = keys.needed("num_attention_heads", "num_heads", "n_heads")
    kv_heads = keys.whole("num_key_value_heads", "num_kv_heads", "n_kv_heads")
    if kv_heads is None:
        kv_heads = heads
        if not mla:
            keys.assume(f"num_key_value_heads is not stated; {heads} taken: every head has its own (MHA).")
    if mla:
        return heads, kv_heads, mla.qk_nope_head_dim + mla.qk_rope_head_dim
    if heads % kv_heads:
        raise keys.error(
            f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}.",
            "Correct one of the two.",
        )
    head_dim = keys.whole("head_dim", "attention_head_dim")
    if head_dim is None:
        hidden = keys.needed("hidden_size")
        if hidden % heads:
            raise keys.error(
                f"hidden_size {hidden} does not divide by {heads} heads, and head_dim is not stated.", "State head_dim."
            )
        head_dim = hidden // heads
    return heads, kv_heads, head_dim


def read_mla(keys: Keys, layers: Layers) -> Mla | None:
    """Latent attention, known by kv_lora_rank whatever the class is called."""
    if not keys.has("kv_lora_rank"):
        return None
    if set(layers.kinds) != {"full"}:
        raise keys.error(
            "latent attention (kv_lora_rank) mixed with other kinds of layers is not modelled.", "Measure it."
        )
    if keys.has("index_topk") != keys.has("index_head_dim"):
        raise keys.error("index_topk and index_head_dim belong together, one is missing.", "State both.")
    return Mla(
        q_lora_rank=keys.whole("q_lora_rank"), kv_lora_rank=keys.needed("kv_lora_rank"),
        qk_rope_head_dim=keys.needed("qk_rope_head_dim"), qk_nope_head_dim=keys.needed("qk_nope_head_dim"),
        v_head_dim=keys.needed("v_head_dim"), index_head_dim=keys.whole("index_head_dim"),
        index_topk=keys.whole("index_topk"),
    )  # fmt: skip


def mlp_width(keys: Keys, layers: Layers, moe: bool) -> int | None:
    """Width of the dense MLP; None where intermediate_size is the experts' own, or no layer is dense."""
    own = keys.whole("intermediate_size_mlp")
    if own is not None:
        return own
    if moe and (not keys.has(*EXPERT_WIDTH) or (layers.blocks and not layers.count("mlp"))):
        return None
    return keys.whole("intermediate_size") if moe else keys.needed("intermediate_size", "ffn_hidden_size")


def mlp_matrices(keys: Keys) -> int:
    """Three in a gated MLP, two without a gate; the activation or the family tells."""
    act = activation(keys)
    if act in UNGATED or keys.model_type in TWO_MATRICES:
        return 2
    if keys.model_type not in CHECKED and (not act or act.startswith("gelu")):
        keys.assume(f"hidden_act is {act or 'not stated'}; a gated MLP of three matrices taken.")
    return 3


def activation(keys: Keys) -> str:
    """The activation's name, lower case; empty where none is stated."""
    return str(keys.raw("mlp_hidden_act", "hidden_act", "hidden_activation", "activation_function") or "").lower()


def read_tied(keys: Keys, files: Files | None) -> bool:
    """Whether the embedding table is the output projection: stated, else seen in the files, else the class default."""
    if keys.has("tie_word_embeddings"):
        return keys.flag("tie_word_embeddings")
    outer = keys.outer.get("tie_word_embeddings")
    if isinstance(outer, bool):
        return outer
    if files and files.has_output_projection is not None:
        seen = "an" if files.has_output_projection else "no"
        keys.assume(f"tie_word_embeddings is not stated; the files have {seen} lm_head.")
        return not files.has_output_projection
    if keys.model_type in CHECKED:
        return keys.flag("tie_word_embeddings")
    keys.assume("tie_word_embeddings is not stated; false taken, which counts the vocabulary twice.")
    return False


def read_tower(keys: Keys) -> VisionTower | None:
    """The image tower by its own section; None where there is none or its dimensions are not stated.

    The projector to the text model (about 1 % of a tower's model) is not counted here.
    """
    section = _tower_section(keys)
    if section is None:
        return None
    tower = Keys(section, {}, f"{keys.where}, vision_config")
    layers = tower.whole("num_hidden_layers", "depth", "vt_num_hidden_layers", "layers")
    hidden = tower.whole("hidden_size", "vt_hidden_size", "embed_dim", "width")
    width = tower.whole("intermediate_size", "vt_intermediate_size")
    if layers is None or hidden is None or width is None:
        return None
    gated = activation(tower) == "silu"
    keys.assume("The image tower is counted by formula, without its projector.")
    return VisionTower(layers=layers, hidden_size=hidden, intermediate_size=width, matrices=3 if gated else 2)


def _tower_section(keys: Keys) -> Mapping[str, Any] | None:
    for body in (keys.body, keys.outer):
        for name in TOWER_SECTIONS:
            if isinstance(body.get(name), dict) and "audio" not in name and "speech" not in name:
                return dict(body[name])
    return None
