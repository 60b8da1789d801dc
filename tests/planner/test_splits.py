"""Tensor parallel by heads and vocabulary, pipeline parallel by layers; the fullest stage decides."""

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from planner.fit import FitSettings, footprint
from planner.kv_layers import cache_layers
from planner.memory import stage_weights, weight_bytes
from planner.quantization import quantization
from planner.splits import check_tensor_parallel, stage_layers, valid_tensor_parallel
from planner.units import GIB

CATALOG = load_catalog()
BF16 = quantization("bf16")


@pytest.mark.parametrize(
    ("model", "devices", "says"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", 8, "28 attention heads do not divide over 8 devices"),
        ("Qwen/Qwen2.5-7B-Instruct", 7, "4 KV heads do not divide over 7 devices"),
        # 40 heads, 10 KV heads, 100,352 tokens: heads divide by 5, the vocabulary does not (llm-d-planner#205).
        ("microsoft/phi-4", 5, "a vocabulary of 100,352 does not divide over 5 devices"),
        ("microsoft/phi-4", 0, "0 devices are not a split"),
    ],
)
def test_a_split_that_does_not_divide_is_named(model: str, devices: int, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        check_tensor_parallel(CATALOG.model(model), devices)
    assert "Tensor parallel can be 1, 2" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "valid"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", (1, 2, 4, 8, 16, 32)),  # 8 KV heads, copied beyond 8
        ("Qwen/Qwen2.5-7B-Instruct", (1, 2, 4)),
        ("microsoft/phi-4", (1, 2)),
        ("ibm-granite/granite-3.1-2b-instruct", (1, 2, 4, 8, 16, 32)),  # 49,155 tokens are stored as 49,216
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", (1, 2, 4, 8, 16)),  # a latent cache has no KV heads to divide
    ],
)
def test_valid_numbers_of_devices(model: str, valid: tuple[int, ...]) -> None:
    assert valid_tensor_parallel(CATALOG.model(model)) == valid


def test_layers_of_the_stages() -> None:
    # vllm/distributed/utils.py: what is left over goes to the stages before the last, which has the output projection.
    assert stage_layers(32, 4) == (8, 8, 8, 8)
    assert stage_layers(27, 2) == (14, 13)
    assert stage_layers(62, 4) == (15, 16, 16, 15)
    assert stage_layers(5, 1) == (5,)


@pytest.mark.parametrize(("stages", "gib"), [(2, 7.51), (4, 4.26)])
def test_weights_of_a_stage_are_what_was_logged(stages: int, gib: float) -> None:
    # Llama-3.1-8B, vLLM 0.19 on H100 (jgchn/llm-d-planner@d3121e0, tp1pp2 and tp1pp4)
    llama = CATALOG.model("meta-llama/Llama-3.1-8B-Instruct")
    held = stage_weights(llama, weight_bytes(llama, BF16), 1, stages)
    assert max(held) / GIB == pytest.approx(gib, rel=0.01)
    assert sum(held) == pytest.approx(weight_bytes(llama, BF16).total, abs=stages)


def test_a_stage_keeps_its_layers_of_each_kind() -> None:
    qwen = CATALOG.model("Qwen/Qwen3.5-35B-A3B")  # 10 full and 30 linear layers
    assert [c.layers for c in cache_layers(qwen, 1, 2)] == [5, 15]
    assert [c.layers for c in cache_layers(qwen, 1, 4)] == [3, 8]  # 2.5 and 7.5: a part of a layer is a whole one
    with pytest.raises(InputError, match="40 layers do not make 41 stages"):
        cache_layers(qwen, 1, 41)


def test_a_pipeline_makes_room_where_one_device_has_none() -> None:
    llama, card = CATALOG.model("meta-llama/Llama-3.3-70B-Instruct"), CATALOG.gpu("H100")
    alone = footprint(llama, quantization("fp8"), card, FitSettings(context_tokens=8192))
    staged = footprint(llama, quantization("fp8"), card, FitSettings(context_tokens=8192, pipeline_parallel=2))
    assert alone.requests_that_fit < 4 < staged.requests_that_fit
    assert staged.kv_bytes_per_token == alone.kv_bytes_per_token // 2
