"""The keys of a config.json: typed look-ups, the spellings in use, the defaults of classes that leave keys out.

A key that changes what a model keeps or reads, and that no module here understands, is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError

LARGEST = 10**9
TEXT_SECTIONS = ("text_config", "language_config", "llm_config", "language_model_config", "thinker_config")
TOWER_SECTIONS = ("vision_config", "vision_tower", "audio_config", "speech_config", "visual", "mm_vision_tower")

# Values that transformers 5.19.0 takes where a checkpoint leaves the key out (configuration classes of model_type).
_GEMMA = {"head_dim": 256, "tie_word_embeddings": True}
CLASS_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma": _GEMMA | {"vocab_size": 256000, "max_position_embeddings": 8192},
    "gemma2": _GEMMA | {"vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window_pattern": 2},
    "gemma3_text": _GEMMA
    | {"vocab_size": 262208, "max_position_embeddings": 131072, "num_attention_heads": 8, "num_key_value_heads": 4,
       "sliding_window_pattern": 6},
    "gemma4_text": _GEMMA | {"vocab_size": 262144, "global_head_dim": 512, "sliding_window_pattern": 6},
    "llama4_text": {"no_rope_layer_interval": 4, "tie_word_embeddings": False},
    "gpt_oss": {"sliding_window_pattern": 2, "tie_word_embeddings": False},
    "cohere": {"tie_word_embeddings": True},
    "cohere2": {"tie_word_embeddings": True, "sliding_window_pattern": 4},
    "olmo3": {"sliding_window_pattern": 4, "tie_word_embeddings": False},
    "qwen3": {"head_dim": 128, "tie_word_embeddings": False},
    "qwen3_next": {"attn_output_gate": True, "tie_word_embeddings": False},
    "qwen3_5_text": {"attn_output_gate": True, "tie_word_embeddings": False},
    "qwen3_5_moe_text": {"attn_output_gate": True, "tie_word_embeddings": False},
    "smollm3": {"tie_word_embeddings": True},
    "ernie4_5": {"tie_word_embeddings": True},
}  # fmt: skip
# The same classes' names for a whole multimodal checkpoint that states no type of its text part.
CLASS_DEFAULTS |= {"gemma3": CLASS_DEFAULTS["gemma3_text"], "gemma4": CLASS_DEFAULTS["gemma4_text"],
                   "llama4": CLASS_DEFAULTS["llama4_text"]}  # fmt: skip

# Kinds whose meaning of the keys was compared with their model code; tie_word_embeddings is False where not above.
CHECKED = frozenset(CLASS_DEFAULTS) | {
    "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3_moe", "phi3", "deepseek_v2", "deepseek_v3",
    "deepseek_v32", "kimi_k2", "kimi_k25", "glm4", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa", "granite", "granitemoe",
    "granitemoehybrid", "nemotron_h", "minimax_m2", "olmo2", "seed_oss",
}  # fmt: skip
TWO_MATRICES = frozenset({"starcoder2", "gpt_neox", "phi", "falcon", "nemotron", "stablelm_epoch", "persimmon"})
WINDOW_IN_EVERY_LAYER = frozenset({"mistral", "mixtral", "phi3"})

# Keys that change memory or reads in a way that is not modelled: pattern of the key -> what it means.
NOT_MODELLED: tuple[tuple[str, str], ...] = (
    (r"num_kv_shared_layers", "layers that share one KV cache"),
    (r"hidden_size_per_layer_input|altup_.*|laurel_rank", "embeddings per layer"),
    (r"use_double_wide_mlp", "MLP widths that differ between layers"),
    (r"compress_ratios?", "a compressed KV cache per layer"),
    (r"(num_)?(attention_heads|key_value_heads|kv_heads)_per_layer", "head counts that differ between layers"),
    (r"block_configs|hybrid_layer_pattern|attention_other_setting|swa_(num|head|v_head).*",
     "layers that differ one by one"),
    (r"linear_attn_config|attn_type_list|layer_attn_types?|lightning.*|kda_.*|retention.*|rwkv.*|hyena.*|use_gla",
     "linear attention of another kind than the gated delta net"),
    (r"conv_L_cache|conv_L", "short convolutions in place of attention"),
    (r"sparse_attention_config|nsa_.*|moba_.*", "sparse attention of another kind than the DeepSeek indexer"),
    (r"cross_attention_layers|cross_attention_config", "cross-attention layers"),
    (r"num_mem_blocks|hybrid_layer_ids|use_shared_attention_adapter", "attention blocks shared between layers"),
    (r"recurrent_block_type|lru_width|rglru.*", "recurrent blocks"),
)  # fmt: skip
STATE_SPACE = re.compile(
    r"mamba_(num_heads|n_heads|d_state|d_ssm|expand|head_dim)|ssm_(state_size|cfg)|state_size|ssm_cfg"
)


class Keys:
    """One section of a config.json with an outer one behind it; `assumed` gathers what was taken without being stated.

    Spellings are tried in order; null counts as not stated.
    """

    def __init__(self, body: Mapping[str, Any], outer: Mapping[str, Any], where: str) -> None:
        self.body = body
        self.outer = outer
        self.where = where
        self.assumed: list[str] = []
        stated = body.get("model_type") or outer.get("model_type")
        self.model_type = stated if isinstance(stated, str) else ""
        self._defaults = CLASS_DEFAULTS.get(self.model_type, {})

    def has(self, *spellings: str) -> bool:
        """Whether any of the keys is stated."""
        return any(self.body.get(key) is not None for key in spellings)

    def raw(self, *spellings: str) -> Any:
        """The first stated value, or None."""
        return next((self.body[key] for key in spellings if self.body.get(key) is not None), None)

    def whole(self, *spellings: str, least: int = 1) -> int | None:
        """The first stated whole number from `least` to LARGEST; the class default where one is known; else None.

        Raises InputError for text, fractions, lists and absurd sizes.
        """
        for key in spellings:
            if self.body.get(key) is not None:
                return self._whole(key, self.body[key], least)
        default = self._default(spellings[0])
        return default if isinstance(default, int) else None

    def needed(self, *spellings: str) -> int:
        """As `whole`; raises InputError where no spelling is stated."""
        value = self.whole(*spellings)
        if value is None:
            raise self.error(f"{' or '.join(spellings)} is missing.", "Paste the whole config.json of the model.")
        return value

    def flag(self, key: str, otherwise: bool = False) -> bool:
        """A truth value: stated, else the class default, else `otherwise`. Raises InputError for anything else."""
        value = self.body.get(key)
        if value is None:
            default = self._default(key)
            return default if isinstance(default, bool) else otherwise
        if not isinstance(value, bool):
            raise self.error(f"{key}: {_shown(value)} is not true or false.", "Write true or false.")
        return value

    def items(self, key: str) -> list[Any] | None:
        """A stated list, or None; raises InputError for anything else."""
        value = self.body.get(key)
        if value is not None and not isinstance(value, list):
            raise self.error(f"{key}: {_shown(value)} is not a list.", "Paste the config.json as the maker ships it.")
        return value

    def places(self, key: str) -> set[int]:
        """A stated list of layer numbers; empty where it is not stated."""
        return {self._whole(key, number, 0) for number in self.items(key) or ()}

    def assume(self, sentence: str) -> None:
        """Remember what was taken without being stated, once."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)

    def error(self, what: str, fix: str = "") -> InputError:
        """An InputError of this config."""
        return InputError(what, where=self.where, fix=fix)

    def _default(self, key: str) -> Any:
        if key in self._defaults:
            value = self._defaults[key]
            shown = str(value).lower() if isinstance(value, bool) else value
            self.assume(f"{key} is not stated; {shown} taken, the default of {self.model_type!r} in transformers.")
            return value
        return None

    def _whole(self, key: str, value: Any, least: int) -> int:
        if isinstance(value, list | dict):
            raise self.error(
                f"{key} differs between layers or parts, which is not modelled.",
                "Enter the model by hand in the own models.yaml.",
            )
        fraction = isinstance(value, float) and not value.is_integer()
        if isinstance(value, bool) or not isinstance(value, int | float) or fraction:
            raise self.error(f"{key}: {_shown(value)} is not a whole number.", "Write it as a plain number.")
        if not least <= value <= LARGEST:
            raise self.error(f"{key}: {_shown(value)} is not between {least} and {LARGEST:,}.", "Correct the number.")
        return int(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def refuse_unmodelled(keys: Keys) -> None:
    """Raise InputError for a stated key whose meaning is not modelled."""
    for key, value in keys.body.items():
        if value is None or value is False or value == 0 or value == [] or value == {}:
            continue
        if isinstance(value, list) and key.endswith("_per_layer") and all(entry == value[0] for entry in value):
            continue
        for pattern, meaning in NOT_MODELLED:
            if re.fullmatch(pattern, key):
                raise keys.error(
                    f"{key} means {meaning}, which is not modelled, so no size is given.",
                    "Measure it, and enter what the engine logs.",
                )
