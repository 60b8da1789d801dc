"""The score of five engines with its sensitivity stays within its budget, by processor time: other tests run beside."""

from __future__ import annotations

from perf.scoring import BUDGET_MS, measure


def test_five_engines_are_scored_with_their_sensitivity_in_ten_milliseconds() -> None:
    found = measure(20)
    assert (found["engines"], found["runs"]) == (5, 20)
    assert 0 < found["score_cpu_ms_median"] < BUDGET_MS == 10
    assert found["score_cpu_ms_median"] <= found["score_ms_slowest"]
