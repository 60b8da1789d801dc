"""Memory against figures that engines logged, and against the arithmetic of the cases."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.architecture import modules
from planner.catalog import load_catalog
from planner.device_memory import device_memory, memory_budget
from planner.errors import InputError
from planner.fit import FitSettings, footprint, memory_warning
from planner.kv_blocks import engine_kv, largest_context
from planner.kv_layers import cache_layers
from planner.memory import kv_bytes_per_request, kv_bytes_per_token, requests_that_fit, reserve, weight_bytes
from planner.model_schema import Model
from planner.quantization import QUANTIZATIONS, quantization
from planner.units import GB, GIB

CATALOG = load_catalog()


class Logged(NamedTuple):
    """One start-up log: vLLM 0.19.0 on H100 80 GB, gpu_memory_utilization 0.95, max_model_len 8,192.

    Source: github.com/jgchn/llm-d-planner @d3121e0, accuracy/results/v0.19.0/logs.
    """

    model: str
    quant: str
    tensor_parallel: int
    weights_gib: float
    kv_gib: float
    tokens: int
    concurrency: float
    activation_gib: float
    kv_dtype: str = "bf16"


LOGS = [
    Logged("meta-llama/Llama-3.1-8B-Instruct", "bf16", 1, 14.99, 58.11, 476016, 58.11, 1.89),
    Logged("meta-llama/Llama-3.1-8B-Instruct", "bf16", 1, 14.99, 58.11, 952032, 116.21, 1.89, "fp8"),
    Logged("meta-llama/Llama-3.1-8B-Instruct", "fp8", 1, 8.49, 64.61, 529248, 64.61, 1.89),
    Logged("meta-llama/Llama-3.1-8B-Instruct", "bf16", 4, 3.77, 67.44, 2209792, 269.75, 1.89),
    Logged("meta-llama/Llama-3.3-70B-Instruct", "fp8", 2, 33.88, 37.28, 244304, 29.82, 1.96),
    Logged("Qwen/Qwen2.5-7B-Instruct", "int8", 1, 8.14, 64.64, 1210272, 147.74, 2.21),
    Logged("Qwen/Qwen3-8B", "bf16", 1, 15.27, 57.5, 418688, 51.11, 2.21),
    Logged("Qwen/Qwen3-30B-A3B", "bf16", 1, 56.88, 15.41, 168288, 20.54, 2.68),  # mixture of experts
    Logged("microsoft/phi-4", "bf16", 1, 27.39, 46.08, 241568, 29.49, 1.52),
    Logged("deepseek-ai/DeepSeek-V2-Lite-Chat", "bf16", 1, 29.43, 43.61, 1505552, 183.78, 1.93),  # latent attention
    Logged("google/gemma-2-9b-it", "bf16", 1, 17.22, 54.12, 168880, 20.60, 3.65),  # every second layer windowed
    Logged("google/gemma-3-4b-it", "bf16", 1, 8.58, 62.51, 468144, 57.05, 3.89),  # 5 full, 29 windowed, vision tower
    Logged("google/gemma-3-27b-it", "bf16", 1, 51.45, 19.53, 36560, 4.46, 3.99),  # 52 windowed layers padded to 60
]
IDS = [f"{log.model.split('/')[1]}-{log.quant}-{log.kv_dtype}-tp{log.tensor_parallel}" for log in LOGS]


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_weights_within_one_percent_of_the_log(log: Logged) -> None:
    weights = weight_bytes(CATALOG.model(log.model), quantization(log.quant)).total / log.tensor_parallel
    assert weights / GIB == pytest.approx(log.weights_gib, rel=0.01)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_kv_tokens_and_concurrency_from_the_logged_pool(log: Logged) -> None:
    kv = engine_kv(
        CATALOG.model(log.model), log.kv_gib * GIB, 8192, kv_dtype=log.kv_dtype, tensor_parallel=log.tensor_parallel
    )
    assert kv.tokens == pytest.approx(log.tokens, rel=0.001)
    # The log prints two decimals, which is 0.1 % of 4.46.
    assert kv.max_concurrency == pytest.approx(log.concurrency, rel=0.002)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_activations_within_the_band_that_is_stated(log: Logged) -> None:
    kept = reserve(CATALOG.model(log.model), 1024, 8192, log.tensor_parallel)
    assert 0.7 <= kept.activations / GIB / log.activation_gib <= 1.4


def test_a_hybrid_model_by_the_group_rule() -> None:
    # vLLM 0.21+ on GB10, Qwen3.6-35B-A3B (geometry of 3.5): 47.55 GiB -> attention blocks of 1,056 tokens, 623,040
    # tokens, 18.44 requests of 131,072 (djangodevreng/dgx-spark-benchmarks @5636536, boot log).
    kv = engine_kv(CATALOG.model("Qwen/Qwen3.5-35B-A3B"), 47.55 * GIB, 131_072, prefix_caching=False)
    assert (kv.block_tokens, kv.tokens) == (1056, 623_040)
    assert kv.max_concurrency == pytest.approx(18.44, abs=0.01)


@pytest.mark.parametrize(
    ("model", "quant", "gib"),
    [
        ("openai/gpt-oss-20b", "mxfp4", 13.47),  # vLLM 0.11 (llm-d-planner @e50305af): only experts are packed
        ("openai/gpt-oss-120b", "mxfp4", 64.38),
        ("Qwen/Qwen3.5-35B-A3B", "bf16", 64.69),  # Qwen3.6-35B-A3B, GB10 boot log
    ],
)
def test_packed_experts_and_hybrids_weigh_what_was_logged(model: str, quant: str, gib: float) -> None:
    weights = weight_bytes(CATALOG.model(model), quantization(quant))
    # The last log is of a run with language_model_only: no vision tower.
    assert (weights.total - weights.extra) / GIB == pytest.approx(gib, rel=0.01)


@pytest.mark.parametrize(
    ("model", "dtype", "bytes_per_token"),
    [
        ("Qwen/Qwen3-30B-A3B", "fp16", 98_304),  # the case: 48 layers x 4 heads x 128 x 2 x 2 B
        ("Qwen/Qwen3-30B-A3B", "fp8", 49_152),
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 131_072),
        ("moonshotai/Kimi-K2-Instruct", "bf16", 70_272),  # TP8 log: 46.80 GiB -> 715,072 tokens
        ("deepseek-ai/DeepSeek-V3.2", "fp8", 61 * 788),  # sglang#11309: 65.49 GiB -> 1,462,784 tokens
    ],
)
def test_kv_bytes_per_token(model: str, dtype: str, bytes_per_token: int) -> None:
    assert kv_bytes_per_token(CATALOG.model(model), dtype) == bytes_per_token


def test_a_latent_cache_is_not_split_over_devices_and_heads_only_as_far_as_they_go() -> None:
    kimi, qwen = CATALOG.model("moonshotai/Kimi-K2-Instruct"), CATALOG.model("Qwen/Qwen3-30B-A3B")
    assert kv_bytes_per_token(kimi, "bf16", 8) == kv_bytes_per_token(kimi, "bf16")
    assert kv_bytes_per_token(qwen, "bf16", 8) == kv_bytes_per_token(qwen, "bf16", 4) == 98_304 // 4


def test_a_window_stops_growing_and_a_state_does_not_grow() -> None:
    mistral = CATALOG.model("mistralai/Mistral-7B-v0.1")  # all 32 layers see 4,096 tokens, 131,072 B a token
    assert kv_bytes_per_request(mistral, 32_768, "fp16") == 4096 * 131_072
    qwen = CATALOG.model("Qwen/Qwen3.5-35B-A3B")
    # 62.8 MiB of state in llama.cpp's log (63 MiB), then 20,480 B a token in the 10 full layers.
    state = kv_bytes_per_request(qwen, 1, "fp16") - 20_480
    assert state / 2**20 == pytest.approx(61.4, abs=0.1)
    assert kv_bytes_per_request(qwen, 4096, "fp16") == state + 4096 * 20_480


def test_the_split_example() -> None:
    # Case text: 24 GB = 16.2 weights + 6.5 KV + 1.3 activations and slack.
    budget = memory_budget(device_total=24 * GB, outside=0, tenants=0, weights=16.2 * GB, reserve=1.3 * GB)
    assert budget.kv == 6.5 * GB
    assert budget.fits


def test_requests_that_fit() -> None:
    # Case text: 40 GB of KV cache, 0.5 GB a request at 4K: 80; eight times the context: 10.
    assert requests_that_fit(40 * GB, 0.5 * GB) == 80
    assert requests_that_fit(40 * GB, 8 * 0.5 * GB) == 10


def test_the_largest_context_for_a_number_of_requests() -> None:
    # Llama-3.1-8B: 40 GB / (16 tokens x 131,072 B) = 19,073 blocks; 80 requests get 238 each = 3,808 tokens.
    llama = CATALOG.model("meta-llama/Llama-3.1-8B-Instruct")
    assert largest_context(llama, 40 * GB, 80) == 3808
    assert largest_context(llama, 400 * GB, 1) == 131_072  # the model's own limit
    assert largest_context(llama, 1 * GB, 1000) == 0


def test_unified_memory_leaves_the_system_what_is_not_usable() -> None:
    device = device_memory(CATALOG.gpu("GB10"), tenants_gb=0)
    assert device.gpu_memory_utilization == 0.92  # 121 GB of 121.69 GiB = 130.7 GB, two decimals down
    beside = device_memory(CATALOG.gpu("GB10"), tenants_gb=20)
    assert beside.gpu_memory_utilization == 0.77  # (121 - 20) / 130.67
    assert beside.tenants == 20 * GB


def test_tenants_that_leave_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="nothing is left"):
        device_memory(CATALOG.gpu("L4"), tenants_gb=30)


def test_thirty_four_gb_on_a_24_gb_card_is_caught_with_the_way_out() -> None:
    model, card = CATALOG.model("Qwen/Qwen3-32B"), CATALOG.gpu("RTX 4090")
    found = footprint(model, quantization("fp8"), card, FitSettings(context_tokens=2048, max_num_batched_tokens=2048))
    assert not found.budget.fits
    sentence = memory_warning(model, quantization("fp8"), card, found)
    assert sentence is not None
    assert "34.3 GB of weights do not fit a device of 25.3 GB (23.52 GiB)" in sentence
    assert "What would do: 2 devices, or INT4." in sentence


@pytest.mark.parametrize(
    ("model", "quant", "gpu", "context", "ways"),
    [
        # 16.4 GB of weights leave 3.4 GB of 24.1; 32,768 tokens x 147,456 B = 4.8 GB. Every way out is named.
        ("Qwen/Qwen3-8B", "bf16", "L4", 32_768, "2 devices, or FP8, or a context of 16,384 tokens"),
        # 29.3 GB: heads and vocabulary divide by 2 only, which leaves nothing for the cache; four stages do.
        ("microsoft/phi-4", "fp16", "T4", 2048, "4 devices, each with a part of the layers, or INT4"),
    ],
)
def test_what_would_do_instead(model: str, quant: str, gpu: str, context: int, ways: str) -> None:
    entry, card, form = CATALOG.model(model), CATALOG.gpu(gpu), quantization(quant)
    found = footprint(entry, form, card, FitSettings(context_tokens=context, max_num_batched_tokens=2048))
    sentence = memory_warning(entry, form, card, found)
    assert sentence is not None
    assert ways in sentence


@pytest.mark.parametrize(
    ("quant", "gpu", "says"),
    [
        (
            "bf16",
            "T4",
            r"T4: bf16 does not run on this device: it has compute capability 7\.5, it needs 8\.0\. Take fp16",
        ),
        ("mxfp4", "T4", r"it needs 8\.0\. Take q4_k_m"),
        ("nvfp4", "MI300X", "no kernels for it. Take int4"),
    ],
)
def test_a_format_that_the_device_cannot_run_is_refused_with_what_to_take(quant: str, gpu: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        footprint(
            CATALOG.model("openai/gpt-oss-20b"), quantization(quant), CATALOG.gpu(gpu), FitSettings(context_tokens=1)
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [("context_tokens", 0), ("context_tokens", 10**9), ("tenants_gb", -1.0), ("fraction", 90), ("devices", 0)],
)
def test_absurd_settings_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        FitSettings.model_validate({"context_tokens": 4096, field: value})


def test_linear_attention_layers_keep_the_width_that_publishers_give_them() -> None:
    # Qwen3.8-27B in NVFP4, vLLM log on A6000: 19.75 GiB. 5.56 B weights of the linear layers in 8 bit, 18.79 B of the
    # others in 4.5, two tables of 1.27 B in 16: 5.56 + 10.57 + 5.09 = 21.2 GB.
    qwen = CATALOG.model("Qwen/Qwen3.8-27B")
    assert weight_bytes(qwen, quantization("nvfp4")).total / GIB == pytest.approx(19.75, rel=0.005)
    # AWQ leaves them 16 bit.
    assert weight_bytes(qwen, quantization("awq")).attention > 2 * 5.56e9


def test_drafts_are_loaded_only_when_asked_for() -> None:
    # Nemotron-3-Super, boot log with three drafted tokens: 75.03 GiB; 5.8 GB of it is the draft layer in 16 bit.
    model = CATALOG.model("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16")
    with_drafts = weight_bytes(model, quantization("nvfp4"), drafts=True).total
    assert (with_drafts - weight_bytes(model, quantization("nvfp4")).total) / GB == pytest.approx(5.8, abs=0.2)


def test_a_vision_tower_is_counted_from_its_dimensions() -> None:
    # Kimi-VL: 27 x (4 x 1152^2 + 2 x 1152 x 4304) + 30.7 M = 0.44 B; vLLM log: 30.74 GiB with it.
    kimi = CATALOG.model("moonshotai/Kimi-VL-A3B-Instruct")
    weights = weight_bytes(kimi, quantization("bf16"))
    assert weights.extra == 2 * (27 * (4 * 1152**2 + 2 * 1152 * 4304) + 30_670_848)
    assert weights.total / GIB == pytest.approx(30.74, rel=0.01)


def test_memory_counts_all_experts() -> None:
    # AlexsJones/llmfit#230: a 122B mixture was called a perfect fit at 33 GB because active parameters were counted.
    weights = weight_bytes(CATALOG.model("Qwen/Qwen3.5-122B-A10B"), quantization("int4")).total / GB
    assert 60 < weights < 75


def test_packed_weights_are_not_zero_bytes() -> None:
    # llm-d-planner: int(bits / 8) made 4-bit weights weigh nothing.
    weights = weight_bytes(CATALOG.model("Qwen/Qwen3-32B"), quantization("awq"))
    # 31.2 B parameters x 4.156 bits + 1.56 B in 16 bit = 16.2 + 3.1 GB
    assert weights.total / GB == pytest.approx(19.3, abs=0.1)
    assert weights.lm_head == 151_936 * 5120 * 2


def test_an_architecture_that_is_not_modelled_is_refused_and_never_taken_as_dense() -> None:
    odd = CATALOG.model("Qwen/Qwen3-8B").model_copy(update={"architecture": "rwkv"})
    for ask in (modules, cache_layers):
        with pytest.raises(InputError, match="'rwkv' is not modelled"):
            ask(odd)
    bare = CATALOG.model("deepseek-ai/DeepSeek-R1").model_copy(update={"mla": None})
    with pytest.raises(InputError, match="needs mla"):
        modules(bare)


def test_heads_that_devices_cannot_share_are_refused() -> None:
    with pytest.raises(InputError, match="28 attention heads do not divide over 8 devices"):
        cache_layers(CATALOG.model("Qwen/Qwen2.5-7B-Instruct"), 8)


MODELS = st.sampled_from(sorted(CATALOG.models.values(), key=lambda m: m.id))


@given(
    model=MODELS,
    quant=st.sampled_from(sorted(QUANTIZATIONS)),
    gpu=st.sampled_from(["GB10", "H100", "RTX 4090", "B200", "RTX 3090", "L4"]),
    context=st.integers(16, 131_072),
    tenants=st.floats(0, 15),
)
@settings(max_examples=60)
def test_parts_add_up_to_the_device_or_the_shortfall_is_said(
    model: Model, quant: str, gpu: str, context: int, tenants: float
) -> None:
    found = footprint(
        model, quantization(quant), CATALOG.gpu(gpu), FitSettings(context_tokens=context, tenants_gb=tenants)
    )
    budget = found.budget
    # Each of the five parts is rounded to a whole byte.
    assert sum(budget.parts.values()) - budget.shortfall == pytest.approx(budget.device_total, abs=5)
    assert min(budget.parts.values()) >= 0
    assert budget.kv == 0 or budget.shortfall == 0


@given(model=MODELS, context=st.integers(16, 100_000), more=st.integers(1, 30_000))
@settings(max_examples=60)
def test_a_longer_context_never_needs_less_and_never_fits_more(model: Model, context: int, more: int) -> None:
    assert kv_bytes_per_request(model, context + more, "fp16") >= kv_bytes_per_request(model, context, "fp16")
    fits = [engine_kv(model, 40 * GIB, n).max_concurrency for n in (context, context + more)]
    assert fits[1] <= fits[0]
