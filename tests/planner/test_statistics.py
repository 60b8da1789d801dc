"""Exact statistics against published tables and hand calculations."""

from __future__ import annotations

import math

import pytest

from planner.statistics import (
    binomial_at_least,
    binomial_at_most,
    effective_n,
    mean_interval,
    median_coverage,
    percentile,
    samples_needed,
    share_interval,
)


@pytest.mark.parametrize(
    ("allowed", "beyond", "n"),
    # MLPerf's early-stopping table at 99 %: p90, p95, p99 with 0, 1 and 5 exceedances.
    [(0.10, 0, 44), (0.10, 1, 64), (0.10, 5, 127), (0.05, 0, 90), (0.05, 1, 130), (0.05, 5, 259),
     (0.01, 0, 459), (0.01, 1, 662), (0.01, 5, 1307)],
)  # fmt: skip
def test_samples_needed_at_99_percent(allowed, beyond, n):
    assert samples_needed(allowed, beyond, 0.99) == n


def test_59_clean_samples_prove_a_p95_at_95_percent():
    # 0.95^59 = 0.0485 <= 0.05 < 0.95^58 = 0.0510
    assert samples_needed(0.05) == 59
    assert binomial_at_most(0, 59, 0.05) == pytest.approx(0.95**59)


def test_binomial_tails_meet():
    # Binomial(10, 0.5): P(X <= 3) = (1 + 10 + 45 + 120) / 1024
    assert binomial_at_most(3, 10, 0.5) == pytest.approx(176 / 1024)
    assert binomial_at_least(4, 10, 0.5) == pytest.approx(1 - 176 / 1024)


def test_clopper_pearson_of_0_in_10():
    # Upper limit is 1 - 0.025^(1/10)
    low, high = share_interval(0, 10)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025**0.1, abs=1e-9)


def test_equal_values_inside_waves_are_worth_one_sample_a_wave():
    values = [1.0] * 10 + [2.0] * 10 + [3.0] * 10
    blocks = [0] * 10 + [1] * 10 + [2] * 10
    assert effective_n(values, blocks) == pytest.approx(3.0)


def test_values_that_vary_only_inside_waves_keep_most_of_their_worth():
    values = [float(i % 10) for i in range(100)]
    blocks = [i // 10 for i in range(100)]
    assert effective_n(values, blocks) > 80


def test_three_starts_cover_the_median_three_times_in_four():
    assert median_coverage(3) == 0.75


def test_five_starts_give_a_t_interval():
    # mean 10, s = sqrt(10/4) = 1.5811, t95(4) = 2.132 -> half width 1.5075
    low, high = mean_interval([8.0, 9.0, 10.0, 11.0, 12.0])
    assert (low, high) == (pytest.approx(10 - 1.5075, abs=1e-3), pytest.approx(10 + 1.5075, abs=1e-3))
    assert mean_interval([8.0, 9.0, 13.0]) == (8.0, 13.0)


def test_percentile_keeps_failures_infinite():
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert math.isinf(percentile([1.0, math.inf], 95))
