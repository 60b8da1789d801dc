"""Real config.json files give the catalogue's dimensions; what is not known is assumed aloud or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.memory import kv_bytes_per_request, kv_bytes_per_token, weight_bytes
from planner.model_config import ConfigReading, read_config

CONFIGS = Path(__file__).resolve().parent.parent / "golden" / "configs"
CATALOG = load_catalog()

SAME = {
    "llama-3.3-70b": "meta-llama/Llama-3.3-70B-Instruct",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3.5-35b-a3b": "Qwen/Qwen3.5-35B-A3B",
    "gemma-2-9b": "google/gemma-2-9b-it",
    "gemma-3-27b": "google/gemma-3-27b-it",
    "gemma-4-26b-a4b": "google/gemma-4-26B-A4B-it",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite-Chat",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mistral-7b-v0.1": "mistralai/Mistral-7B-v0.1",
    "phi-4": "microsoft/phi-4",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "nemotron-3-nano-30b-a3b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
}
# The catalogue's entries are read by people, too; these fields it may leave to a log, or does not need.
NOT_COMPARED = {"id", "sources", "confidence", "note", "nominal_active_params_b", "extra_weights_gib", "vision",
                "mtp_layers", "mlp_matrices", "mlp_layers"}  # fmt: skip


def config(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return body


def read(body: dict[str, Any], **more: Any) -> ConfigReading:
    return read_config(json.dumps(body), id="org/model", **more)


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_real_config_gives_the_dimensions_of_the_catalogue(name: str) -> None:
    reading = read_config((CONFIGS / f"{name}.json").read_text(encoding="utf-8"), id=SAME[name])
    wanted = CATALOG.model(SAME[name]).model_dump(exclude=NOT_COMPARED)
    assert reading.model.model_dump(exclude=NOT_COMPARED) == wanted
    assert reading.model.confidence == "medium"


def test_latent_attention_is_known_by_its_keys_whatever_the_class_is_called() -> None:
    """A published calculator knew it by class name and gave Kimi-VL an eighth of its requests (llm-d-planner#194)."""
    reading = read(config("kimi-vl-a3b"))
    assert reading.model.architecture == "moe_mla"
    # vLLM 0.19 on H100: 41.32 GiB hold 1,426,368 tokens, 31,104 bytes each: 27 layers x (512 + 64) x 2.
    assert kv_bytes_per_token(reading.model, "fp16") == 31104
    assert abs(1_426_368 * 31104 / 2**30 - 41.32) < 0.005
    # 30.74 GiB of weights in the same log, tower included.
    assert reading.format.quantization is not None
    weights = weight_bytes(reading.model, reading.format.quantization).total
    assert weights / 2**30 == pytest.approx(30.74, rel=0.01)
    assert any("'kimi_vl' was not compared" in sentence for sentence in reading.assumed)


@pytest.mark.parametrize(
    ("changed", "kv_heads", "head_dim", "said"),
    [
        ({}, 8, 128, ()),
        ({"num_key_value_heads": None}, 32, 128, ("num_key_value_heads is not stated; 32 taken",)),
        ({"head_dim": 256}, 8, 256, ()),
        ({"model_type": "foo"}, 8, 128, ("model_type 'foo' was not compared",)),
        ({"tie_word_embeddings": None, "model_type": "foo"}, 8, 128, ("tie_word_embeddings is not stated; false",)),
    ],
)
def test_what_is_not_stated_is_said(
    changed: dict[str, Any], kv_heads: int, head_dim: int, said: tuple[str, ...]
) -> None:
    reading = read(LLAMA | changed)
    assert (reading.model.num_key_value_heads, reading.model.head_dim) == (kv_heads, head_dim)
    assert all(any(part in sentence for sentence in reading.assumed) for part in said)
    assert bool(reading.assumed) == bool(said)


@pytest.mark.parametrize(
    ("changed", "full", "windowed"),
    [
        # Qwen2.5 ships a window that is switched off; switched on, it begins at max_window_layers.
        ({"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28}, 32, 0),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, 28, 4),
        ({"sliding_window": 4096, "max_window_layers": 28}, 32, 0),
        ({"sliding_window": 1024, "sliding_window_pattern": 6}, 5, 27),
        ({"sliding_window": 1024, "sliding_window_pattern": "LLLG"}, 8, 24),
        ({"sliding_window": 4096, "model_type": "mistral"}, 0, 32),
        ({"sliding_window": 262144, "model_type": "phi3"}, 32, 0),  # longer than the context: cuts nothing off
        ({"sliding_window": 4096, "model_type": "foo"}, 32, 0),  # no key says where: the upper bound, said
        ({"attention_chunk_size": 8192, "no_rope_layers": [1, 1, 1, 0] * 8}, 8, 24),
    ],
)
def test_windows(changed: dict[str, Any], full: int, windowed: int) -> None:
    reading = read(LLAMA | changed)
    window = reading.model.sliding_window
    assert (window.windowed_layers if window else 0) == windowed
    assert (window.full_attention_layers if window else 32) == full
    if changed.get("model_type") == "foo":
        assert any("upper bound of the KV cache" in sentence for sentence in reading.assumed)


@pytest.mark.parametrize(
    ("changed", "moe_layers", "dense"),
    [
        ({"num_experts": 8, "moe_intermediate_size": 512}, 32, 0),
        ({"n_routed_experts": 8, "moe_intermediate_size": 512, "first_k_dense_replace": 3}, 29, 3),
        ({"num_experts": 8, "moe_intermediate_size": 512, "decoder_sparse_step": 2}, 16, 16),
        ({"num_experts": 8, "moe_intermediate_size": 512, "mlp_only_layers": [0, 5]}, 30, 2),
        ({"n_routed_experts": 8, "moe_intermediate_size": 512, "moe_layer_freq": [0] * 4 + [1] * 28}, 28, 4),
        ({"num_experts": 8, "moe_intermediate_size": 512, "mlp_layer_types": ["dense"] + ["sparse"] * 31}, 31, 1),
        ({"num_local_experts": 8, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 16384}, 16, 16),
    ],
)
def test_which_layers_have_experts(changed: dict[str, Any], moe_layers: int, dense: int) -> None:
    moe = read(LLAMA | {"num_experts_per_tok": 2} | changed).model.moe
    assert moe is not None
    assert (moe.moe_layers, moe.first_k_dense) == (moe_layers, dense)


@pytest.mark.parametrize(
    ("changed", "width"),
    [
        ({"n_shared_experts": 2}, 1024),
        ({"shared_expert_intermediate_size": 700}, 700),
        ({"moe_shared_expert_intermediate_size": 900, "n_shared_experts": 1}, 900),
        ({"share_expert_dim": 1280, "n_shared_experts": 1}, 1280),
        ({}, 0),
    ],
)
def test_shared_experts_under_each_spelling(changed: dict[str, Any], width: int) -> None:
    moe = read(LLAMA | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512} | changed).model.moe
    assert moe is not None and moe.shared_intermediate_size == width


@pytest.mark.parametrize(
    ("quant", "format", "kv", "attention_bits"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", None, 8),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", None, 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 8}, "int8", None, 8),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "mxfp4", None, 16),
        ({"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*"],
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4", None, 16),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float"}}},
          "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "nvfp4", "fp8", 4.5),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
          "exclude_modules": ["lm_head", "model.layers.0.self_attn"]}, "nvfp4", "fp8", 4.5),
    ],
)  # fmt: skip
def test_weight_formats(quant: dict[str, Any], format: str, kv: str | None, attention_bits: float) -> None:
    found = read(LLAMA | {"quantization_config": quant}).format
    assert found.quantization is not None
    assert (found.quantization.id, found.kv_dtype) == (format, kv)
    assert found.quantization.bits_of("attention") == attention_bits


