"""Measured over bound: medians by regime, outliers set apart, points taken out, and what they do to a speed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.calibration import MeasuredPoint, Setting, calibrate
from planner.conditions import Kind, PassedOver
from planner.throughput import ThroughputInputs, step_s

NOW = datetime(2026, 9, 1, tzinfo=UTC)
GB10 = "nvidia-gb10-dgx-spark"


def setting(engine="vllm", input_tokens=1024, output_tokens=1024, context_tokens=1536, devices=1):
    return Setting.of(engine, GB10, devices, "dense", "fp8", context_tokens=context_tokens, input_tokens=input_tokens,
                      output_tokens=output_tokens)  # fmt: skip


def point(ratio, number=1, batch=4, **more):
    """A point whose coverage bound is 100 tok/s per user, and whose default constants expect 75."""
    fields = {
        "id": f"run{number}/parallel-{batch}/1/tpot_ms/p50", "run": f"run{number}", "load_point": f"parallel-{batch}",
        "at": NOW, "kind": Kind.MEASURED, "model": "m", "setting": setting(), "batch": batch, "input_tokens": 1024,
        "output_tokens": 1024, "measured_tok_s": 100 * ratio, "bound_tok_s": 120, "coverage_tok_s": 100,
        "planning_tok_s": 75,
    }  # fmt: skip
    return MeasuredPoint.model_validate(fields | more)


def points(*ratios, **more):
    return [point(x, i, **more) for i, x in enumerate(ratios, 1)]


def test_the_ratio_is_the_median_with_n_range_and_deviation():
    (group,) = calibrate(points(0.60, 0.70, 0.64)).groups
    assert (group.ratio, group.n, group.runs) == (pytest.approx(0.64), 3, 3)
    assert group.spread == (pytest.approx(0.60), pytest.approx(0.70))
    assert group.mad == pytest.approx(0.04)  # of 0.04, 0.00 and 0.06
    assert group.default_ratio == pytest.approx(0.75)
    assert group.few


def test_an_outlier_is_named_and_not_averaged():
    # median .62, deviations .02 .00 .02 .04 .42: MAD .02, and 0.6745 x -.42 / .02 = -14.2
    (group,) = calibrate(points(0.60, 0.62, 0.64, 0.66, 0.20)).groups
    assert (group.ratio, group.n) == (pytest.approx(0.63), 4)
    (outlier,) = group.outliers
    assert outlier.point.run == "run5"
    assert outlier.reason == "ratio 0.20 against a median of 0.62: modified z-score -14.2, beyond 3.5"


def test_three_points_cannot_outvote_one_another():
    (group,) = calibrate(points(0.60, 0.62, 0.20)).groups
    assert (group.ratio, group.few, group.outliers) == (pytest.approx(0.60), True, ())


def test_runs_that_repeat_to_a_percent_are_not_called_outliers():
    # MAD 0 would make any difference infinite; at its floor of 1 % of .80, 0.6745 x .03 / .008 is 2.5
    (group,) = calibrate(points(0.80, 0.80, 0.80, 0.80, 0.83)).groups
    assert group.outliers == ()


def test_regimes_are_kept_apart():
    apart = [
        point(0.8, 1, batch=1),
        point(0.7, 2, batch=2),
        point(0.7, 3, batch=7),
        point(0.6, 4, batch=8),
        point(0.5, 5, batch=32),
        point(0.4, 6, setting=setting(input_tokens=4096)),  # 4 prompt tokens per answer token
        point(0.4, 7, setting=setting(context_tokens=8193)),
        point(0.4, 8, setting=setting(devices=2)),
        point(0.4, 9, setting=setting("llama-server")),
    ]
    known = calibrate(apart)
    assert sorted((g.setting.mix, g.setting.context, g.batches, g.n) for g in known.groups if g.ratio > 0.45) == [
        ("decode-bound", "1k to 8k", "1", 1), ("decode-bound", "1k to 8k", "2 to 7", 2),
        ("decode-bound", "1k to 8k", "32 and more", 1), ("decode-bound", "1k to 8k", "8 to 31", 1),
    ]  # fmt: skip
    assert len(known.groups) == 8
    ratios = known.for_(setting())
    # the middle of batch 2 and 7 on a logarithmic scale is 3.7
    assert [(m.batch, m.ratio, m.n) for m in ratios] == [(1, 0.8, 1), (4, 0.7, 2), (8, 0.6, 1), (32, 0.5, 1)]
    assert known.for_(setting("sglang")) == ()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"spoiled_by": ("client-slow: late",)}, "invalid run: client-slow: late"),
        ({"kind": Kind.SIMULATED}, "simulated, not measured"),
        ({"kind": Kind.ENTERED}, "entered, not measured"),
    ],
)
def test_what_never_calibrates_is_listed_with_the_reason(more, reason):
    known = calibrate([point(0.2, 1, **more)])
    assert known.groups == ()
    assert [p.reason for p in known.passed_over] == [reason]


def test_imported_ratios_are_shown_apart_and_replace_nothing():
    known = calibrate([*points(0.6, 0.62), point(0.9, 3, kind=Kind.IMPORTED)])
    assert [(g.kind, g.n) for g in known.groups] == [(Kind.IMPORTED, 1), (Kind.MEASURED, 2)]
    assert [m.ratio for m in known.for_(setting())] == [pytest.approx(0.61)]


RATIOS = st.lists(st.floats(0.55, 0.65), min_size=5, max_size=12)


@settings(max_examples=40)
@given(RATIOS, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(ratios, random):
    given_ones = points(*ratios)
    shuffled = list(given_ones)
    random.shuffle(shuffled)
    assert calibrate(shuffled) == calibrate(given_ones)


@settings(max_examples=40)
@given(RATIOS, st.sampled_from([0.01, 3.0]))
def test_an_outlier_moves_the_ratio_no_further_than_the_other_points_reach(ratios, far):
    (group,) = calibrate([*points(*ratios), point(far, 99)]).groups
    assert "run99" in {o.point.run for o in group.outliers}
    assert min(ratios) - 1e-9 <= group.ratio <= max(ratios) + 1e-9


@settings(max_examples=40)
@given(RATIOS, st.floats(0.1, 2.0))
def test_taking_a_point_out_returns_to_before(ratios, added):
    late = point(added, 99)
    before, without = calibrate(points(*ratios)), calibrate([*points(*ratios), late], {late.id: "Lee: a hot room"})
    assert without.groups == before.groups
    assert without.excluded == (PassedOver(evidence=late.id, reason="Lee: a hot room"),)


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3, 4, 6, 8, 16, 20, 32, 64, 200]), st.booleans())
def test_ratios_equal_to_the_defaults_change_nothing(batch, moe):
    experts = {"experts_gb": 27.0, "n_experts": 128, "experts_per_token": 8} if moe else {}
    inputs = ThroughputInputs(active_weight_gb=3.0, always_read_gb=2.0, kv_gb_per_request=0.1, bandwidth_gb_s=273,
                              layers=48, output_tokens=400, prefill_s=0.05, **experts)  # fmt: skip

    def as_expected(n):
        coverage, planning = (1 / step_s(inputs, kind, n) for kind in (Kind.COVERAGE, Kind.PLANNING))
        return point(1, n, batch=n, measured_tok_s=planning, coverage_tok_s=coverage, planning_tok_s=planning)

    known = calibrate([as_expected(n) for n in (1, 4, 16, 64)])
    measured = inputs.model_copy(update={"measured": known.for_(setting())})
    assert [g.ratio for g in known.groups] == [g.default_ratio for g in known.groups]
    assert step_s(measured, Kind.PLANNING, batch) == pytest.approx(step_s(inputs, Kind.PLANNING, batch))


def test_a_measured_ratio_is_what_the_planning_value_says_at_that_batch():
    inputs = ThroughputInputs(active_weight_gb=8.0, always_read_gb=8.0, kv_gb_per_request=0.5, bandwidth_gb_s=100,
                              layers=32, output_tokens=400)  # fmt: skip
    measured = inputs.model_copy(update={"measured": calibrate(points(0.5, batch=4)).for_(setting())})
    # coverage reads 8 + 4 x 0.5 = 10 GB in 100 ms; half of that speed is 200 ms
    assert step_s(measured, Kind.PLANNING, 4) == pytest.approx(0.2)
    assert step_s(measured, Kind.COVERAGE, 4) == pytest.approx(0.1)
