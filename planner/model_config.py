"""A config.json from anywhere, read by its keys into a Model; what was taken without being stated is said, or refused.

Nothing falls back to dense attention in silence: a kind of layer, of attention or of model that is not known is an
InputError that names the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from planner.architecture import MODELLED, modules, vision_parameters
from planner.errors import InputError
from planner.frozen import Frozen
from planner.memory import weight_bytes
from planner.model_config_dimensions import mlp_matrices, mlp_width, read_heads, read_mla, read_tied, read_tower
from planner.model_config_experts import read_moe
from planner.model_config_files import (
    Files,
    Format,
    WeightsCheck,
    check_weights,
    from_headers,
    from_index,
    read_format,
)
from planner.model_config_keys import CHECKED, TEXT_SECTIONS, TOWER_SECTIONS, Keys, refuse_unmodelled
from planner.model_config_layers import Layers, read_global_attention, read_layers, read_linear, read_window
from planner.model_schema import Model

LARGEST_CONFIG = 4_000_000  # characters; the longest seen (explicit ignore lists) has about 100,000
LARGEST_INDEX = 60_000_000
MXFP4_EXPERT_MULTIPLE = 256  # vLLM stores gpt-oss experts 3,072 wide instead of 2,880 (its start-up log)
DRAFT_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
SHORT = {"gated_delta_net": "gdn", "mamba2": "mamba2"}
NO_TEXT = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForImageClassification")


class ConfigReading(Frozen):
    """What a config.json says: the model, what was assumed, the files' format, and the check against their bytes."""

    model: Model
    assumed: tuple[str, ...]
    warnings: tuple[str, ...]
    format: Format
    weights: WeightsCheck | None


def read_config(
    text: str, *, id: str, source: str = "config.json", index: str | None = None,
    headers: Mapping[str, int] | None = None, quantization: str | None = None,
) -> ConfigReading:  # fmt: skip
    """Read a config.json by its keys, whatever its class is called.

    `index` is the text of model.safetensors.index.json; `headers` are bytes per tensor from safetensors headers and go
    before it; `quantization` is the text of hf_quant_config.json. Raises InputError that names what is missing, wrong
    or not modelled.
    """
    if not id.strip() or len(id) > 200 or not id.isprintable():
        raise InputError("the model needs a name of 1 to 200 characters.", where="id", fix="For example org/model.")
    body = _object(text, "config.json", LARGEST_CONFIG)
    where = f"config.json of {id.strip()}"
    _refuse_kind(body, where)
    section = _text_section(body, where)
    keys = Keys(section, body, where)
    refuse_unmodelled(keys)
    layers = read_layers(keys)
    form = read_format(_quantization(body, section, quantization), _dtype(body, section), len(layers.kinds))
    files = _files(index, headers, len(layers.kinds))
    try:
        model = _model(keys, layers, id.strip(), source, form, files)
    except ValidationError as e:
        fault = e.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        message = fault["msg"].removeprefix("Value error, ").rstrip(".")
        raise keys.error(f"{field}: {message}." if field else f"{message}.", "Correct the config.json.") from None
    warnings = [form.note] if form.note else []
    check = _checked(model, form, files)
    if check and check.warning:
        warnings.append(check.sentence)
    if check and check.extra_gib:
        model = model.model_copy(update={"extra_weights_gib": round(check.extra_gib, 4)})
    warnings += _not_counted(body, model, files, check)
    return ConfigReading(model=model, assumed=tuple(keys.assumed), warnings=tuple(warnings), format=form, weights=check)


def _object(text: str, where: str, limit: int) -> dict[str, Any]:
    """The JSON object in a text; raises InputError with one sentence for everything else."""
    fix = "Paste the file as the maker ships it, from { to }."
    text = text.lstrip("\ufeff").strip()
    if not text:
        raise InputError("the text is empty.", where=where, fix=fix)
    if len(text) > limit:
        raise InputError(f"{len(text):,} characters are more than such a file has.", where=where, fix=fix)
    if text.startswith("<"):
        raise InputError("this is a web page, not JSON.", where=where, fix="Open the raw file and copy that.")
    try:
        body = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InputError("nested too deep.", where=where, fix=fix) from None
    except ValueError as e:
        raise InputError(f"not readable as JSON: {str(e)[:120]}.", where=where, fix=fix) from None
    if not isinstance(body, dict):
        raise InputError(f"a {type(body).__name__} where an object was expected.", where=where, fix=fix)
    return body


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON knows")


def _refuse_kind(body: Mapping[str, Any], where: str) -> None:
    """Models that do not write text token by token from a decoder."""

    def refused(what: str) -> InputError:
        return InputError(f"{what}; only decoders that write text are modelled.", where=where, fix="Measure it.")

    if body.get("is_encoder_decoder") is True or ("encoder_layers" in body and "decoder_layers" in body):
        raise refused("this is an encoder-decoder model")
    if "_diffusers_version" in body or "_class_name" in body:
        raise refused("this is a diffusion pipeline")
    names = body.get("architectures")
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name.endswith(NO_TEXT):
            raise refused(f"{name} is an encoder or a classifier")


