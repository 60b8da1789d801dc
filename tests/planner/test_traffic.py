"""Figures of a log, held against calculations by hand and against the slow way of counting."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.traffic import Requests, bin_s, rates, seen_by_prefix, seen_in_blocks, sessions, summarise
from planner.traffic_in_flight import LatencyModel, in_flight


def log(at: list[float], took: list[float] | None = None, **more: object) -> Requests:
    n = len(at)
    return Requests(
        array("q", [100] * n), array("q", [50] * n), array("d", at), took_s=array("d", took) if took else None, **more
    )


def test_lengths_are_those_of_a_hand_calculation() -> None:
    s = summarise(Requests(array("q", [100, 200, 300, 400]), array("q", [0, 10, 20, 30])))
    # Between order statistics: p50 of 100..400 is 250, p90 lies at place 2.7: 300 + 0.7 x 100.
    assert (s.input_tokens.mean, s.input_tokens.p50, s.input_tokens.p90, s.input_tokens.longest) == (250, 250, 370, 400)
    # Deviation of 100..400 is the root of (150² + 50²) / 2 = 111.8, over a mean of 250.
    assert s.input_tokens.cv == pytest.approx(0.4472, abs=1e-4)
    # 100 lies in 64 to 127, 200 in 128 to 255, 300 and 400 in 256 to 511.
    assert s.input_tokens.by_power == (0, 0, 0, 0, 0, 0, 0, 1, 1, 2)
    # A request of 0 tokens out came, but is no answer.
    assert s.output_tokens and (s.unanswered, s.output_tokens.mean, s.whole_tokens.longest) == (1, 20, 430)
    assert (s.rates, s.in_flight, s.span_s, s.begin) == (None, None, None, None)


def test_a_log_of_one_request_has_lengths_and_no_rate() -> None:
    s = summarise(log([0.0], [4.0]))
    assert s.rates and s.in_flight
    assert (s.n, s.span_s, s.rates.mean_per_s, s.rates.gap_cv, s.rates.dispersion) == (1, 0.0, None, None, None)
    assert (s.in_flight.peak, s.in_flight.mean, s.in_flight.daily) == (1, None, (1,))


def test_a_log_without_requests_has_no_figures() -> None:
    with pytest.raises(ValueError, match="without requests"):
        summarise(log([]))


def test_in_flight_by_hand() -> None:
    # Each takes 15 s: 0-15, 10-25, 20-35, 90-105. Two overlap, and a fifth of the three times 15 s lie in 0-90.
    found = in_flight(array("d", [0, 10, 20, 90]), array("d", [15] * 4), array("q", [1] * 4), None, 60.0, 0.0)
    assert found and (found.peak, found.series, found.daily, found.known) == (2, (2, 1), (2,), 4)
    assert found.mean == pytest.approx(45 / 90)


def test_a_request_that_ends_when_another_comes_does_not_overlap_it() -> None:
    found = in_flight(array("d", [0, 10]), array("d", [10, 10]), array("q", [1, 1]), None, 60.0, 0.0)
    assert found and found.peak == 1


def test_a_request_shorter_than_the_clock_tells_was_there_all_the_same() -> None:
    # In whole seconds: one of five seconds, one within its third, and one after both.
    found = in_flight(array("d", [0, 3, 9]), array("d", [5, 0, 0]), array("q", [1] * 3), None, 60.0, 0.0)
    assert found and (found.peak, found.daily) == (2, (2,))


def test_what_the_log_does_not_say_is_taken_from_the_stated_latency() -> None:
    assert LatencyModel(first_s=2, tok_s=25).seconds(50) == 4.0
    tokens, took = array("q", [50, 50]), array("d", [math.nan, 1.0])
    assert in_flight(array("d", [0, 3]), took, tokens, None, 60.0, 0.0) is None
    found = in_flight(array("d", [0, 3]), took, tokens, LatencyModel(first_s=2, tok_s=25), 60.0, 0.0)
    assert found and (found.peak, found.known) == (2, 1)


def test_a_night_that_begins_with_requests_counts_those_who_are_still_there() -> None:
    # From 23:59 on, three requests of two minutes and one the next noon: at midnight three are in flight.
    at = array("d", [0, 1, 2, 12 * 3600])
    found = in_flight(at, array("d", [120, 120, 120, 1]), array("q", [1] * 4), None, 3600.0, 86_340.0)
    assert found and found.daily == (3, 3)
    assert found.usual_peak == 3


def test_rates_by_hand() -> None:
    found = rates(array("d", [0, 10, 20, 90]))
    assert found.mean_per_s == pytest.approx(3 / 90)
    assert (found.busiest_minute, found.busiest_hour, found.bin_s, len(found.series)) == (3, 4, 1.0, 91)
    assert sum(found.series) * found.bin_s == 4


def test_bursts_by_hand() -> None:
    # Gaps of 1 and 3 s in turn: mean 2, deviation 1.
    gaps = [1.0, 3.0] * 20
    found = rates(array("d", [sum(gaps[:i]) for i in range(41)]))
    assert found.gap_cv == pytest.approx(0.5)
    assert found.arrival == "poisson"
    assert rates(array("d", range(100))).arrival == "constant"
    # Bursts of ten within 9 ms each minute: the gaps' deviation is about three times their mean.
    assert rates(array("d", [60 * i + j / 1000 for i in range(30) for j in range(10)])).arrival == "gamma"


def test_dispersion_by_hand() -> None:
    # Whole minutes with 2, 0, 0, 2 requests: mean 1, variance (4 + 4) / 4 - 1 = 1. The fifth minute is not whole.
    assert rates(array("d", [0, 1, 180, 181, 250])).dispersion == pytest.approx(1.0)


def test_a_series_has_at_most_four_hundred_points() -> None:
    # 399.9 s in seconds, 400 s in tens; 121 days of BurstGPT in days; ten years in ten days.
    assert (bin_s(399.9), bin_s(400), bin_s(121 * 86_400), bin_s(3650 * 86_400)) == (1, 10, 86_400, 864_000)


def test_shared_prefix_of_mooncakes_published_example() -> None:
    # FAST25-release/README.md: 46-57 are common, 12 blocks of 512 tokens.
    first, second = [*range(46, 58), 2353, 2354], [*range(46, 58), 2366]
    assert list(seen_in_blocks([first, second], [6955, 6472], 512)) == [0, 12 * 512]
    s = summarise(Requests(array("q", [6955, 6472]), array("q", [52, 26]), seen_tokens=array("q", [0, 6144])))
    assert s.prefixes and s.prefixes.token_share == pytest.approx(6144 / 13_427)
    assert s.prefixes.request_share == 0.5


def test_a_known_block_behind_a_new_one_is_not_shared() -> None:
    assert list(seen_in_blocks([[1, 2], [3, 2], [1, 2, 4]], [1000, 1000, 1000], 512)) == [0, 0, 1000]


def test_named_prefixes_count_from_their_second_request_on() -> None:
    seen = seen_by_prefix([0, 0, 1, -1, -1, 0], [30, 30, 30, 30, math.nan, 500], [100] * 6)
    assert list(seen) == [0, 30, 0, 0, 0, 100]
    s = summarise(log([0, 1, 2, 3], prefix=array("q", [0, 0, 1, -1])))
    assert s.prefixes and (s.prefixes.token_share, s.prefixes.request_share) == (None, 0.25)


def test_sessions_by_hand() -> None:
    found = sessions(array("q", [0, 0, 0, 1, -1]))
    assert found and (found.n, found.turns_mean, found.turns_most, found.without) == (2, 2.0, 3, 1)
    assert sessions(array("q", [-1, -1])) is None


SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90)), min_size=1, max_size=40)


@settings(max_examples=60)
@given(SPANS, st.integers(0, 86_399))
def test_levels_are_those_of_counting_second_by_second(spans: list[tuple[int, int]], midnight: int) -> None:
    begin = min(s for s, _ in spans)
    spans = sorted((s - begin, d) for s, d in spans)
    at, took = array("d", [s for s, _ in spans]), array("d", [d for _, d in spans])
    found = in_flight(at, took, array("q", [1] * len(spans)), None, 10.0, float(midnight))
    last = spans[-1][0]
    level = [sum(s <= now < s + d for s, d in spans) for now in range(last + 1)]
    assert found
    assert found.peak == max(level)
    assert list(found.series) == [max(level[i : i + 10]) for i in range(0, last + 1, 10)]
    assert max(found.daily) == found.peak
    # Little: the average over time is what is in flight in each second.
    assert last == 0 or found.mean == pytest.approx(sum(level[:last]) / last)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 200_000, allow_nan=False), min_size=1, max_size=60), st.sampled_from([0.5, 2.0, 7.0]))
def test_every_request_is_in_one_bin_and_bursts_do_not_depend_on_speed(at: list[float], faster: float) -> None:
    times = array("d", sorted(t - min(at) for t in at))
    found = rates(times)
    assert sum(found.series) * found.bin_s == pytest.approx(len(times))
    assert len(found.series) <= 401
    assert found.busiest_minute <= found.busiest_hour <= len(times)
    slower = rates(array("d", (t / faster for t in times)))
    assert (found.gap_cv is None) == (slower.gap_cv is None)
    if found.gap_cv is not None and slower.gap_cv is not None:
        assert slower.gap_cv == pytest.approx(found.gap_cv, rel=1e-6, abs=1e-6)
