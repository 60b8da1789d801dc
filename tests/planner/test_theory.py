"""Measured over theory by regime, for the bundles of one case."""

from __future__ import annotations

import pytest

from planner.calibration import calibrate
from planner.conditions import Kind, PassedOver
from planner.theory import theory
from tests.planner.test_calibration import point, points


def test_each_regime_says_measured_over_bound_and_over_the_planning_value() -> None:
    # 64 tok/s measured; 120 by the bound, 100 with experts touched, 75 planned.
    (regime,) = theory(calibrate(points(0.60, 0.64, 0.70)), {"run1", "run2", "run3"}).regimes
    assert regime.measured_tok_s == pytest.approx(64)
    assert regime.over_bound.value == pytest.approx(64 / 120)
    assert regime.over_coverage == pytest.approx((0.64, 0.60, 0.70))
    assert regime.over_planning.value == pytest.approx(64 / 75)
    assert (regime.n, regime.starts, regime.calibrates) == (3, 3, True)


def test_a_regime_speaks_of_the_middle_of_its_batches_and_of_starts_not_points() -> None:
    found = calibrate([point(0.60, 1, batch=2), point(0.64, 1, batch=6)])
    (regime,) = theory(found, {"run1"}).regimes
    # batches double from point to point, so the middle is geometric: sqrt(2 x 6) = 3.46
    assert (regime.batch, regime.n, regime.starts) == (3, 2, 1)


def test_other_cases_runs_are_not_told() -> None:
    (regime,) = theory(calibrate(points(0.60, 0.64, 0.70)), {"run1"}).regimes
    assert regime.measured_tok_s == pytest.approx(60)


def test_imported_ratios_are_told_and_calibrate_nothing() -> None:
    (regime,) = theory(calibrate([point(0.5, kind=Kind.IMPORTED)]), {"run1"}).regimes
    assert not regime.calibrates


def test_what_calibrates_nothing_is_named_with_its_reason() -> None:
    open_loop = PassedOver(evidence="run1/peak/1/tpot_ms/p50", reason="open load")
    other = PassedOver(evidence="run9/peak/1/tpot_ms/p50", reason="open load")
    found = theory(calibrate(points(0.60, 0.62, 0.64, 0.66, 0.20), passed_over=[open_loop, other]), {"run1", "run5"})
    assert [x.evidence.split("/")[0] for x in found.left_out] == ["run5", "run1"]
    assert "modified z-score" in found.left_out[0].reason
