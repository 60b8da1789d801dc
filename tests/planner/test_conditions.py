"""A condition against one number, and what was counted beyond a threshold."""

from __future__ import annotations

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Exceedance
from tests.planner.made import ttft


@pytest.mark.parametrize(
    ("value", "holds", "distance"),
    [(0.4, True, 0.0), (0.5, True, 0.1), (0.9, True, 0.05), (0.95, True, 0.0), (0.3, False, -0.1), (1.0, False, -0.05)],
)
def test_a_band_holds_up_to_both_ends_and_the_nearer_one_says_how_far(value, holds, distance):
    band = parse_condition("vllm: measured_over_bound between 0.4 and 0.95 x at single")
    assert band.holds_for(value) is holds
    assert band.distance(value) == pytest.approx(distance)


def test_samples_beyond_are_those_of_the_same_threshold_and_side():
    seen = ttft(exceedances=(Exceedance(threshold=2000, comparison=">=", beyond=7),
                             Exceedance(threshold=2000, comparison="<=", beyond=3)))  # fmt: skip
    assert (seen.beyond(2000, "<="), seen.beyond(2000, ">="), seen.beyond(2001, "<=")) == (3, 7, None)
