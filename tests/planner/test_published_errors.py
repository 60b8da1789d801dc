"""Errors that other calculators published about themselves, as cases that ours must get right."""

import json

import pytest

from planner.architecture import modules
from planner.catalog import load_catalog
from planner.device_memory import device_memory
from planner.errors import InputError
from planner.fit import FitSettings, footprint
from planner.kv_blocks import engine_kv
from planner.memory import kv_bytes_per_request, kv_bytes_per_token, weight_bytes
from planner.model_config import read_config
from planner.quantization import QUANTIZATIONS, quantization
from planner.splits import valid_tensor_parallel
from planner.units import GB, GIB

CATALOG = load_catalog()

# Keys of Kimi-VL-A3B-Instruct's config.json (text model); its class name says nothing of latent attention.
KIMI_VL = {
    "architectures": ["KimiVLForConditionalGeneration"],
    "model_type": "kimi_vl",
    "text_config": {
        "model_type": "deepseek_v3", "vocab_size": 163840, "hidden_size": 2048, "intermediate_size": 11264,
        "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
        "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "qk_nope_head_dim": 128, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
}  # fmt: skip


def test_latent_attention_is_known_by_its_keys_not_by_a_class_name() -> None:
    # github.com/llm-d-incubation/llm-d-planner/issues/194: Kimi-VL -87 %, its class was not in the list.
    read = read_config(json.dumps(KIMI_VL), id="moonshotai/Kimi-VL-A3B-Instruct").model
    assert kv_bytes_per_token(read, "bf16") == 27 * (512 + 64) * 2
    # vLLM 0.19 log: 41.32 GiB -> 1,426,368 tokens on one H100; 54.78 GiB -> 1,890,896 on each of two.
    assert engine_kv(read, 41.32 * GIB, 8192).tokens == pytest.approx(1_426_368, rel=0.001)
    assert engine_kv(read, 54.78 * GIB, 8192, tensor_parallel=2).tokens == pytest.approx(1_890_896, rel=0.001)


@pytest.mark.parametrize(
    ("model", "total_b", "active_b"),
    [("Qwen/Qwen3.5-122B-A10B", 122, 10), ("Qwen/Qwen3-30B-A3B", 30.5, 3.3), ("openai/gpt-oss-120b", 116.8, 5.7)],
)
def test_memory_counts_all_parameters_and_speed_the_active_ones(model: str, total_b: float, active_b: float) -> None:
    # github.com/AlexsJones/llmfit/issues/230 and 497: a 122B mixture "fits perfectly" in 33 GB; 70 to 75 are needed.
    entry = CATALOG.model(model)
    counted = modules(entry)
    share = entry.moe.experts_per_token / entry.moe.n_routed_experts if entry.moe else 1.0
    assert counted.total / 1e9 == pytest.approx(total_b, rel=0.02)
    active = counted.active(share) + (counted.embedding if counted.lm_head else 0)
    assert active / 1e9 == pytest.approx(active_b, rel=0.15)
    assert weight_bytes(entry, quantization("int4")).total > counted.total / 2


def test_a_context_is_asked_for_and_never_taken_as_the_maximum() -> None:
    # github.com/AlexsJones/llmfit/issues/302: 262K of context assumed, 26 GB for what needs 8.
    with pytest.raises(ValueError, match="context_tokens"):
        FitSettings.model_validate({})
    model, card = CATALOG.model("Qwen/Qwen3.5-9B"), CATALOG.gpu("RTX 4090")
    found = footprint(model, quantization("int4"), card, FitSettings(context_tokens=4096, max_num_batched_tokens=2048))
    # 8 layers x 2 x 4 heads x 256 x 2 B = 32,768 B a token, and 24 states: 185 MB, against 8.6 GB at 262,144 tokens
    assert found.kv_bytes_per_request / GB == pytest.approx(0.186, abs=0.005)
    assert kv_bytes_per_request(model, 262_144, "fp16") / GB == pytest.approx(8.64, abs=0.02)


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "google/gemma-3-27b-it"])
def test_an_eight_bit_cache_is_half_as_wide(model: str) -> None:
    # github.com/vllm-project/vllm/issues/25350: the largest length ignored fp8 KV.
    entry = CATALOG.model(model)
    assert 2 * kv_bytes_per_token(entry, "fp8") == kv_bytes_per_token(entry, "bf16")
    twice = engine_kv(entry, 10 * GIB, 8192, kv_dtype="fp8").max_concurrency
    assert twice == pytest.approx(2 * engine_kv(entry, 10 * GIB, 8192).max_concurrency, rel=0.02)


