"""The definitions on records made by hand: every expected value is computed beside it."""

from __future__ import annotations

import pytest

from bundle.records import Record, Sample
from bundle.samples import steady_window, tpot_ms, user_tok_s
from bundle.summary import summarise
from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind
from planner.metrics import METRICS
from planner.sample_size import counted_requests
from tests.bundle.made import POINT, bundle, closed_loop, request


def by(evidence: list[Evidence], metric: str, statistic: str = "value") -> Evidence:
    return next(e for e in evidence if e.metric == metric and e.statistic == statistic)


def test_tpot_counts_gaps_not_tokens():
    r = request(0, 0.0)
    assert tpot_ms(r) == pytest.approx(50.0)  # 500 ms from the first to the last of 11 tokens: ten gaps
    assert user_tok_s(r) == pytest.approx(20.0)


def test_tpot_with_several_tokens_in_the_first_chunk():
    r = request(0, 0.0)._replace(chunk_s=[0.2, 0.6], chunk_tokens=[3, 8], last_token_s=0.6)
    assert tpot_ms(r) == pytest.approx(400 / 8)


def test_tpot_leaves_out_a_stop_token_that_was_counted_and_not_sent():
    r = request(0, 0.0)._replace(output_tokens=12)  # 11 chunks of one token each
    assert tpot_ms(r) == pytest.approx(50.0)
    first_known = r._replace(output_tokens=11, chunk_tokens=[1, *[0] * 10])  # as importers state it
    assert tpot_ms(first_known) == pytest.approx(50.0)


@pytest.mark.parametrize(
    "r",
    [
        request(0, 0.0, tokens=1),
        request(0, 0.0)._replace(chunk_tokens=[0] * 4, chunk_s=[0.2, 0.3, 0.4, 0.5]),
        request(0, 0.0)._replace(output_tokens=None),
        request(0, 0.0, outcome="failed"),
    ],
    ids=["one token", "tokens per chunk unknown", "no usage", "failed"],
)
def test_tpot_is_undefined_when_it_cannot_be_known(r: Record):
    assert tpot_ms(r) is None


def test_ttft_is_held_against_the_schedule_service_ttft_against_the_dispatch(tmp_path):
    records = [request(i, i * 0.7, ttft_s=0.3, dispatch_lag_s=0.1) for i in range(10)]
    found = summarise(bundle(tmp_path, records))
    assert by(found, "ttft_ms", "p50").value == pytest.approx(300.0)
    assert by(found, "ttft_service_ms", "p50").value == pytest.approx(200.0)


def test_the_steady_window_begins_when_every_slot_has_its_second_request():
    window = steady_window(closed_loop(), POINT)
    # dispatches at 0, .35, .7, 1.05, ...: the fourth is the second of slot 2; the last of ten is at 2.8 + .35
    assert (window.begin_s, window.end_s, window.steady) == (pytest.approx(1.05), pytest.approx(3.15), True)


OPEN = POINT.model_copy(update={"shape": "open", "in_flight": None, "rate_per_s": 2.0})
RAMP = OPEN.model_copy(update={"shape": "ramp", "rate_to_per_s": 4.0, "ramp_s": 1.0})


def test_an_open_loop_counts_from_the_first_arrival_and_a_ramp_from_its_end(tmp_path):
    # Arrivals at 0.25, 0.75, ... 4.75 s, each sent a millisecond late: none of them may be lost to that millisecond.
    records = [request(i, 0.25 + i * 0.5, dispatch_lag_s=0.001) for i in range(10)]
    for point, begin, n in ((OPEN, 0.25, 10), (RAMP, 1.0, 8)):
        window = steady_window(records, point)
        assert (window.begin_s, window.end_s, window.steady) == (begin, pytest.approx(4.751), True)
        assert by(summarise(bundle(tmp_path / point.shape, records, point=point)), "ttft_ms", "p50").n == n


def test_a_closed_loop_counts_from_when_the_last_slot_was_free_for_its_second_request(tmp_path):
    # As many as a plan is told (planner/sample_size.py), although what was due was sent a millisecond later.
    for lag_s in (0.0, 0.001):
        records = closed_loop(dispatch_lag_s=lag_s)
        assert steady_window(records, POINT).begin_s == pytest.approx(1.05)
        found = summarise(bundle(tmp_path / str(lag_s), records))
        assert by(found, "ttft_ms", "p50").n == counted_requests(POINT) == 7


def test_arrivals_that_all_come_at_once_have_no_steady_window_and_are_all_used(tmp_path):
    records = [request(i, 0.0, dispatch_lag_s=0.001 * i) for i in range(10)]
    found = summarise(bundle(tmp_path, records, point=OPEN))
    assert by(found, "ttft_ms", "p50").n == 10
    assert by(found, "output_tok_s").value == pytest.approx(10 * 11 / 0.7)  # from the first dispatch to the last end
    assert "no-steady-window" in by(found, "output_tok_s").note