def test_an_unknown_format_is_said_and_not_guessed() -> None:
    reading = read(LLAMA | {"quantization_config": {"quant_method": "quip"}})
    assert reading.format.quantization is None
    assert "'quip' is not one that is modelled" in reading.warnings[0]


# Llama-3.1-8B by hand: 2 x 128,256 x 4,096 + 32 x (4,096 x 128 x (32 + 8 + 8) + 4,096 x 4,096 + 3 x 4,096 x 14,336)
# = 8,029,995,008 parameters; the index of the real checkpoint says 16,060,522,496 bytes, norms included.
LLAMA_BYTES = 16_060_522_496


def index(total: Any, names: dict[str, str] | None = None) -> str:
    return json.dumps({"metadata": {"total_size": total}, "weight_map": names or {}})


def test_the_index_confirms_the_formula() -> None:
    check = read(LLAMA, index=index(LLAMA_BYTES)).weights
    assert check is not None
    assert check.computed_bytes == 2 * 8_029_995_008
    assert not check.warning and check.extra_gib == 0
    assert "within 2%" in check.sentence


def test_tensors_that_the_formula_does_not_know_are_told_and_counted() -> None:
    reading = read(LLAMA, index=index(LLAMA_BYTES + 2 * 2**30))
    assert reading.weights is not None and reading.weights.warning
    assert "memory counts the files'" in reading.warnings[0]
    assert reading.format.quantization is not None
    assert weight_bytes(reading.model, reading.format.quantization).total == pytest.approx(
        LLAMA_BYTES + 2 * 2**30, rel=1e-4
    )


