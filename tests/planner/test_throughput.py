"""Speeds: the case's integers exactly, what measurements say about them, and what must always hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.completion import completion
from planner.conditions import Kind
from planner.errors import InputError
from planner.throughput import (
    KINDS,
    MeasuredRatio,
    ThroughputInputs,
    batch_row,
    correction,
    expert_coverage,
    extrapolated,
    largest_batch,
    layer_overhead_us,
    step_s,
    total_tok_s,
    user_tok_s,
    weights_read_gb,
)
from planner.units import format_duration

# The case's calculator: 3.0 GB of active FP8 weights, 4,096 tokens of 16-bit KV at 98,304 B, 273 GB/s, 500 tokens out.
# Coverage and planning: 48 layers of 128 experts, 8 per token, 28.99 GB; everything else 3.0 - 28.99 x 8/128 = 1.19 GB.
CASE = ThroughputInputs(
    active_weight_gb=3.0,
    always_read_gb=1.188,
    experts_gb=28.991,
    n_experts=128,
    experts_per_token=8,
    kv_gb_per_request=4096 * 98_304 / 1e9,
    bandwidth_gb_s=273,
    layers=48,
    output_tokens=500,
)


@pytest.mark.parametrize(
    ("batch", "total", "each"),
    [(1, 80, 80), (2, 143, 72), (4, 237, 59), (8, 351, 44), (16, 463, 29), (32, 550, 17), (64, 607, 9), (128, 641, 5),
     (50, 590, 12)],
)  # fmt: skip
def test_the_bound_prints_the_cases_integers(batch: int, total: int, each: int) -> None:
    assert round(total_tok_s(CASE, Kind.BOUND, batch)) == total
    assert round(user_tok_s(CASE, Kind.BOUND, batch)) == each


def test_sequential_against_batched() -> None:
    together = completion(CASE, Kind.BOUND, 50)
    assert format_duration(together.sequential_s) == "5 min 12 s"
    assert format_duration(together.batched_s) == "42.4 s"
    assert f"{together.speed_up:.1f}" == "7.4"
    assert f"{together.step_gb:.1f} = {together.step_weights_gb:.1f} + {together.step_kv_gb:.1f}" == "23.1 = 3.0 + 20.1"


@pytest.mark.parametrize(("kind", "largest"), [(Kind.BOUND, 19), (Kind.COVERAGE, 4), (Kind.PLANNING, 3)])
def test_largest_batch_with_25_tok_s_each(kind: Kind, largest: int) -> None:
    assert largest_batch(CASE, kind, 25) == largest


def test_experts_touched() -> None:
    # 128 x (1 - (1 - 8/128)^batch), by hand: 8 experts alone, 51.6 at 8, 122.9 at 50.
    touched = [128 * expert_coverage(128, 8, batch) for batch in (1, 8, 50)]
    assert touched == pytest.approx([8, 51.6, 122.9], abs=0.05)


def test_the_three_modes_at_batch_4_by_hand() -> None:
    # bound (3.0 + 4 x 0.4027) / 273 = 16.89 ms; coverage (1.188 + 28.991 x 0.2275 + 1.611) / 273 = 34.41 ms;
    # planning touches the experts of 4^0.9 = 3.48 tokens:
    # (1.188 + 28.991 x 0.2013 + 1.611) / 273 / 0.8 + 48 x 0.055 = 42.17 ms, no prefill given.
    by_hand = {Kind.BOUND: 0.01689, Kind.COVERAGE: 0.03441, Kind.PLANNING: 0.04217}
    for kind, seconds in by_hand.items():
        assert step_s(CASE, kind, 4) == pytest.approx(seconds, rel=0.001)


def test_prefill_shares_the_steps() -> None:
    # 0.1 s of prefill at peak, MFU 0.3, 500 tokens out: 0.667 ms per request in the batch.
    loaded = CASE.model_copy(update={"prefill_s": 0.1})
    for batch in (1, 10):
        added = step_s(loaded, Kind.PLANNING, batch) - step_s(CASE, Kind.PLANNING, batch)
        assert added == pytest.approx(batch * 0.1 / 0.3 / 500)


def test_measurements_lie_below_the_bound_and_near_coverage() -> None:
    # ggml-org/llama.cpp benches/dgx-spark.md @4c7e9893: Qwen3-Coder-30B-A3B Q8_0, prompts of 4,096 tokens, one GB10.
    measured = {1: 48.7, 2: 56.5, 4: 85.7, 8: 119.9, 16: 162.6, 32: 207.8}
    for batch, tok_s in measured.items():
        assert tok_s < total_tok_s(CASE, Kind.BOUND, batch)
        assert 0.55 < tok_s / total_tok_s(CASE, Kind.COVERAGE, batch) < 1.05


def test_the_batch_is_clamped_to_what_the_cache_holds() -> None:
    small = CASE.model_copy(update={"kv_capacity": 10})
    row = batch_row(small, Kind.PLANNING, 16, promise=1, target=1)
    assert (row.running, row.fits, row.meets_promise) == (10, False, False)
    assert row.total_tok_s == total_tok_s(small, Kind.PLANNING, 10)
    assert largest_batch(small, Kind.BOUND, 1) == 10
    # 25 users in waves of 10 take three waves.
    assert completion(small, Kind.BOUND, 25).batched_s == pytest.approx(3 * 500 * step_s(small, Kind.BOUND, 10))


def test_a_latent_or_dense_model_has_no_experts_to_touch() -> None:
    dense = CASE.model_copy(update={"n_experts": 0, "experts_per_token": 0, "experts_gb": 0, "always_read_gb": 3.0})
    assert weights_read_gb(dense, Kind.COVERAGE, 64) == weights_read_gb(dense, Kind.BOUND, 64) == 3.0


def test_bad_loads_are_refused() -> None:
    with pytest.raises(InputError, match="not a load"):
        total_tok_s(CASE, Kind.BOUND, 0)
    with pytest.raises(InputError, match="not one request fits"):
        total_tok_s(CASE.model_copy(update={"kv_capacity": 0}), Kind.BOUND, 1)
    with pytest.raises(InputError, match="'measured' is not computed"):
        step_s(CASE, Kind.MEASURED, 1)


def _ratio(batch: int, ratio: float) -> MeasuredRatio:
    return MeasuredRatio(batch=batch, ratio=ratio, n=3, spread=0.02)


def test_own_measurements_replace_the_constants_of_the_planning_value() -> None:
    # llama.cpp's log on one GB10, against the coverage bound: 48.7 tok/s at batch 1, 162.6 at 16 (see above).
    log = {1: 48.7, 16: 162.6}
    ratios = tuple(_ratio(b, tok_s / total_tok_s(CASE, Kind.COVERAGE, b)) for b, tok_s in log.items())
    own = CASE.model_copy(update={"measured": ratios})
    for batch, tok_s in log.items():
        assert total_tok_s(own, Kind.PLANNING, batch) == pytest.approx(tok_s)
        assert total_tok_s(own, Kind.BOUND, batch) == total_tok_s(CASE, Kind.BOUND, batch)
    # Half way in the logarithm (batch 4 of 1 to 16) the correction is the mean of both; outside it stays as it is.
    low, middle, high = (correction(own, b) for b in (1, 4, 16))
    assert middle == pytest.approx((low + high) / 2)
    assert correction(own, 64) == high
    assert [extrapolated(own, b) for b in (1, 16, 17)] == [False, False, True]
    assert not extrapolated(CASE, 500)
    assert correction(CASE, 500) == 1.0


def test_one_ratio_per_batch() -> None:
    with pytest.raises(ValueError, match="two ratios for one batch"):
        ThroughputInputs.model_validate({**CASE.model_dump(), "measured": (_ratio(4, 0.5), _ratio(4, 0.6))})


def test_a_step_is_never_shorter_than_its_multiplications() -> None:
    # 1 ms of multiplications per token at peak, MFU 0.3, 512 tokens: 1.707 s beside 1.1 s of reading; 48 x 55 us.
    wide = CASE.model_copy(update={"token_s": 0.001})
    assert step_s(wide, Kind.PLANNING, 512) == pytest.approx(512 * 0.001 / 0.3 + 48 * 55e-6)
    assert step_s(wide, Kind.COVERAGE, 512) == step_s(CASE, Kind.COVERAGE, 512)


def test_overhead_per_layer() -> None:
    # Mixture alone 55 us; dense on two devices 20 + 35, on three as on four: 20 + 40; twice the launches: 2 x 20.
    dense = CASE.model_copy(update={"n_experts": 0, "experts_per_token": 0})
    shared = [dense.model_copy(update={"tensor_parallel": n}) for n in (2, 3, 16)]
    assert layer_overhead_us(CASE) == 55
    assert [layer_overhead_us(i) for i in shared] == [55, 60, 70]
    assert layer_overhead_us(dense.model_copy(update={"launch_scale": 2.0})) == 40


def test_averaged_prefill_can_be_left_out_with_and_without_measurements() -> None:
    loaded = CASE.model_copy(update={"prefill_s": 0.1})
    without = loaded.model_copy(update={"averages_prefill": False})
    assert step_s(without, Kind.PLANNING, 8) == pytest.approx(step_s(CASE, Kind.PLANNING, 8))
    own = {"measured": (_ratio(8, 0.5),)}
    # The correction is of the step with prompts in it, so it scales the step without them by as much.
    scaled = [
        step_s(i.model_copy(update=own), Kind.PLANNING, 8) / step_s(i, Kind.PLANNING, 8) for i in (loaded, without)
    ]
    assert scaled[0] == pytest.approx(scaled[1])


@st.composite
def inputs(draw: st.DrawFn) -> ThroughputInputs:
    experts = draw(st.integers(0, 512))
    per_token = draw(st.integers(1, max(1, experts // 2))) if experts else 0
    always, all_experts = draw(st.floats(0.1, 200)), draw(st.floats(1, 600)) if experts else 0.0
    alone = always + (all_experts * per_token / experts if experts else 0.0)
    return ThroughputInputs(
        active_weight_gb=alone * draw(st.floats(0.5, 1)),
        always_read_gb=always,
        experts_gb=all_experts,
        n_experts=experts,
        experts_per_token=per_token,
        kv_gb_per_request=draw(st.floats(0.001, 20)),
        bandwidth_gb_s=draw(st.floats(50, 8000)),
        layers=draw(st.integers(1, 128)),
        tensor_parallel=draw(st.sampled_from([1, 2, 4, 8])),
        output_tokens=draw(st.integers(1, 4000)),
        prefill_s=draw(st.none() | st.floats(0, 5)),
        token_s=draw(st.none() | st.floats(0, 0.01)),
        launch_scale=draw(st.sampled_from([0.5, 1.0, 2.0])),
        kv_capacity=draw(st.none() | st.integers(1, 400)),
    )


@given(given_inputs=inputs(), kind=st.sampled_from(KINDS), batch=st.integers(1, 500), more=st.integers(1, 500))
@settings(max_examples=80)
def test_batch_up_user_speed_never_up_total_never_down(
    given_inputs: ThroughputInputs, kind: Kind, batch: int, more: int
) -> None:
    slack = 1 + 1e-9
    assert user_tok_s(given_inputs, kind, batch + more) <= user_tok_s(given_inputs, kind, batch) * slack
    assert total_tok_s(given_inputs, kind, batch + more) * slack >= total_tok_s(given_inputs, kind, batch)


@given(given_inputs=inputs(), kind=st.sampled_from(KINDS), batch=st.integers(1, 500), factor=st.floats(1, 10))
@settings(max_examples=60)
def test_more_bandwidth_is_never_slower(given_inputs: ThroughputInputs, kind: Kind, batch: int, factor: float) -> None:
    faster = given_inputs.model_copy(update={"bandwidth_gb_s": given_inputs.bandwidth_gb_s * factor})
    assert step_s(faster, kind, batch) <= step_s(given_inputs, kind, batch) * (1 + 1e-9)


@given(given_inputs=inputs(), batch=st.integers(1, 500))
@settings(max_examples=60)
def test_planning_is_never_faster_than_coverage_and_coverage_never_than_the_bound(
    given_inputs: ThroughputInputs, batch: int
) -> None:
    steps = [step_s(given_inputs, kind, batch) for kind in KINDS]
    assert steps[0] <= steps[1] * (1 + 1e-9)
    assert steps[1] <= steps[2]


@given(given_inputs=inputs(), kind=st.sampled_from(KINDS), rate=st.floats(0.1, 500))
@settings(max_examples=60)
def test_the_largest_batch_is_the_last_that_keeps_the_rate(
    given_inputs: ThroughputInputs, kind: Kind, rate: float
) -> None:
    largest = largest_batch(given_inputs, kind, rate, limit=500)
    limit = min(500, given_inputs.kv_capacity or 500)
    if largest:
        assert 1 / step_s(given_inputs, kind, largest) >= rate
    if largest < limit:
        assert 1 / step_s(given_inputs, kind, largest + 1) < rate


@given(
    given_inputs=inputs(),
    ratios=st.dictionaries(st.integers(1, 64), st.floats(0.05, 2), min_size=1, max_size=4),
    batch=st.integers(1, 200),
)
@settings(max_examples=40)
def test_noise_in_measurements_never_makes_a_larger_batch_faster(
    given_inputs: ThroughputInputs, ratios: dict[int, float], batch: int
) -> None:
    measured = tuple(_ratio(b, r) for b, r in sorted(ratios.items()))
    own = given_inputs.model_copy(update={"measured": measured})
    steps = [step_s(own, Kind.PLANNING, b) for b in (batch, batch + 1)]
    assert steps[0] <= steps[1] * (1 + 1e-9)