def test_output_tokens_are_counted_by_arrival_in_the_window(tmp_path):
    found = summarise(bundle(tmp_path))
    # Two slots, 11 tokens every 0.7 s each: 2 x 11 / 0.7 = 31.43 tok/s; the window is three cycles long.
    speed = by(found, "output_tok_s")
    assert speed.value == pytest.approx(22 / 0.7, rel=0.02)
    assert by(found, "measured_over_bound").value == pytest.approx(speed.value / 62.5)


def test_failures_count_as_beyond_and_stay_in_n(tmp_path):
    records = closed_loop()
    records[6] = request(6, records[6].scheduled_s, outcome="failed")
    promise = parse_condition("ttft p95 <= 250 ms at parallel-2")
    slow = parse_condition("user_tok_s p5 >= 19 tok/s at parallel-2")
    found = summarise(bundle(tmp_path, records), [promise, slow], [promise])
    # Steady window from the fourth dispatch on: 7 of the 10 requests, one of them failed.
    ttft = by(found, "ttft_ms", "p95")
    assert (ttft.n, ttft.beyond(250, "<=")) == (7, 1)
    assert by(found, "user_tok_s", "p5").beyond(19, ">=") == 1
    assert by(found, "error_share").value == pytest.approx(1 / 7)
    assert by(found, "goodput").value == pytest.approx(6 / 7)
    assert ttft.value > 250  # a request that never came is later than any limit


@pytest.mark.parametrize(
    ("reason", "after_s", "completed"),
    [
        # Every answer takes 0.7 s. What is cut off after 0.3 s was only under way, whoever did it at whatever moment.
        ("cancelled", 0.3, 6 / 6),
        ("the run's budget of 5 min was used up", 0.3, 6 / 6),
        ("", 0.3, 6 / 6),  # a foreign tool at the end of its time
        ("cancelled", 60.0, 6 / 7),  # the server hung, which is why somebody cancelled
        ("the point took longer than 900 s", 0.3, 6 / 7),  # a rule ends what goes badly: a lower bound
    ],
)
def test_requests_that_we_cancelled_are_judged_by_who_ended_them(tmp_path, reason, after_s, completed):
    promise = parse_condition("ttft p95 <= 250 ms at parallel-2")
    records = closed_loop()
    records[9] = records[9]._replace(outcome="undetermined", end_s=records[9].scheduled_s + after_s)
    status = "stopped" if reason else "complete"
    found = summarise(bundle(tmp_path, records, status=status, stop_reason=reason), [], [promise])
    assert by(found, "error_share").n == 6  # seven in the window
    assert by(found, "completed_share").value == by(found, "goodput").value == pytest.approx(completed)


@pytest.mark.parametrize(
    ("level", "first_token_s", "after_s", "good"),
    [
        ("ttft p95 <= 250 ms at parallel-2", None, 0.3, 6 / 7),  # whatever came later, it was too late
        ("ttft p95 <= 250 ms at parallel-2", None, 0.2, 6 / 6),
        ("ttft p95 <= 250 ms at parallel-2", 0.2, 0.3, 6 / 6),
        ("e2e p95 <= 710 ms at parallel-2", 0.2, 0.6, 6 / 6),
        ("e2e p95 <= 710 ms at parallel-2", 0.2, 0.72, 6 / 7),
        ("user_tok_s p5 >= 10 tok/s at parallel-2", None, 0.3, 6 / 6),
        ("tpot p95 <= 60 ms at parallel-2", 0.2, 0.9, 6 / 6),  # a mean over tokens that had not all come
    ],
)
def test_a_request_that_had_waited_beyond_a_level_when_somebody_cancelled_is_not_good(
    tmp_path, level, first_token_s, after_s, good
):
    records = closed_loop()
    records[2] = request(2, 0.7, itl_s=0.1)  # 1.2 s: longer than those that are cut off
    began = records[9].scheduled_s
    first = None if first_token_s is None else began + first_token_s
    records[9] = records[9]._replace(outcome="undetermined", first_token_s=first, end_s=began + after_s)
    stopped = bundle(tmp_path, records, status="stopped", stop_reason="cancelled")
    found = summarise(stopped, [], [parse_condition(level)])
    assert by(found, "goodput").value == pytest.approx(good)
    assert by(found, "completed_share").value == 1


def test_a_server_that_fails_every_request_has_failed(tmp_path):
    promise = parse_condition("ttft p95 <= 2 s at parallel-2")
    slow = parse_condition("user_tok_s p5 >= 20 tok/s at parallel-2")
    late = parse_condition("ttft p95 >= 5 s at parallel-2")
    records = [request(i, i * 0.35, outcome="failed") for i in range(10)]
    found = summarise(bundle(tmp_path, records), [promise, slow, late])
    ttft = by(found, "ttft_ms", "p95")
    assert (ttft.n, ttft.beyond(2000, "<="), ttft.beyond(5000, ">=")) == (7, 7, 0)
    assert by(found, "user_tok_s", "p5").beyond(20, ">=") == 7
    assert by(found, "ttft_ms", "mean").value == 3_600_000
    assert by(found, "user_tok_s", "p5").value == 0


