"""How a figure decides: demand, by the seed's condition "real concurrency stays around 5" and its negative twins."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Evidence, Exceedance, Kind, More, State
from planner.evaluate import evaluate
from tests.planner.made import NOW, context, ttft

SIMPLER = parse_condition("peak_in_flight max <= 5 over 28 days -> go simpler")


def demand(value: float = 5, days: float = 28, coverage: float = 1.0, **more: object) -> Evidence:
    return Evidence.model_validate({
        "id": f"demand-{value}-{days}", "metric": "peak_in_flight", "statistic": "max", "value": value, "unit": "count",
        "kind": Kind.OBSERVED, "source": "logs", "at": NOW, "window_days": days, "coverage": coverage,
    } | more)  # fmt: skip


def test_28_days_with_a_daily_peak_of_5_hold():
    v = evaluate(SIMPLER, [demand()], context())
    assert v.state is State.HOLDS
    assert "observed over 28 days" in v.sentence


@pytest.mark.parametrize(
    ("piece", "state"),
    [
        (demand(value=6), State.FAILS),
        (demand(days=14), State.UNDECIDED),
        (demand(coverage=0.5), State.UNDECIDED),
        (demand(spoiled_by=("clock-step: 9 ms",)), State.INVALID_RUN),
        (demand(value=4, kind=Kind.MEASURED), State.UNMEASURED),
    ],
)
def test_negative_twins_of_the_demand_condition(piece, state):
    assert evaluate(SIMPLER, [piece], context()).state is state


def test_a_newer_window_of_demand_replaces_the_older():
    v = evaluate(SIMPLER, [demand(at=NOW - timedelta(days=30)), demand(value=8)], context())
    assert v.state is State.FAILS


def days(*peaks: float, last: datetime = NOW) -> list[Evidence]:
    """One piece a day, the last one ending at `last`."""
    return [
        demand(value=p, days=1, id=f"day-{last - timedelta(days=i)}-{p}", at=last - timedelta(days=i))
        for i, p in enumerate(reversed(peaks))
    ]


def test_four_weekly_imports_add_up():
    weeks = [e for k in range(4) for e in days(*[5.0] * 7, last=NOW - timedelta(days=7 * k))]
    assert evaluate(SIMPLER, weeks, context()).state is State.HOLDS
    assert evaluate(SIMPLER, weeks[:21], context()).state is State.UNDECIDED


def test_one_more_day_does_not_hide_the_28_before_it():
    month = days(*[5.0] * 28, last=NOW - timedelta(days=1))
    assert evaluate(SIMPLER, [*month, *days(5.0)], context()).state is State.HOLDS
    assert evaluate(SIMPLER, [*month, *days(9.0)], context()).state is State.FAILS


def test_a_peak_that_has_left_the_window_counts_no_more():
    assert evaluate(SIMPLER, days(9.0, *[4.0] * 28), context()).state is State.HOLDS
    assert evaluate(SIMPLER, days(9.0, *[4.0] * 27), context()).state is State.FAILS


def test_a_long_window_may_be_as_old_as_two_of_it():
    assert evaluate(SIMPLER, [demand(at=NOW - timedelta(days=90))], context()).state is State.HOLDS
    assert evaluate(SIMPLER, [demand(at=NOW - timedelta(days=91))], context()).state is State.EXPIRED
    long = parse_condition("peak_in_flight max <= 5 over 60 days")  # 2 x 60 days
    assert evaluate(long, [demand(days=60, at=NOW - timedelta(days=120))], context()).state is State.HOLDS
    assert evaluate(long, [demand(days=60, at=NOW - timedelta(days=121))], context()).state is State.EXPIRED


def test_every_second_day_is_half_of_the_window_however_the_days_lie_in_it():
    noon = NOW.replace(hour=12, minute=0) - timedelta(days=1)
    whole = [demand(days=1, id=f"d{i}", at=noon.replace(hour=0) - timedelta(days=i)) for i in range(1, 30, 2)]
    v = evaluate(SIMPLER, [demand(days=1, id="today", at=noon), *whole], context())
    assert v.state is State.UNDECIDED
    # the last day up to noon, then 13 whole days of every two and the half of one that lies in the window: 14.5 of 28
    assert "only 52% of the last 28 days is covered" in v.sentence


def test_of_days_that_overlap_the_fuller_one_says_how_much_was_seen():
    half = demand(days=28, coverage=0.5, id="half")
    seven = demand(days=7, id="week", at=NOW - timedelta(days=7))
    assert "only 62% of the last" in evaluate(SIMPLER, [half, seven], context()).sentence  # (21 x 0.5 + 7) / 28


def test_a_window_that_lacks_half_a_day_lacks_a_day():
    month = days(*[5.0] * 27)
    v = evaluate(SIMPLER, [*month, demand(days=1, at=NOW - timedelta(days=26.5), id="half")], context())
    assert (v.state, v.more) == (State.UNDECIDED, More(n=1, of="days"))
    assert "observed over 27 days, 28 needed: 1 more day." in v.sentence


def test_nine_days_of_ten_are_enough():
    lately = parse_condition("peak_in_flight max <= 5 over 10 days")
    seen = days(*[5.0] * 10)
    assert evaluate(lately, [*seen[:4], *seen[5:]], context()).state is State.HOLDS
    assert evaluate(lately, [*seen[:4], *seen[6:]], context()).state is State.UNDECIDED


def test_a_mean_over_days_weighs_each_piece_by_its_days():
    lengths = parse_condition("input_tokens mean <= 6 over 28 days")
    pieces = [
        demand(value=v, days=d, at=at, id=f"{v}", metric="input_tokens", statistic="mean", unit="tokens")
        for v, d, at in ((11, 8, NOW), (4, 20, NOW - timedelta(days=8)))
    ]
    assert evaluate(lengths, pieces, context()).value == (8 * 11 + 20 * 4) / 28  # 6


def test_old_and_future_windows_say_nothing_about_today():
    assert evaluate(SIMPLER, [demand(at=NOW - timedelta(days=400))], context()).state is State.EXPIRED
    v = evaluate(SIMPLER, [demand(at=NOW + timedelta(days=3))], context())
    assert v.state is State.UNMEASURED
    assert "lies ahead" in v.passed_over[0].reason


@pytest.mark.parametrize("kind", [Kind.ENTERED, Kind.IMPORTED])
def test_a_peak_that_somebody_typed_in_decides_nothing(kind):
    assert evaluate(SIMPLER, [demand(value=4, kind=kind)], context()).state is State.UNMEASURED


@pytest.mark.parametrize(
    ("asked", "side", "why"),
    [
        # 100 requests: none beyond 2 s, 60 beyond 1 s. None is beyond 3 s then, and at least 60 are beyond 0.5 s.
        ("3 s", "holds", "by 2 s, which is tighter: 0 of 100 beyond"),
        ("500 ms", "fails", "by 1 s, which is looser: 60 of 100 beyond"),
        ("1500 ms", None, "requests beyond this threshold were not counted"),
    ],
)
def test_a_limit_that_was_not_counted_follows_from_counted_ones(asked, side, why):
    counted = (
        Exceedance(threshold=2000, comparison="<=", beyond=0),
        Exceedance(threshold=1000, comparison="<=", beyond=60),
    )
    v = evaluate(parse_condition(f"vllm: ttft p95 <= {asked} at peak"), [ttft(exceedances=counted)], context())
    assert (v.side, why in v.sentence) == (side, True)


@pytest.mark.parametrize(
    ("asked", "side"),
    [
        # For ">=" the larger limit is the tighter one: none of 100 is below 30 tok/s, 60 are below 40.
        ("20 tok/s", "holds"),
        ("50 tok/s", "fails"),
    ],
)
def test_a_lower_limit_that_was_not_counted_follows_the_other_way_round(asked, side):
    counted = (
        Exceedance(threshold=30, comparison=">=", beyond=0),
        Exceedance(threshold=40, comparison=">=", beyond=60),
    )
    piece = ttft(metric="user_tok_s", statistic="p5", value=32.0, unit="tok/s", exceedances=counted)
    assert evaluate(parse_condition(f"vllm: user_tok_s p5 >= {asked} at peak"), [piece], context()).side == side


def test_a_limit_follows_only_from_one_that_every_start_counted():
    first, second = (
        ttft(start=start, exceedances=(Exceedance(threshold=limit, comparison="<=", beyond=0),))
        for start, limit in ((1, 1000), (2, 2000))
    )
    asked = parse_condition("vllm: ttft p95 <= 3 s at peak")
    assert evaluate(asked, [first, second], context()).side is None
    both = first.model_copy(update={"exceedances": (*first.exceedances, *second.exceedances)})
    assert evaluate(asked, [both, second], context()).side == "holds"
