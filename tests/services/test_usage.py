"""Observed usage re-opens a decision when it stays small, and nothing else does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from decisions.edits import ConditionFired
from decisions.record import Status
from planner.errors import InputError
from planner.loads import LoadPoint
from services.arrivals import bring_in_files, bring_in_usage
from services.decisions import answer_fire, flips
from services.demand import demand_of_file
from services.usage import EXAMPLE, Usage, read_usage, read_usage_file
from tests.bundle.made import bundle, closed_loop
from tests.services.made import accepted, days, decide, with_plan, zipped
from tests.services.made import small_plan as a_plan


def state_of(ws, adr, condition="few-users"):
    return next(v.state for v in flips(ws, ws.store.adrs.get(adr.id)) if v.condition == condition)


def bring(ws, adr, usage):
    return bring_in_usage(ws, adr.case, usage, by="Kim", source="monitoring.csv")


def test_28_days_at_five_or_fewer_reopen_an_accepted_decision(shipped):
    adr = accepted(shipped)
    arrived = bring(shipped, adr, days(28, 5))
    assert [v.condition for v in arrived.fired] == ["few-users"]
    events = [e for e in shipped.store.adrs.edits(adr.id) if isinstance(e, ConditionFired)]
    assert len(events) == 1
    assert events[0].fire.value == 5
    assert events[0].fire.distance == 0  # at the threshold exactly: 5 against "at most 5"
    assert shipped.store.adrs.get(adr.id).status is Status.ACCEPTED  # an event, not a decision


def test_reopening_offers_a_superseding_draft_and_links_both_ends_once_it_is_accepted(shipped):
    adr = accepted(shipped)
    bring(shipped, adr, days(28, 4))
    draft = answer_fire(shipped, adr.id, "few-users", "Sato", "four users are too few for it", reopen=True)
    assert draft is not None
    assert draft.supersedes == (adr.id,)
    assert shipped.store.adrs.get(adr.id).status is Status.ACCEPTED
    successor = decide(shipped, draft.id, without=("few-users",))
    old = shipped.store.adrs.get(adr.id)
    assert (old.status, old.superseded_by) == (Status.SUPERSEDED, successor.id)
    assert (successor.number, successor.supersedes) == (2, (adr.id,))


def test_it_stands_only_with_a_reason_and_does_not_fire_again_by_itself(shipped):
    adr = accepted(shipped)
    bring(shipped, adr, days(28, 4))
    with pytest.raises(Exception, match="needs a reason"):
        answer_fire(shipped, adr.id, "few-users", "Sato", " ", reopen=False)
    answer_fire(shipped, adr.id, "few-users", "Sato", "the roll-out has only begun", reopen=False)
    assert shipped.store.adrs.get(adr.id).fires == ()
    assert bring(shipped, adr, days(28, 4)).fired == ()


@pytest.mark.parametrize(
    ("usage", "state"),
    [
        (days(28, 6), "armed"),  # one day with six is real demand
        (days(14, 4), "undecided"),  # 14 of 28 days
        (days(28, 4, missing=frozenset(range(11, 18))), "undecided"),  # 21 of 28 days: 75 %, 90 % needed
    ],
    ids=["a peak of six", "too short", "holes"],
)
def test_negative_twins_of_usage_leave_the_decision_alone(shipped, usage, state):
    adr = accepted(shipped)
    assert bring(shipped, adr, usage).fired == ()
    assert state_of(shipped, adr) == state
    assert shipped.store.adrs.get(adr.id).fires == ()


def test_a_benchmark_at_four_in_flight_is_an_input_not_demand(shipped, tmp_path):
    adr = accepted(shipped)
    point = LoadPoint(name="parallel-4", in_flight=4, input_tokens=64, output_tokens=11, requests=40)
    with_plan(shipped, a_plan(point))
    folder = bundle(tmp_path / "b", closed_loop(slots=4, rounds=10), point=point)
    arrived = bring_in_files(shipped, adr.case, [("b.zip", zipped([folder], tmp_path / "b.zip"))], "Kim")
    assert arrived.taken[0].new
    assert arrived.fired == ()
    assert state_of(shipped, adr) == "unmeasured"


def test_a_draft_has_no_events(shipped):
    draft = shipped.store.adrs.all()[0]
    assert bring(shipped, draft, days(28, 4)).fired == ()
    assert shipped.store.adrs.edits(draft.id) == ()


def test_requests_are_counted_into_daily_peaks():
    # 10:00-10:05 and 10:02-10:04 overlap: two in flight; the third begins when the second ends: still two
    text = "start,end\n2026-09-01T10:00:00,2026-09-01T10:05:00\n2026-09-01T10:02:00,2026-09-01T10:04:00\n" \
           "2026-09-01T10:04:00,2026-09-01T10:06:00\n2026-09-02T08:00:00,2026-09-02T08:01:00\n"  # fmt: skip
    assert [(u.day, u.peak_in_flight, u.requests) for u in read_usage(text)] == [
        (date(2026, 9, 1), 2, 3),
        (date(2026, 9, 2), 1, 1),
    ]


def test_a_request_shorter_than_the_clock_tells_was_there_all_the_same():
    # In whole seconds: one of five seconds, and one within its third.
    text = "start,end\n2026-09-01T10:00:00,2026-09-01T10:00:05\n2026-09-01T10:00:03,2026-09-01T10:00:03\n"
    assert [u.peak_in_flight for u in read_usage(text)] == [2]


def test_requests_of_two_zones_overlap_where_they_did():
    # 08:35+09:00 is 23:35Z: the second begins while the first runs, both on the first day.
    text = "start,end\n2026-09-01T23:30:00+00:00,2026-09-01T23:50:00+00:00\n" \
           "2026-09-02T08:35:00+09:00,2026-09-02T08:45:00+09:00\n"  # fmt: skip
    assert [(u.day, u.peak_in_flight, u.requests) for u in read_usage(text)] == [(date(2026, 9, 1), 2, 2)]


def test_the_first_and_last_day_of_requests_are_short_unless_somebody_says_otherwise():
    text = "start,end\n2026-09-01T18:00:00Z,2026-09-01T18:05:00Z\n2026-09-03T06:00:00Z,2026-09-03T06:05:00Z\n"
    assert [u.coverage for u in read_usage(text)] == [0.25, 1.0, 0.25]  # six of 24 hours
    assert [u.coverage for u in read_usage(text, whole_days=True)] == [1.0, 1.0, 1.0]
    found = demand_of_file("requests.csv", text.encode())
    assert ([d.day.day for d in found.days], len(found.gaps)) == ([2], 2)
    assert len(demand_of_file("requests.csv", text.encode(), whole_days=True).days) == 3


def test_a_day_without_requests_inside_a_log_had_none_in_flight():
    text = "start,end\n2026-09-01T23:59:00,2026-09-02T00:01:00\n2026-09-04T10:00:00,2026-09-04T10:01:00\n"
    assert [(u.day.day, u.peak_in_flight, u.requests) for u in read_usage(text)] == [
        (1, 1, 1), (2, 1, 0), (3, 0, 0), (4, 1, 1),
    ]  # fmt: skip


def test_each_day_is_a_figure_that_ends_at_midnight(shipped):
    adr = accepted(shipped)
    usage = days(28, 4)
    peaks = [e for e in bring(shipped, adr, usage).evidence if (e.metric, e.statistic) == ("peak_in_flight", "max")]
    assert len(peaks) == 28
    last = usage[-1].day + timedelta(days=1)
    assert peaks[-1].at == datetime(last.year, last.month, last.day, tzinfo=UTC)


def test_weekly_imports_add_up_and_one_more_day_hides_nothing(shipped):
    adr = accepted(shipped)
    usage = days(29, 5)
    for week in range(4):
        fired = bring(shipped, adr, usage[week * 7 : week * 7 + 7]).fired
        assert bool(fired) == (week == 3)
    answer_fire(shipped, adr.id, "few-users", "Sato", "the roll-out has only begun", reopen=False)
    assert bring(shipped, adr, usage[28:]).fired == ()
    assert state_of(shipped, adr) == "fired"


def test_a_shared_prefix_that_dominates_fires_its_condition(shipped):
    adr = accepted(shipped)
    usage = [u._replace(peak_in_flight=30.0, shared_prefix_share=0.7) for u in days(28, 5)]
    assert [v.condition for v in bring(shipped, adr, usage).fired] == ["shared-prefix-dominates"]


def test_days_that_lie_ahead_are_refused(shipped):
    adr = accepted(shipped)
    ahead = [Usage(date.today() + timedelta(days=3), 4.0)]
    with pytest.raises(InputError, match="lies ahead"):
        bring(shipped, adr, ahead)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"day,peak\n2026-09-01,4\n", "columns are day, peak"),
        (b"date,peak_in_flight\n01.09.2026,4\n", "line 2: date '01.09.2026' is not a day"),
        (b"date,peak_in_flight\n2026-09-01,four\n", "line 2"),
        (b"date,peak_in_flight\n2026-09-01,4\n2026-09-01,5\n", "2026-09-01 stands twice"),
        (b"date,peak_in_flight\n", "holds no row"),
        (b"date,peak_in_flight\n2026-09-01,nan\n", "peak_in_flight is nan, which cannot be"),
        (b"date,peak_in_flight,shared_prefix_share\n2026-09-01,4,1.5\n", "shared_prefix_share is above 1"),
        (
            b"start,end\n2026-09-01T10:00:00,2026-09-01T10:01:00\n2026-09-01T10:00:00Z,2026-09-01T10:01:00Z\n",
            "some times state their zone and some do not",
        ),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(content, message):
    with pytest.raises(InputError, match=message):
        read_usage_file("usage.csv", content)


def test_the_example_reads():
    assert [u.peak_in_flight for u in read_usage(EXAMPLE)] == [4, 5]


@pytest.mark.parametrize(
    ("spans", "sentence"),
    [
        (["0001-01-01T00:00:00,0001-01-01T00:00:01"], "line 2: start or end lies outside the years 1970 to 9998"),
        (["2026-11-01T00:00:00,9999-12-31T23:59:59"], "line 2: start or end lies outside the years 1970 to 9998"),
        (["1980-01-01T00:00:00,1980-01-01T00:00:01", "2026-11-01T00:00:00,2026-11-01T00:00:01"],
         "runs from 1980-01-01 to 2026-11-01, which is no log of one service"),
    ],
)  # fmt: skip
def test_a_request_of_another_age_is_no_usage(spans, sentence):
    with pytest.raises(InputError, match=sentence):
        read_usage("\n".join(["start,end", *spans]))