def test_requests_cut_off_after_waiting_past_the_promise_are_beyond_it(tmp_path):
    promise = parse_condition("ttft p95 <= 250 ms at parallel-2")
    records = closed_loop()
    waiting = [request(10 + i, 2.0, outcome="undetermined", end_s=2.0 + s) for i, s in enumerate((0.2, 700.0, 700.0))]
    ttft = by(summarise(bundle(tmp_path, [*records, *waiting]), [promise]), "ttft_ms", "p95")
    assert (ttft.n, ttft.beyond(250, "<=")) == (9, 2)  # seven in the window, two that had waited 700 s


def test_an_out_of_memory_death_is_seen_whatever_else_is_void(tmp_path):
    start = {"oom": 1, "restarts": 1}
    records = [request(i, i * 0.35, outcome="failed") for i in range(10)]
    short = [Sample(0.5, "running", 1.0)]
    found = summarise(bundle(tmp_path / "a", records, telemetry=short, engine=start))
    assert any(s.startswith("concurrency-not-reached") for s in by(found, "output_tok_s").spoiled_by)
    for metric, value in (("oom", 1), ("restarts", 1), ("completed_share", 0), ("error_share", 1)):
        assert (by(found, metric).value, by(found, metric).valid) == (value, True)


def test_a_death_in_warm_up_belongs_to_the_point_that_was_warming_up(tmp_path):
    found = summarise(bundle(tmp_path, repeats=False, engine={"oom": 1, "restarts": 1}))
    assert [(e.metric, e.load_point, e.value) for e in found if e.load_point] == [
        ("oom", "parallel-2", 1), ("restarts", "parallel-2", 1), ("completed_share", "parallel-2", 0),
    ]  # fmt: skip


def test_a_failed_start_is_evidence_of_that_and_of_nothing_else(tmp_path):
    found = summarise(bundle(tmp_path, started=False, kind=Kind.MEASURED))
    assert [(e.metric, e.value, e.valid) for e in found] == [("started", 0.0, True)]


def test_server_metrics_come_from_its_own_counters(tmp_path):
    telemetry = [Sample(t, "kv_use", v) for t, v in ((0.5, 0.2), (1.5, 0.6))] + [Sample(0.5, "running", 2.0)]
    counters = (
        {"preemptions": 3, "prefix_hits": 10, "prefix_queries": 100},
        {"preemptions": 55, "prefix_hits": 40, "prefix_queries": 400},
    )
    found = summarise(bundle(tmp_path, telemetry=telemetry, counters=counters))
    assert by(found, "preemptions").value == 52
    assert by(found, "prefix_hit").value == pytest.approx(30 / 300)
    assert by(found, "kv_use", "max").value == 0.6
    assert by(found, "kv_use", "mean").value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("records", "repeat", "rule", "spoiled", "kept"),
    [
        (closed_loop(), {"loop_lag_p99_ms": 80.0}, "loop-lag", "ttft_ms", "output_tok_s"),
        (closed_loop(), {"clock_step_ms": -9.0}, "clock-step", "e2e_ms", "output_tok_s"),
        (closed_loop(), {"client_cpu_share": 0.97}, "client-cpu", "output_tok_s", "started"),
        (closed_loop(dispatch_lag_s=0.1), {}, "dispatch-lag", "ttft_ms", "ttft_service_ms"),
        (closed_loop(prompt_tokens=32), {}, "prompt-length", "ttft_ms", "started"),
        (closed_loop(asked_output_tokens=20), {}, "output-length", "output_tok_s", "ttft_ms"),
    ],
)
def test_a_faulty_instrument_spoils_what_it_touches_and_no_more(tmp_path, records, repeat, rule, spoiled, kept):
    found = summarise(bundle(tmp_path, records, **repeat))
    bad = next(e for e in found if e.metric == spoiled)
    assert any(s.startswith(rule) for s in bad.spoiled_by)
    assert all(e.valid for e in found if e.metric == kept)


def test_a_point_that_never_reached_its_concurrency_is_void(tmp_path):
    found = summarise(bundle(tmp_path, telemetry=[Sample(0.5, "running", 1.0)]))
    assert any(s.startswith("concurrency-not-reached") for s in by(found, "output_tok_s").spoiled_by)


def test_a_prefix_cache_that_helped_unasked_spoils_ttft(tmp_path):
    counters = ({"prefix_hits": 0, "prefix_queries": 0}, {"prefix_hits": 500, "prefix_queries": 640})
    found = summarise(bundle(tmp_path, counters=counters))
    assert any(s.startswith("prefix-cache") for s in by(found, "ttft_ms", "p95").spoiled_by)


def test_an_emulator_never_gives_measured_evidence(tmp_path):
    assert {e.kind for e in summarise(bundle(tmp_path, kind=Kind.SIMULATED))} == {Kind.SIMULATED}


def test_every_metric_of_a_run_is_one_that_conditions_know(tmp_path):
    found = summarise(bundle(tmp_path), service_levels=[parse_condition("ttft p95 <= 2 s")])
    assert {e.metric for e in found} <= set(METRICS)
    assert all(e.statistic in METRICS[e.metric].statistics for e in found)
