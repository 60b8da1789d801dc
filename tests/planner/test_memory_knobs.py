"""One KV budget as every engine's flag and back: the same number means different memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError, UnknownName
from planner.memory_knobs import KNOBS, DeviceLoad, flag_value, kv_budget
from planner.units import GIB

# Llama-3.1-8B in 16 bit on an H100: 79.19 GiB, 15 GiB weights, 3 GiB activations and graphs, 131,072 B a token.
H100 = DeviceLoad(
    total=79.19 * GIB, weights=15 * GIB, reserve=3 * GIB, kv_bytes_per_token=131_072, slots=8
)  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "value"),
    [
        ("vllm", 0.732),  # (15 + 3 + 40) / 79.19 = 0.7324
        ("tgi", 0.732),
        ("sglang", 0.694),  # (15 + 40) / 79.19 = 0.6945: activations live outside
        ("tensorrt_llm", 0.653),  # 40 / (79.19 - 15 - 3) = 0.6537: of what is free
        ("llama-server", 327_680),  # 40 GiB / 131,072 B
        ("ollama", 40_960),  # the same, over 8 slots
    ],
)
def test_forty_gib_of_kv_cache_as_each_engine_s_flag(engine: str, value: float) -> None:
    assert flag_value(engine, H100, 40 * GIB) == value


@pytest.mark.parametrize(
    ("engine", "kv_gib"),
    [
        ("vllm", 53.271),  # 0.9 x 79.19 - 18
        ("sglang", 56.271),  # 0.9 x 79.19 - 15
        ("tensorrt_llm", 55.071),  # 0.9 x 61.19
    ],
)
def test_nine_tenths_is_a_different_kv_cache_in_each_engine(engine: str, kv_gib: float) -> None:
    # vllm#21348: 178,880 KV tokens at vLLM's default of 0.9 against 367,404 at 0.93 on SGLang, twice as many.
    assert kv_budget(engine, H100, 0.9) / GIB == pytest.approx(kv_gib, abs=1e-3)


@given(
    engine=st.sampled_from(sorted(KNOBS)),
    total=st.floats(16, 300),
    weights=st.floats(0, 0.5),
    reserve=st.floats(0, 0.2),
    kv=st.floats(0, 1),
    slots=st.integers(1, 64),
)
def test_a_budget_comes_back_from_its_flag_never_larger(
    engine: str, total: float, weights: float, reserve: float, kv: float, slots: int
) -> None:
    load = DeviceLoad(
        total=total * GIB, weights=weights * total * GIB, reserve=reserve * total * GIB, kv_bytes_per_token=98_304,
        slots=slots,
    )  # fmt: skip
    budget = kv * load.free
    back = kv_budget(engine, load, max(flag_value(engine, load, budget), 1e-9))
    # Flags are rounded down: a thousandth of the device, or a token in each slot.
    step = load.total / 1000 if KNOBS[engine].fraction else 98_304 * slots
    assert budget - step - 1 <= back <= budget + load.total * 1e-6


@pytest.mark.parametrize(
    ("engine", "value", "says"),
    [("vllm", 90, "90 % is 0.9"), ("vllm", 0, "outside 0 to 1"), ("ollama", -1, "negative")],
)
def test_values_that_cannot_be(engine: str, value: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        kv_budget(engine, H100, value)


def test_budgets_that_cannot_be() -> None:
    with pytest.raises(InputError, match=r"no fraction gives that KV cache: 1\.24 of the device"):
        flag_value("vllm", H100, 80 * GIB)
    with pytest.raises(InputError, match="negative"):
        flag_value("vllm", H100, -1)
    with pytest.raises(InputError, match="KV bytes per token are needed"):
        flag_value("llama-server", DeviceLoad(total=GIB, weights=0, reserve=0), 1000)
    with pytest.raises(UnknownName, match="Did you mean 'vllm'"):
        kv_budget("vlm", H100, 0.9)
