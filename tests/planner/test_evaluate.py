"""Which evidence a verdict stands on: what counts, what is passed over, and what is said when nothing decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind, State
from planner.contract import Contract
from planner.evaluate import evaluate
from tests.planner.made import ASKED, CONTRACT, NOW, PEAK, PROMISE, SEEN, context, share, ttft


def test_a_load_point_outside_the_plan_is_unmeasurable():
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at rush-hour"), [], context())
    assert v.state is State.UNMEASURABLE
    assert "no load point 'rush-hour' in the plan" in v.sentence


def test_without_evidence_it_is_unmeasured_and_says_which_run_would_decide():
    v = evaluate(PROMISE, [], context())
    assert v.state is State.UNMEASURED
    assert "a run of vllm at peak would decide it" in v.sentence


def test_only_invalid_runs_say_which_rule():
    v = evaluate(PROMISE, [ttft(spoiled_by=("loop-lag: the client's event loop lagged by 80 ms at p99",))], context())
    assert v.state is State.INVALID_RUN
    assert "event loop lagged" in v.sentence


def test_a_newer_invalid_run_never_hides_an_older_valid_one():
    old = ttft(at=NOW - timedelta(days=9))
    new = ttft(id="new", at=NOW, spoiled_by=("clock-step: 9 ms",), n=100, beyond=50)
    v = evaluate(PROMISE, [old, new], context())
    assert v.state is State.HOLDS
    assert [p.evidence for p in v.passed_over] == ["new"]


def test_too_old_is_expired():
    v = evaluate(
        parse_condition("vllm: ttft p95 <= 2 s at peak within 30 days"), [ttft(at=NOW - timedelta(days=31))], context()
    )
    assert v.state is State.EXPIRED
    assert "31 days old, 30 allowed" in v.sentence


def test_evidence_counts_on_its_last_day():
    line = "vllm: ttft p95 <= 2 s at peak within 30 days"
    assert evaluate(parse_condition(line), [ttft(at=NOW - timedelta(days=30))], context()).state is State.HOLDS


@pytest.mark.parametrize(
    ("deployed", "tolerance", "state"),
    [("0.33.1", "patch", State.HOLDS), ("0.34.0", "patch", State.EXPIRED), ("0.34.0", "minor", State.HOLDS),
     ("1.0.0", "minor", State.EXPIRED), ("1.0.0", "any", State.HOLDS), ("0.33.1", "exact", State.EXPIRED)],
)  # fmt: skip
def test_a_version_beyond_the_tolerance_expires_and_names_it(deployed, tolerance, state):
    running = CONTRACT.model_copy(update={"candidate": ASKED | {"engine_version": deployed}, "observed": {}})
    line = f"vllm: ttft p95 <= 2 s at peak version {tolerance}"
    v = evaluate(parse_condition(line), [ttft()], context(decided={"vllm": running}))
    assert v.state is state
    if state is State.EXPIRED:
        assert f"engine_version: {deployed} -> 0.33.0" in v.sentence


def test_a_new_driver_is_context_and_voids_nothing():
    seen = CONTRACT.model_copy(update={"observed": SEEN | {"driver": "581.1"}})
    decided = CONTRACT.model_copy(update={"observed": SEEN | {"driver": "580.173"}})
    c = context(decided={"vllm": decided}, contracts={seen.full_hash(): seen})
    assert evaluate(PROMISE, [ttft(contract=seen.full_hash())], c).state is State.HOLDS


@pytest.mark.parametrize("version", [0, 2])
def test_a_figure_of_another_definition_is_passed_over(version):
    v = evaluate(PROMISE, [ttft(definition_version=version)], context())
    assert (v.state, v.passed_over[0].reason) == (State.UNMEASURED, f"definition {version}, now 1")


def test_measured_stands_before_imported_before_entered():
    entered = ttft(id="e", kind=Kind.ENTERED, value=900.0, exceedances=(), n=None, at=NOW, contract=None)
    imported = ttft(id="i", kind=Kind.IMPORTED, value=2808.0, exceedances=(), at=NOW, contract=None, note="public log")
    v = evaluate(PROMISE, [entered, imported], context())
    assert (v.state, v.kind) == (State.FAILS, Kind.IMPORTED)
    assert "as imported" in v.sentence and "public log" in v.sentence
    assert evaluate(PROMISE, [entered], context()).sentence.count("as entered, n not stated") == 1
    assert evaluate(PROMISE, [entered, imported, ttft(beyond=0)], context()).kind is Kind.MEASURED


def test_a_document_is_no_evidence_of_speed():
    v = evaluate(PROMISE, [ttft(kind=Kind.DOCUMENTED)], context())
    assert v.state is State.UNMEASURED
    assert v.passed_over[0].reason == "a document is no evidence of speed"


def test_another_statistic_is_passed_over_only_where_its_run_does_not_give_the_asked_one():
    median = ttft(statistic="p50", id="median")
    alone = evaluate(PROMISE, [median], context())
    assert (alone.state, alone.passed_over[0].reason) == (State.UNMEASURED, "statistic is p50, not p95")
    beside = evaluate(PROMISE, [median, ttft()], context())
    assert (beside.state, beside.passed_over) == (State.HOLDS, ())


def test_the_same_name_with_another_load_is_passed_over():
    other = PEAK.model_copy(update={"input_tokens": 100})
    v = evaluate(PROMISE, [ttft(load_hash=other.load_hash())], context())
    assert v.state is State.UNMEASURED
    assert "another one" in v.passed_over[0].reason


def test_goodput_counted_under_other_levels_is_passed_over():
    condition = parse_condition("vllm: goodput >= 90 % at peak")
    piece = share("goodput", 1.0, 200).model_copy(update={"service_levels": "old"})
    assert evaluate(condition, [piece], context(service_levels="old")).state is State.HOLDS
    assert evaluate(condition, [piece], context(service_levels="new")).state is State.UNMEASURED


def test_a_server_that_does_not_start_has_failed():
    started = Evidence(
        id="s", metric="started", value=0, unit="bool", kind=Kind.MEASURED, source="b1", at=NOW, candidate="vllm"
    )
    v = evaluate(parse_condition("vllm: started is true"), [started], context())
    assert v.state is State.FAILS
    assert v.value == 0


def test_a_failed_start_is_never_passed_over():
    """It could not even report its version, so its contract states less; it counts all the same."""
    silent = CONTRACT.model_copy(update={"observed": {"gpu": "NVIDIA GB10"}})
    c = context(contracts={x.full_hash(): x for x in (CONTRACT, silent)})
    condition = parse_condition("vllm: started is true")

    def start(i: int, value: int, contract: Contract) -> Evidence:
        return Evidence(id=f"s{i}", metric="started", value=value, unit="bool", kind=Kind.MEASURED, source=f"b{i}",
                        at=NOW - timedelta(hours=9 - i), candidate="vllm",
                        contract=contract.full_hash())  # fmt: skip

    for order in ((0, 1, 1), (1, 1, 0), (1, 0, 1)):
        pieces = [start(i, ok, CONTRACT if ok else silent) for i, ok in enumerate(order)]
        v = evaluate(condition, pieces, c)
        assert v.state is State.FAILS
        assert "1 of 3 starts missed it" in v.sentence
        assert v.n == 3


def test_a_start_counts_whatever_was_asked_of_it():
    wider = CONTRACT.model_copy(update={"candidate": ASKED | {"max_num_seqs": "64"}})
    c = context(contracts={x.full_hash(): x for x in (CONTRACT, wider)})
    starts = [
        Evidence(id=f"s{i}", metric="started", value=ok, unit="bool", kind=Kind.MEASURED, source=f"b{i}",
                 at=NOW - timedelta(hours=9 - i), candidate="vllm", contract=asked.full_hash())
        for i, (ok, asked) in enumerate(((0, wider), (1, CONTRACT)))
    ]  # fmt: skip
    v = evaluate(parse_condition("vllm: started is true"), starts, c)
    assert (v.state, v.n) == (State.FAILS, 2)
