"""What a step costs, against the case's printed table and by hand."""

from __future__ import annotations

import pytest

from planner.conditions import Kind
from planner.errors import InputError
from planner.step_time import StepTime
from planner.throughput import ThroughputInputs, user_tok_s

# The case's model: 3.0 GB of active weights, 4,096 tokens of FP16 KV at 98,304 B, 273 GB/s.
CASE = ThroughputInputs(active_weight_gb=3.0, always_read_gb=3.0, kv_gb_per_request=4096 * 98304 / 1e9,
                        bandwidth_gb_s=273, layers=48, output_tokens=256, prefill_s=0.1)  # fmt: skip


def test_stated_times_add_up() -> None:
    stated = StepTime(base_s=0.010, per_request_s=0.001, prefill_s_per_token=0.0001)
    assert stated.seconds(4, 400) == pytest.approx(0.010 + 4 * 0.001 + 400 * 0.0001)
    assert stated.seconds(4) == pytest.approx(0.014)
    assert stated.seconds(0) == 0.0


def test_the_step_of_a_sizing_gives_its_speed() -> None:
    # The case's printed table: 59 tok/s for each of 4, by the bound.
    bound = StepTime.of(CASE, input_tokens=3840, kind=Kind.BOUND)
    assert round(1 / bound.seconds(4)) == 59
    assert 1 / bound.seconds(4) == pytest.approx(user_tok_s(CASE, Kind.BOUND, 4))
    # 0.1 s for a prompt of 3,840 tokens at the matrix rate, of which planning reaches 60 % (dense).
    planning = StepTime.of(CASE, 3840)
    assert planning.prefill_s_per_token == pytest.approx(0.1 / 0.6 / 3840)
    # The averaged prefill is not in the step: 4 x 0.403 + 3.0 GB at 0.8 of 273 GB/s, and 48 layers of 20 us.
    assert planning.seconds(4) == pytest.approx((4 * 4096 * 98304 / 1e9 + 3.0) / 273 / 0.8 + 48 * 20e-6)


def test_prompts_without_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="no prefill"):
        StepTime.of(CASE, 0)