@pytest.mark.parametrize("quant", [q for q in QUANTIZATIONS.values() if q.bits < 8], ids=lambda q: q.id)
def test_packed_weights_weigh_something(quant: object) -> None:
    # llm-d-planner: int(bits / 8) made four-bit weights weigh nothing.
    form = QUANTIZATIONS[quant.id]  # type: ignore[attr-defined]
    model = CATALOG.model("openai/gpt-oss-20b")
    packed = sum(n for m, n in modules(model).model_dump().items() if m in form.narrow)
    assert weight_bytes(model, form).total > packed * 4 / 8 > 0


def test_windows_stop_growing() -> None:
    # github.com/gpustack/gpustack/issues/2101: Gemma-3-27B; 52 of its 62 layers see 1,024 tokens.
    gemma = CATALOG.model("google/gemma-3-27b-it")
    per_layer = 2 * 16 * 128 * 2  # bytes a token
    assert kv_bytes_per_request(gemma, 131_072, "bf16") == per_layer * (10 * 131_072 + 52 * 1024)


def test_only_every_fourth_layer_of_a_hybrid_keeps_a_cache() -> None:
    # github.com/gpustack/gguf-parser-go/issues/28: full_attention_interval ignored, four times the cache.
    qwen = CATALOG.model("Qwen/Qwen3.5-27B")
    assert kv_bytes_per_token(qwen, "bf16") == 64 // 4 * 2 * 4 * 256 * 2
    # lmstudio-ai/lmstudio-bug-tracker#1862: 598.5 MiB of state over four slots.
    state = kv_bytes_per_request(qwen, 1, "bf16") - kv_bytes_per_token(qwen, "bf16")
    assert 4 * state / 2**20 == pytest.approx(598.5, rel=0.03)


def test_the_vocabulary_divides_too() -> None:
    # github.com/llm-d-incubation/llm-d-planner/pull/205: 40 and 10 heads divide by 5, 100,352 tokens do not.
    assert valid_tensor_parallel(CATALOG.model("microsoft/phi-4")) == (1, 2)


def test_kv_heads_count_not_the_hidden_size() -> None:
    # github.com/vllm-project/vllm/issues/22291 and 14350: 2 x hidden x layers x 2 B is four times too much here.
    llama = CATALOG.model("meta-llama/Llama-3.1-8B-Instruct")
    assert kv_bytes_per_token(llama, "bf16") * 4 == 2 * 4096 * 32 * 2


def test_the_base_is_what_the_driver_reports_and_activations_are_counted() -> None:
    # llm-d-planner took 80 GiB for 79.19; llm-d-benchmark#621 left activations out and missed an out-of-memory.
    assert device_memory(CATALOG.gpu("H100"), 0).total == round(79.19 * GIB)
    found = footprint(CATALOG.model("Qwen/Qwen3-8B"), quantization("bf16"), CATALOG.gpu("H100"),
                      FitSettings(context_tokens=8192, max_num_seqs=1024))  # fmt: skip
    assert found.reserve.activations / GIB == pytest.approx(2.21, rel=0.1)  # vLLM 0.19 log
    # github.com/ai-dynamo/aiconfigurator/issues/1396: a default fraction of 1.0 filled 179.7 of 180 GiB.
    assert found.device.gpu_memory_utilization <= 0.92


def test_what_is_not_modelled_is_refused() -> None:
    # github.com/inference-sim/inference-sim/issues/559: mixtures had been treated as dense.
    odd = CATALOG.model("Qwen/Qwen3-30B-A3B").model_copy(update={"moe": None})
    with pytest.raises(InputError, match="needs moe"):
        weight_bytes(odd, quantization("bf16"))
