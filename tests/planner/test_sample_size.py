"""How many requests a percentile needs, and what a plan's requests can prove."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.loads import LoadPoint
from planner.sample_size import claims, counted_requests, may_be_beyond, requests_for, share_of, sizes, starts_needed
from planner.statistics import samples_needed
from tests.planner.planned import closed, hypothesis, plan

TTFT = parse_condition("ttft p95 <= 2 s")
SPEED = parse_condition("user_tok_s p5 >= 20 tok/s")


@pytest.mark.parametrize(
    # mlcommons/endpoints docs/early_stopping.md, at 99 % confidence: 0, 1 and 5 beyond
    ("share", "needed"), [(0.10, (44, 64, 127)), (0.05, (90, 130, 259)), (0.01, (459, 662, 1307))],
)  # fmt: skip
def test_the_sizes_are_those_of_early_stopping(share, needed):
    assert sizes(share) == needed


@pytest.mark.parametrize(
    # 0.95^58 = 0.0510, 0.95^59 = 0.0485; and 0.95^93 + 93 x 0.05 x 0.95^92 = 0.0500
    ("n", "beyond"), [(58, -1), (59, 0), (92, 0), (93, 1)],
)  # fmt: skip
def test_how_many_may_miss_a_p95_and_it_still_holds(n, beyond):
    assert may_be_beyond(n, 0.05) == beyond


@pytest.mark.parametrize(
    ("point", "counted"),
    [
        (closed(1, requests=24), 23),  # without the first request
        (closed(16, requests=64), 33),  # 64 without two rounds less one: 31
        (closed(16, requests=20), 20),  # too few for a steady window: all of them
        (LoadPoint(name="peak", shape="open", rate_per_s=2, input_tokens=1, output_tokens=1, requests=60), 60),
        # from 1 to 3 requests/s in 10 s: 20 on the way up
        (LoadPoint(name="ramp", shape="ramp", rate_per_s=1, rate_to_per_s=3, ramp_s=10, input_tokens=1,
                   output_tokens=1, requests=80), 60),
    ],
)  # fmt: skip
def test_what_counts_lies_in_the_steady_window(point, counted):
    assert counted_requests(point) == counted


def test_the_levels_decide_how_many_requests_a_start_needs():
    # p95 and p5 need 59 at 95 %: 20 in each of three starts, and never fewer than 24
    assert requests_for((TTFT, SPEED), starts=3, repeats=1) == 24
    # p99: 0.99^299 < 0.05
    assert requests_for((parse_condition("ttft p99 <= 2 s"),), starts=3, repeats=1) == 100
    assert requests_for((parse_condition("ttft p99 <= 2 s"),), starts=5, repeats=2) == 30
    assert requests_for((parse_condition("output_tok_s >= 100 tok/s"),), starts=1, repeats=1) == 24


def test_a_claim_counts_over_the_starts_and_says_what_waves_are_worth():
    point = closed(16, "busy", requests=64)
    one = plan(load_points=(point,), stages=({"name": "A", "points": ("busy",)},), starts=3, repeats=1,
               hypotheses=(hypothesis("H4", "fast: ttft p95 <= 2 s at busy"),))  # fmt: skip
    (found,) = claims(one)
    # 33 a start; 3 waves of 16 (the last of one) a start
    assert (found.counted, found.waves) == (99, 9)
    assert (found.may_be_beyond, found.possible) == (1, True)
    assert (found.at_least_beyond, found.sure) == (-1, False)
    assert found.needed == (90, 130, 259)


def test_means_and_ratios_are_decided_over_starts():
    few = plan(starts=2, hypotheses=(hypothesis("H2", "fast over slow: output_tok_s >= 2 x at parallel-4"),))
    (found,) = starts_needed(few)
    assert (found.where, found.starts, found.needed, found.possible) == ("H2", 2, 3, False)


def test_a_service_level_is_asked_where_no_hypothesis_asks_it():
    levels = plan(service_levels=(TTFT,))
    asked = {(c.where, c.point) for c in claims(levels) if c.test == "ttft p95 <= 2 s"}
    assert ("H4", "busy") in asked and ("service level", "busy") not in asked
    assert ("service level", "single") in asked


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("ttft p95 <= 2 s", 0.05),
        ("user_tok_s p5 >= 20 tok/s", 0.05),
        ("error_share <= 1 % at peak", 0.01),
        ("completed_share >= 95 % at peak", 0.05),
        ("completed_share is 1 at peak", None),
        ("fast over slow: ttft p95 <= 1 x at peak", None),
        ("output_tok_s >= 100 tok/s at peak", None),
    ],
)
def test_which_conditions_are_decided_by_counting(line, share):
    assert share_of(parse_condition(line)) == (share if share is None else pytest.approx(share))


@given(st.sampled_from([0.01, 0.05, 0.1]), st.integers(0, 6))
@settings(max_examples=20)
def test_what_may_be_beyond_and_what_is_needed_say_the_same(share, beyond):
    n = samples_needed(share, beyond)
    assert may_be_beyond(n, share) == beyond
    assert may_be_beyond(n - 1, share) < beyond