def _text_section(body: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The part that describes the language model: the whole, or a nested section of a multimodal config."""
    if body.get("hidden_size") is not None or body.get("num_hidden_layers") is not None:
        return body
    for name in TEXT_SECTIONS:
        inner = body.get(name)
        if isinstance(inner, dict):
            return _text_section(inner, where) if any(isinstance(inner.get(n), dict) for n in TEXT_SECTIONS) else inner
    raise InputError(
        f"hidden_size and num_hidden_layers are missing, and there is no {', '.join(TEXT_SECTIONS[:3])} that has them.",
        where=where,
        fix="Paste the model's config.json (not tokenizer_config.json or generation_config.json).",
    )


def _quantization(body: Mapping[str, Any], section: Mapping[str, Any], beside: str | None) -> Any:
    stated = section.get("quantization_config") or body.get("quantization_config")
    if not stated and beside:
        own = _object(beside, "hf_quant_config.json", LARGEST_CONFIG).get("quantization")
        return {"quant_method": "modelopt", **own} if isinstance(own, dict) else None
    return stated


def _dtype(body: Mapping[str, Any], section: Mapping[str, Any]) -> Any:
    return next((part[key] for part in (section, body) for key in ("torch_dtype", "dtype") if part.get(key)), None)


def _files(index: str | None, headers: Mapping[str, int] | None, layers: int) -> Files | None:
    if headers:
        return from_headers(headers, layers)
    if index and index.strip():
        name = "model.safetensors.index.json"
        return from_index(_object(index, name, LARGEST_INDEX), name)
    return None


def _model(keys: Keys, layers: Layers, id: str, source: str, form: Format, files: Files | None) -> Model:
    """All dimensions; raises InputError for what is missing, contradicts or is not modelled."""
    if keys.model_type not in CHECKED:
        known = f"model_type {keys.model_type!r}" if keys.model_type else "a model without model_type"
        keys.assume(f"{known} was not compared with its code: its keys are taken to mean what they mean elsewhere.")
    moe = read_moe(keys, layers)
    mla = read_mla(keys, layers)
    heads, kv_heads, head_dim = read_heads(keys, mla)
    window, linear = read_window(keys, layers), read_linear(keys, layers)
    quant = form.quantization
    if moe and quant and quant.id == "mxfp4":
        stored = -(-moe.moe_intermediate_size // MXFP4_EXPERT_MULTIPLE) * MXFP4_EXPERT_MULTIPLE
        if stored != moe.moe_intermediate_size:
            moe = moe.model_copy(update={"stored_intermediate_size": stored})
    # Attention within chunks is no sliding window: the catalogue calls it "gqa" with a window block.
    slides = window is not None and keys.has("sliding_window")
    kind = "mla" if mla else f"hybrid_{SHORT[linear.kind]}" if linear else "swa" if slides else "gqa"
    architecture = f"{'moe' if moe else 'dense'}_{kind}"
    if architecture not in MODELLED:
        raise keys.error(
            f"architecture {architecture!r} is not modelled, so no size is given.",
            f"Modelled: {', '.join(MODELLED)}.",
        )
    model = Model(
        id=id, architecture=architecture, num_hidden_layers=len(layers.kinds),
        hidden_size=keys.needed("hidden_size"), num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=head_dim, intermediate_size=mlp_width(keys, layers, moe is not None),
        vocab_size=keys.needed("vocab_size"),
        max_position_embeddings=keys.needed("max_position_embeddings", "max_sequence_length", "seq_length"),
        tie_word_embeddings=read_tied(keys, files), mlp_matrices=mlp_matrices(keys),
        mlp_layers=layers.count("mlp") if layers.blocks else None,
        mtp_layers=keys.whole(*DRAFT_LAYERS, least=0) or 0, moe=moe, sliding_window=window, mla=mla,
        linear_attention=linear,
        global_attention=read_global_attention(keys, kv_heads, head_dim) if window else None,
        vision=read_tower(keys), sources=(source,), confidence="medium",
    )  # fmt: skip
    modules(model)
    return model


def _checked(model: Model, form: Format, files: Files | None) -> WeightsCheck | None:
    if files is None or form.quantization is None:
        return None
    # Kernels pad experts after loading, and towers are compared by themselves: neither is in the text model's files.
    moe = model.moe.model_copy(update={"stored_intermediate_size": None}) if model.moe else None
    bare = weight_bytes(model.model_copy(update={"moe": moe, "vision": None}), form.quantization)
    layers = bare.attention + bare.mlp + bare.router + bare.experts
    draft = layers * model.mtp_layers // model.num_hidden_layers
    return check_weights(bare.total, 2 * vision_parameters(model), draft, files)


def _not_counted(body: Mapping[str, Any], model: Model, files: Files | None, check: WeightsCheck | None) -> list[str]:
    """What memory does not count."""
    said = []
    if check is None and model.vision is None and any(isinstance(body.get(name), dict) for name in TOWER_SECTIONS):
        said.append("The tower for images or sound is not counted: give model.safetensors.index.json or the files.")
    if files and check is None:
        said.append(f"{files.total_bytes / 1e9:,.2f} GB by {files.said_by} not compared: the weight format is unknown.")
    if model.mtp_layers:
        said.append(f"{model.mtp_layers} draft layers (MTP) count only with speculative decoding.")
    return said
