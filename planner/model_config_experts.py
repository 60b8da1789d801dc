"""The experts of a config.json under all their spellings, and which layers have them."""

from __future__ import annotations

import re
from typing import Any

from planner.model_config_keys import Keys
from planner.model_config_layers import Layers
from planner.model_schema import Moe

N_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts")
PER_TOKEN = ("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts", "moe_topk",
             "moe_top_k", "moe_k")  # fmt: skip
EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size")
SHARED_WIDTH = ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
N_SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")


def read_moe(keys: Keys, layers: Layers) -> Moe | None:
    """The experts under any of their spellings; None for a dense model. Raises InputError for what contradicts."""
    experts = keys.whole(*N_EXPERTS, least=0)
    if not experts or experts == 1 or not keys.flag("enable_moe_block", otherwise=True):
        if layers.count("moe"):
            raise keys.error(f"layers with experts, but {' or '.join(N_EXPERTS)} is missing.", "State it.")
        return None
    sparse = layers.count("moe") if layers.blocks else len(_sparse_layers(keys, len(layers.kinds)))
    if not sparse:
        raise keys.error(f"{experts} experts, but no layer has them.", "Check first_k_dense_replace and the like.")
    parallel = keys.flag("enable_moe_block")  # stated by Gemma 4 alone: a dense MLP runs beside the experts
    return Moe(
        n_routed_experts=experts,
        experts_per_token=keys.needed(*PER_TOKEN),
        moe_intermediate_size=expert_width(keys),
        shared_intermediate_size=_shared_width(keys),
        first_k_dense=0 if layers.blocks or parallel else len(layers.kinds) - sparse,
        moe_layers=sparse,
        matrices_per_expert=2 if keys.raw("mlp_hidden_act", "hidden_act") == "relu2" else 3,
        latent_size=keys.whole("moe_latent_size"),
        parallel_dense_mlp=parallel,
    )


def expert_width(keys: Keys) -> int:
    """Width of one expert; where no key of its own is stated, intermediate_size is the expert's (Mixtral, gpt-oss)."""
    return keys.whole(*EXPERT_WIDTH) or keys.needed("intermediate_size")


def _shared_width(keys: Keys) -> int:
    own = keys.whole(*SHARED_WIDTH, least=0)
    if own is not None:
        return own
    count = keys.whole(*N_SHARED, least=0)
    width = keys.whole("moe_shared_expert_intermediate_size", least=0)
    if width is not None:
        return (1 if count is None else count) * width
    if keys.model_type == "llama4_text":  # one shared expert as wide as a routed one, in the model code
        return expert_width(keys)
    return (count or 0) * expert_width(keys)


def _sparse_layers(keys: Keys, count: int) -> set[int]:
    """Numbers of the layers with experts; all but the dense ones that some key names."""
    listed: Any = keys.items("mlp_layer_types")
    if listed is not None:
        return {i for i, name in enumerate(listed[:count]) if name == "sparse"}
    if keys.has("moe_layers"):
        return {i for i in keys.places("moe_layers") if i < count}
    text = keys.raw("moe_layers_enum")
    if isinstance(text, str) and re.fullmatch(r"[\d, ]+", text):
        return {i for i in (int(part[:9]) for part in text.replace(",", " ").split()) if i < count}
    frequency = keys.raw("moe_layer_freq")
    if isinstance(frequency, list):
        return {i for i, entry in enumerate(frequency[:count]) if entry}
    first = keys.whole("first_k_dense_replace", "moe_layer_start_index", least=0) or 0
    step = keys.whole("moe_layer_freq", "moe_layer_interval") or 1
    sparse = {i for i in range(first, count) if i % step == 0}
    stride = keys.whole("decoder_sparse_step", "interleave_moe_layer_step") or 1
    period = keys.whole("expert_layer_period") or 1
    offset = keys.whole("expert_layer_offset", least=0) or 0
    dense = keys.places("mlp_only_layers")
    return {i for i in sparse if (i + 1) % stride == 0 and (period == 1 or i % period == offset) and i not in dense}
