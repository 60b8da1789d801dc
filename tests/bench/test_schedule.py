"""Send times: the right statistics, and the same on every machine."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.schedule import TraceRow, ramp_time, send_times, slot_starts
from planner.loads import LoadPoint


def point(**more: object) -> LoadPoint:
    return LoadPoint.model_validate({"name": "p", "input_tokens": 8, "output_tokens": 8, "requests": 16} | more)


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in pairwise([0.0, *times])]


def lag_one(values: list[float]) -> float:
    mean = fmean(values)
    top = sum((a - mean) * (b - mean) for a, b in pairwise(values))
    return top / sum((v - mean) ** 2 for v in values)


@pytest.mark.parametrize(
    ("arrival", "burstiness", "cv"),
    # Coefficient of variation of a gamma with shape k is 1 / sqrt(k): 1 for poisson, 2 for k = 0.25.
    [("constant", 1.0, 0.0), ("poisson", 1.0, 1.0), ("gamma", 0.25, 2.0), ("gamma", 4.0, 0.5)],
)
def test_open_loops_have_the_asked_rate_and_spread(arrival: str, burstiness: float, cv: float) -> None:
    found = gaps(send_times(point(shape="open", rate_per_s=5.0, arrival=arrival, burstiness=burstiness), 1, 1, 20_000))
    assert fmean(found) == pytest.approx(0.2, rel=0.04)
    assert pstdev(found) / fmean(found) == pytest.approx(cv, abs=0.05)
    if cv:
        assert abs(lag_one(found)) < 0.03


def test_a_longer_schedule_begins_with_the_shorter_one() -> None:
    p = point(shape="open", rate_per_s=2.0)
    assert send_times(p, 7, 1, 50)[:20] == send_times(p, 7, 1, 20)


def test_seed_repeat_and_load_change_the_times_and_nothing_else_does() -> None:
    p = point(shape="open", rate_per_s=2.0)
    first = send_times(p, 7, 1, 5)
    assert first == send_times(p, 7, 1, 5)
    assert first != send_times(p, 8, 1, 5)
    assert first != send_times(p, 7, 2, 5)


def test_another_process_draws_the_same_times() -> None:
    code = (
        "from bench.schedule import send_times; from planner.conditions import LoadPoint;"
        "print(send_times(LoadPoint(name='p', shape='open', rate_per_s=2.0, input_tokens=8, output_tokens=8), 7, 1, 3))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    p = LoadPoint(name="p", shape="open", rate_per_s=2.0, input_tokens=8, output_tokens=8)
    assert told.strip() == str(send_times(p, 7, 1, 3))


def test_slots_start_staggered_over_one_request() -> None:
    # 5 requests a slot: the whole second is used, a quarter between two of four slots.
    assert slot_starts(point(in_flight=4, requests=20), 1.0) == [0.0, 0.25, 0.5, 0.75]


def test_slots_with_one_request_each_start_nearly_together() -> None:
    # Spread over a tenth of the request, so that all 4 are in flight at once.
    assert slot_starts(point(in_flight=4, requests=4), 1.0) == pytest.approx([0.0, 0.025, 0.05, 0.075])


def test_there_are_never_more_slots_than_requests() -> None:
    assert len(slot_starts(point(in_flight=32, requests=5), 1.0)) == 5


RAMP = {"shape": "ramp", "rate_per_s": 2.0, "rate_to_per_s": 10.0, "ramp_s": 100.0, "requests": 1000}


def test_a_constant_ramp_sends_the_nth_request_when_the_rate_has_summed_up_to_n() -> None:
    # 2 t + 0.08 t^2 / 2 = n has t = (-2 + sqrt(4 + 0.16 n)) / 0.08; 600 come in the ramp, then one each 0.1 s.
    times = send_times(point(arrival="constant", **RAMP), 1, 1, 700)
    assert times[0] == pytest.approx((-2 + (4 + 0.16) ** 0.5) / 0.08)
    assert times[599] == pytest.approx(100.0)
    assert times[699] == pytest.approx(110.0)


def test_a_poisson_ramp_offers_the_integral_of_its_rate() -> None:
    # 10 s in the middle, around 50 s at 6 req/s: 60 expected in each of 200 draws, standard error 0.55.
    p = point(**RAMP)
    counts = [sum(45 <= t < 55 for t in send_times(p, 1, repeat, 1000)) for repeat in range(200)]
    assert fmean(counts) == pytest.approx(60.0, abs=2.0)
    assert pstdev(counts) ** 2 / fmean(counts) == pytest.approx(1.0, abs=0.35)  # a Poisson count's variance is its mean


def test_a_falling_ramp_slows_down() -> None:
    falling = point(**(RAMP | {"rate_per_s": 10.0, "rate_to_per_s": 2.0, "arrival": "constant"}))
    found = gaps(send_times(falling, 1, 1, 700))
    assert found[0] == pytest.approx(0.1, rel=0.01)
    assert found[-1] == pytest.approx(0.5)


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(1, 1000), st.floats(0.01, 5000))
@settings(max_examples=60)
def test_ramp_time_is_the_inverse_of_the_expected_count(start: float, end: float, length: float, at: float) -> None:
    p = point(shape="ramp", rate_per_s=start, rate_to_per_s=end, ramp_s=length, requests=1_000_000)
    assert ramp_time(p, p.expected_by(at)) == pytest.approx(at, rel=1e-6)


def test_a_trace_is_replayed_at_its_own_times_in_every_repeat() -> None:
    rows = [TraceRow(0.0, 10, 5), TraceRow(0.4, 20, 5), TraceRow(2.5, 30, 5)]
    p = point(shape="trace", trace_file="t.csv", requests=2)
    assert send_times(p, 1, 1, 3, rows) == send_times(p, 9, 7, 3, rows) == [0.0, 0.4, 2.5]
