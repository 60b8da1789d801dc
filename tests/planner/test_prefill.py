"""Prompts: operations by hand, the first token, and what a long prompt does to those who decode."""

import pytest

from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.errors import InputError
from planner.prefill import first_token, interference, prefill_flops
from planner.throughput import step_s
from tests.planner.test_throughput import CASE


def test_prefill_operations_by_hand() -> None:
    # Llama-3.1-8B, 1,000 tokens: 2 x 6.98e9 x 1,000 + 4 x 32 layers x 4,096 wide x 1,000^2 / 2 = 1.396e13 + 2.6e11.
    model = load_catalog().model("meta-llama/Llama-3.1-8B-Instruct")
    assert prefill_flops(model, 6.98e9, 1000) == pytest.approx(1.4222e13, rel=0.001)


def test_first_token_without_a_queue() -> None:
    # 0.1 s at peak; mixture of experts: 4 in flight x 9 ms + 0.1 / 0.2.
    found = first_token(CASE.model_copy(update={"prefill_s": 0.1}))
    assert found is not None
    assert (found.floor_ms, found.planning_ms) == pytest.approx((100, 36 + 100 / 0.2))
    # A short prompt cannot be faster than one reading of the weights: 3.0 / 273 s.
    short = first_token(CASE.model_copy(update={"prefill_s": 0.001}))
    assert short is not None
    assert short.floor_ms == pytest.approx(10.99, abs=0.01)
    assert first_token(CASE) is None


def test_a_long_prompt_beside_eight_who_decode() -> None:
    # 0.1 s at peak / MFU 0.3 = 0.333 s for 4,096 tokens; a chunk of 1,024 is a quarter of it, one of 8,192 all of it.
    loaded = CASE.model_copy(update={"prefill_s": 0.1})
    found = interference(loaded, batch=8, input_tokens=4096, chunk_tokens=1024)
    assert found is not None
    assert found.undisturbed_ms == pytest.approx(1000 * step_s(CASE, Kind.PLANNING, 8))
    assert found.chunk_ms == pytest.approx(83.3, abs=0.1)
    assert found.spike_ms == pytest.approx(found.undisturbed_ms + 83.3, abs=0.1)
    # Eight prompts in 500 steps: 8 x 333 / 500 = 5.33 ms a step.
    assert found.averaged_ms == pytest.approx(5.33, abs=0.01)
    assert found.share == pytest.approx(5.33 / (found.undisturbed_ms + 5.33), abs=1e-3)
    whole = interference(loaded, batch=8, input_tokens=4096)
    assert whole is not None
    assert whole.chunk_ms == pytest.approx(333.3, abs=0.1)


def test_no_interference_is_given_without_a_matrix_rate_or_a_prompt() -> None:
    assert interference(CASE, batch=8, input_tokens=4096) is None
    with pytest.raises(InputError, match="are none"):
        interference(CASE, batch=8, input_tokens=0)