def test_fewer_bytes_than_the_formula_are_a_warning() -> None:
    reading = read(LLAMA, index=index(LLAMA_BYTES // 2))
    assert "memory counts the formula's" in reading.warnings[0]


def test_the_files_say_whether_tables_are_tied() -> None:
    body = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    tied = read(body, index=index(LLAMA_BYTES - 2 * 128256 * 4096, {"model.embed_tokens.weight": "a"}))
    assert tied.model.tie_word_embeddings and "no lm_head" in tied.assumed[0]
    assert tied.weights is not None and not tied.weights.warning
    untied = read(body, index=index(LLAMA_BYTES, {"model.embed_tokens.weight": "a", "lm_head.weight": "b"}))
    assert not untied.model.tie_word_embeddings


def test_headers_tell_towers_and_draft_layers_apart() -> None:
    headers = {"model.layers.0.mlp.up_proj.weight": LLAMA_BYTES, "vision_tower.blocks.0.weight": 800_000_000,
               "model.layers.32.eh_proj.weight": 400_000_000, "lm_head.weight": 0}  # fmt: skip
    reading = read(LLAMA, headers=headers)
    assert reading.weights is not None and not reading.weights.warning
    assert reading.weights.stated_bytes == LLAMA_BYTES + 800_000_000
    # The tower counts, with the norms that the formula leaves out; the draft layer does not.
    assert reading.model.extra_weights_gib * 2**30 == pytest.approx(800_000_000, rel=0.001)


def test_a_hybrids_state_does_not_grow_with_the_context() -> None:
    model = read(config("nemotron-3-nano-30b-a3b")).model
    # 6 attention layers x 2 KV heads x 128 x 2 (K and V) x 2 bytes; a cache in all 52 layers would be 8.7 times that.
    assert kv_bytes_per_token(model, "fp16") == 6144
    growth = kv_bytes_per_request(model, 8192, "fp16") - kv_bytes_per_request(model, 4096, "fp16")
    assert growth == 4096 * 6144


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"_diffusers_version": "0.30"}, "diffusion pipeline"),
        ({"architectures": ["BertForMaskedLM"]}, "encoder or a classifier"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"intermediate_size": None}, "intermediate_size or ffn_hidden_size is missing"),
        ({"num_attention_heads": "32"}, "num_attention_heads: '32' is not a whole number"),
        ({"num_attention_heads": True}, "num_attention_heads: True is not a whole number"),
        ({"hidden_size": -4096}, "hidden_size: -4096 is not between 1"),
        ({"vocab_size": 10**30}, "is not between 1 and 1,000,000,000"),
        ({"num_hidden_layers": 10**8}, "more than any model has"),
        ({"num_attention_heads": [32, 16]}, "differs between layers"),
        ({"num_attention_heads": 12}, "12 is not a multiple of num_key_value_heads 8"),
        ({"num_attention_heads": 24}, "hidden_size 4096 does not divide by 24 heads"),
        ({"layer_types": ["full_attention"] * 5}, "5 entries, num_hidden_layers says 32"),
        ({"layer_types": ["rwkv"] * 32}, "layer_types names rwkv, which is not modelled"),
        ({"layer_types": ["mamba"] * 32, "mamba_n_heads": 8}, "pure state-space models"),
        ({"layer_types": ["linear_attention", "full_attention"] * 16}, "linear_num_key_heads is missing"),
        ({"mamba_d_state": 128}, "no key says which layers have attention"),
        ({"mamba_d_state": 16, "attn_layer_period": 8, "attn_layer_offset": 4}, "Mamba 1"),
        ({"linear_attn_config": {"num_heads": 4}}, "linear attention of another kind"),
        ({"num_kv_shared_layers": 10}, "share one KV cache"),
        ({"hidden_size_per_layer_input": 256}, "embeddings per layer"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim is missing"),
        ({"num_experts": 8}, "num_experts_per_tok or"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "9 experts per token of only 8"),
    ],
)
def test_what_is_not_modelled_or_missing_is_named(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as e:
        read(LLAMA | changed)
    assert sentence in str(e.value)
    assert e.value.where and e.value.fix


@pytest.mark.parametrize(("name", "key"), [("deepseek-v4-flash", "compress_ratios"),
                                           ("laguna-xs.2-fp8", "num_attention_heads_per_layer")])  # fmt: skip
def test_real_models_with_unknown_attention_are_refused_by_key(name: str, key: str) -> None:
    with pytest.raises(InputError, match=f"{key} means .* not modelled"):
        read(config(name))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the text is empty"),
        ("<!DOCTYPE html><html>", "this is a web page"),
        ("[1, 2]", "a list where an object was expected"),
        ("{", "not readable as JSON"),
        ('{"hidden_size": NaN}', "NaN is not a number that JSON knows"),
        ('{"a":' * 100_000, "nested too deep"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "not readable as JSON"),
        ('{"tokenizer_class": "LlamaTokenizer"}', "hidden_size and num_hidden_layers are missing"),
    ],
)
def test_text_that_is_no_config(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_config(text, id="org/model")


def test_a_byte_order_mark_is_read_over() -> None:
    assert read_config("\ufeff" + json.dumps(LLAMA), id="org/model").model.hidden_size == 4096


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"metadata": {}}', '{"metadata": {"total_size": "big"}}', '{"metadata": {"total_size": -1}}']
)
def test_an_index_without_a_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"model\.safetensors\.index\.json"):
        read(LLAMA, index=text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KNOWN = sorted({k for f in CONFIGS.glob("*.json") for k in json.loads(f.read_text(encoding="utf-8"))} | set(LLAMA)
               | {"layer_types", "text_config", "attn_layer_indices", "moe_layers", "moe_layers_enum"})  # fmt: skip


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    start=st.sampled_from([LLAMA, *(config(name) for name in ("kimi-vl-a3b", "gemma-4-26b-a4b", "qwen3.5-35b-a3b",
                                                                "nemotron-3-nano-30b-a3b", "laguna-xs.2-fp8"))]),
    changed=st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=3), nested=st.booleans(),
)  # fmt: skip
def test_whatever_json_comes_in_the_answer_is_a_model_or_one_sentence(
    start: dict[str, Any], changed: dict[str, Any], nested: bool
) -> None:
    body = start | ({"text_config": start["text_config"] | changed} if nested and "text_config" in start else changed)
    try:
        reading = read_config(json.dumps(body), id="org/model")
    except InputError as e:
        assert str(e)
        return
    assert reading.model.num_hidden_layers <= 1000
    assert kv_bytes_per_token(reading.model, "fp16") > 0
