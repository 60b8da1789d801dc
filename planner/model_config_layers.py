"""Which layer of a config.json does what: full or windowed attention, linear attention, state space.

Every way in which model makers write the order of their layers is one function here; the first that applies counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from planner.model_config_keys import STATE_SPACE, WINDOW_IN_EVERY_LAYER, Keys
from planner.model_schema import GatedDeltaNet, GlobalAttention, Mamba2, SlidingWindow

Kind = Literal["full", "window", "linear", "mamba", "moe", "mlp"]
MOST_LAYERS = 1000

_NAMES: dict[str, Kind] = {
    "full_attention": "full", "attention": "full", "global": "full", "sliding_attention": "window",
    "chunked_attention": "window", "local_attention": "window", "sliding_window": "window",
    "linear_attention": "linear", "mamba": "mamba", "mamba2": "mamba", "moe": "moe", "mlp": "mlp",
}  # fmt: skip
_MARKS: dict[str, Kind] = {"M": "mamba", "*": "full", "-": "mlp", "E": "moe"}
_WINDOW_MARKS: dict[str, Kind] = {"L": "window", "G": "full"}


class Layers(NamedTuple):
    """The kind of each layer in order; `blocks` tells that feed-forward parts are layers of their own."""

    kinds: tuple[Kind, ...]
    blocks: bool = False

    def count(self, kind: Kind) -> int:
        """Layers of one kind."""
        return self.kinds.count(kind)


def read_layers(keys: Keys) -> Layers:
    """The kind of each layer. Raises InputError for an unknown kind, or a list that does not fit the layer count."""
    stated = keys.whole("num_hidden_layers", "num_layers", "n_layers")
    for way in _WAYS:
        kinds = way(keys, stated or 0)
        if kinds is not None:
            break
    else:
        kinds = ["full"] * _layer_count(keys)
    if stated is not None and len(kinds) != stated:
        raise keys.error(
            f"the list of layers has {len(kinds)} entries, num_hidden_layers says {stated}.",
            "Paste the config.json as the maker ships it.",
        )
    if len(kinds) > MOST_LAYERS:
        raise keys.error(f"{len(kinds)} layers are more than any model has.", "Correct num_hidden_layers.")
    if set(kinds) <= {"mamba", "linear", "moe", "mlp"}:
        raise keys.error("no layer has attention, and pure state-space models are not modelled.", "Measure it.")
    blocks = keys.has("hybrid_override_pattern", "layers_block_type") and bool({"moe", "mlp"} & set(kinds))
    return Layers(tuple(kinds), blocks)


def _layer_count(keys: Keys) -> int:
    count = keys.needed("num_hidden_layers", "num_layers", "n_layers")
    if count > MOST_LAYERS:
        raise keys.error(f"{count} layers are more than any model has.", "Correct num_hidden_layers.")
    return count


def _from_pattern(keys: Keys, stated: int) -> list[Kind] | None:
    """Nemotron-H: one character per layer."""
    pattern = keys.raw("hybrid_override_pattern")
    if pattern is None:
        return None
    if not isinstance(pattern, str) or not set(pattern) <= set(_MARKS):
        raise keys.error(
            f"hybrid_override_pattern has characters other than {' '.join(_MARKS)}.", "Paste it as the maker ships it."
        )
    return [_MARKS[mark] for mark in pattern]


def _from_names(keys: Keys, stated: int) -> list[Kind] | None:
    """A list of names, one per layer."""
    for key in ("layers_block_type", "layer_types"):
        names = keys.items(key)
        if names is None:
            continue
        unknown = sorted({str(name) for name in names if not isinstance(name, str) or name not in _NAMES})
        if unknown:
            raise keys.error(
                f"{key} names {', '.join(unknown[:4])}, which is not modelled.",
                f"Modelled: {', '.join(_NAMES)}.",
            )
        kinds = [_NAMES[name] for name in names]
        # One class writes "linear_attention" for its state-space layers; the other keys tell which it is.
        if "linear" in kinds and not keys.has("linear_num_value_heads") and _has_state_space(keys):
            kinds = ["mamba" if kind == "linear" else kind for kind in kinds]
        return _without_idle_window(keys, kinds)
    return None


def _from_interval(keys: Keys, stated: int) -> list[Kind] | None:
    """Qwen3-Next: every n-th layer has full attention, the others are linear."""
    interval = keys.whole("full_attention_interval")
    if interval is None or not keys.has("linear_num_value_heads"):
        return None
    return ["linear" if (i + 1) % interval else "full" for i in range(_layer_count(keys))]


def _from_attention_places(keys: Keys, stated: int) -> list[Kind] | None:
    """Bamba lists the layers with attention, Jamba gives a period; the others are state-space layers."""
    if not _has_state_space(keys):
        return None
    count = _layer_count(keys)
    if keys.has("attn_layer_indices"):
        places = keys.places("attn_layer_indices")
    elif keys.has("attn_layer_period"):
        period, offset = keys.needed("attn_layer_period"), keys.whole("attn_layer_offset", least=0) or 0
        places = {i for i in range(count) if i % period == offset}
    elif keys.has("linear_num_value_heads"):
        return None
    else:
        found = ", ".join(sorted(k for k in keys.body if STATE_SPACE.fullmatch(k)))
        raise keys.error(
            f"{found} mean state-space layers, but no key says which layers have attention.",
            "Pure state-space models and parallel attention with Mamba are not modelled; measure it.",
        )
    return ["full" if i in places else "mamba" for i in range(count)]


def _has_state_space(keys: Keys) -> bool:
    return any(STATE_SPACE.fullmatch(key) and value for key, value in keys.body.items())


def _from_chunks(keys: Keys, stated: int) -> list[Kind] | None:
    """Llama 4: attention within chunks, except in layers without position embedding."""
    if not keys.has("attention_chunk_size"):
        return None
    count = _layer_count(keys)
    rotated = keys.items("no_rope_layers")
    if rotated:
        return ["window" if entry else "full" for entry in rotated]
    interval = keys.needed("no_rope_layer_interval")
    return ["window" if (i + 1) % interval else "full" for i in range(count)]


def _from_window(keys: Keys, stated: int) -> list[Kind] | None:
    """sliding_window with a pattern, a first windowed layer, or a family whose every layer is windowed."""
    if not _window_in_use(keys):
        return None
    count = _layer_count(keys)
    if keys.flag("use_sliding_window"):
        first = keys.whole("max_window_layers", least=0) or 0
        return _without_idle_window(keys, ["window" if i >= first else "full" for i in range(count)])
    pattern = keys.raw("sliding_window_pattern")
    if isinstance(pattern, str) and pattern and set(pattern) <= set(_WINDOW_MARKS):
        marks = [_WINDOW_MARKS[pattern[i % len(pattern)]] for i in range(count)]
        return _without_idle_window(keys, marks)
    every = keys.whole("sliding_window_pattern", "_sliding_window_pattern")
    if every is not None:
        return _without_idle_window(keys, ["window" if (i + 1) % every else "full" for i in range(count)])
    if keys.model_type in WINDOW_IN_EVERY_LAYER:
        return _without_idle_window(keys, ["window"] * count)
    keys.assume(
        f"sliding_window is {keys.raw('sliding_window')}, but no key says which layers have it: full attention in "
        "every layer taken, an upper bound of the KV cache."
    )
    return None


def _window_in_use(keys: Keys) -> bool:
    if not keys.raw("sliding_window"):  # null, false and 0 are all written for "none"
        return False
    # max_window_layers marks the Qwen classes, where a window counts only when it is switched on.
    return keys.flag("use_sliding_window", otherwise=not keys.has("max_window_layers"))


def _without_idle_window(keys: Keys, kinds: list[Kind]) -> list[Kind]:
    """A window as long as the longest context never cuts anything off."""
    window = keys.raw("sliding_window")
    longest = keys.raw("max_position_embeddings")
    idle = isinstance(window, int) and isinstance(longest, int) and window >= longest
    return ["full" if idle and kind == "window" else kind for kind in kinds]


_WAYS: tuple[Callable[[Keys, int], list[Kind] | None], ...] = (
    _from_pattern, _from_names, _from_interval, _from_attention_places, _from_chunks, _from_window,
)  # fmt: skip


def read_window(keys: Keys, layers: Layers) -> SlidingWindow | None:
    """The window and how many layers have it; None where none has."""
    if not layers.count("window"):
        return None
    return SlidingWindow(
        window=keys.needed("sliding_window", "attention_chunk_size"),
        full_attention_layers=layers.count("full"),
        windowed_layers=layers.count("window"),
    )


def read_global_attention(keys: Keys, kv_heads: int, head_dim: int) -> GlobalAttention | None:
    """Heads of the full-attention layers where they differ from the windowed ones (Gemma 4)."""
    dim = keys.whole("global_head_dim")
    if dim is None:
        return None
    shared = keys.flag("attention_k_eq_v")
    heads = (keys.whole("num_global_key_value_heads") if shared else None) or kv_heads
    if (heads, dim, shared) == (kv_heads, head_dim, False):
        return None
    return GlobalAttention(num_key_value_heads=heads, head_dim=dim, k_eq_v=shared)


def read_linear(keys: Keys, layers: Layers) -> GatedDeltaNet | Mamba2 | None:
    """The layers with a fixed state; None where there are none. Raises InputError for kinds that are not modelled."""
    linear, mamba = layers.count("linear"), layers.count("mamba")
    if linear and mamba:
        raise keys.error("linear attention and state-space layers in one model are not modelled.", "Measure it.")
    if linear:
        gate = keys.flag("attn_output_gate")
        if not gate and not keys.has("attn_output_gate"):
            keys.assume("attn_output_gate is not stated; attention without an output gate taken.")
        return GatedDeltaNet(
            kind="gated_delta_net", layers=linear, full_attention_layers=layers.count("full"),
            num_key_heads=keys.needed("linear_num_key_heads"),
            num_value_heads=keys.needed("linear_num_value_heads"),
            key_head_dim=keys.needed("linear_key_head_dim"), value_head_dim=keys.needed("linear_value_head_dim"),
            conv_kernel=keys.needed("linear_conv_kernel_dim"), attn_output_gate=gate,
        )  # fmt: skip
    return _mamba(keys, layers) if mamba else None


def _mamba(keys: Keys, layers: Layers) -> Mamba2:
    heads = keys.whole("mamba_num_heads", "mamba_n_heads")
    if heads is None:
        raise keys.error(
            "state-space layers without mamba_num_heads are Mamba 1, which is not modelled.",
            "Modelled: Mamba 2. Measure it.",
        )
    if keys.raw("mamba_head_dim", "mamba_d_head") == "auto":
        expand = keys.whole("mamba_expand", "expand") or 2
        head_dim = max(1, expand * keys.needed("hidden_size") // heads)
        keys.assume(f"mamba_d_head is 'auto': {expand} x hidden_size / {heads} heads = {head_dim} taken.")
    else:
        head_dim = keys.needed("mamba_head_dim", "mamba_d_head")
    return Mamba2(
        kind="mamba2", layers=layers.count("mamba"), full_attention_layers=layers.count("full"), heads=heads,
        head_dim=head_dim, state=keys.needed("ssm_state_size", "mamba_d_state"),
        groups=keys.needed("n_groups", "mamba_n_groups", "mamba_num_groups"),
        conv_kernel=keys.needed("conv_kernel", "mamba_d_conv"),
    )  # fmt: skip
