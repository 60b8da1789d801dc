"""How many requests or starts decide a limit, and what is said of too few, of near ones, and of some that disagree."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.choosing import of_the_newest
from planner.condition_line import parse_condition
from planner.conditions import State
from planner.evaluate import evaluate
from tests.planner.made import CONTRACT, FAST, NOW, PROMISE, context, share, speed, ttft


def test_thirty_clean_requests_do_not_prove_a_p95():
    # 59 are needed at 95 % (0.95^59 = 0.0485)
    v = evaluate(PROMISE, [ttft(n=30)], context())
    assert v.state is State.UNDECIDED
    assert "at least 29 more requests" in v.sentence


def test_a_p95_holds_and_fails_by_the_exact_test():
    assert evaluate(PROMISE, [ttft(n=59)], context()).state is State.HOLDS
    # P(X >= 11 | 100, 0.05) = 0.0115 <= 0.05: eleven of a hundred beyond is a fail, nine (0.063) is not.
    assert evaluate(PROMISE, [ttft(n=100, beyond=11)], context()).state is State.FAILS
    assert evaluate(PROMISE, [ttft(n=100, beyond=9)], context()).state is State.UNDECIDED


def test_requests_of_one_wave_count_as_what_they_are_worth():
    v = evaluate(PROMISE, [ttft(n=130, effective_n=26.0)], context())
    assert v.state is State.UNDECIDED
    assert "worth 26 independent samples" in v.sentence


def test_a_part_of_a_sample_counts_against_whoever_would_gain_by_it():
    # 1 of 100 worth 59: 0.59 of 59, rounded up (P(X <= 1 | 59, 5 %) = 0.199; with none it were 0.0485).
    assert evaluate(PROMISE, [ttft(n=100, beyond=1, effective_n=59.0)], context()).state is State.UNDECIDED
    # 11 of 100 worth 50: 5.5 of 50, rounded down (P(X >= 5 | 50, 5 %) = 0.104; with 6 it were 0.0378).
    assert evaluate(PROMISE, [ttft(n=100, beyond=11, effective_n=50.0)], context()).state is State.UNDECIDED


def test_shares_are_tested_like_percentiles():
    condition = parse_condition("vllm: error_share <= 5 % at peak")
    # 0.95^59 = 0.0485: 59 clean requests prove it, 58 do not; 20 of 60 in one start contradict 1,000 clean ones.
    assert evaluate(condition, [share("error_share", 0.0, 59)], context()).state is State.HOLDS
    assert evaluate(condition, [share("error_share", 0.0, 58)], context()).state is State.UNDECIDED
    both = [share("error_share", 0.0, 1000), share("error_share", 20 / 60, 60, 2)]
    assert evaluate(condition, both, context()).state is State.CONFLICTING


def test_that_nothing_ever_fails_is_not_proved_but_all_that_was_seen_can_be_said():
    clean = [share("completed_share", 1.0, 60)]
    never = evaluate(parse_condition("vllm: completed_share >= 1 at peak"), clean, context())
    assert never.state is State.UNDECIDED
    assert "cannot be proved" in never.sentence
    assert evaluate(parse_condition("vllm: completed_share is 1 at peak"), clean, context()).state is State.HOLDS
    missed = [share("completed_share", 59 / 60, 60)]
    assert evaluate(parse_condition("vllm: completed_share >= 1 at peak"), missed, context()).state is State.FAILS


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("vllm: ttft p95 between 1 and 2 s at peak", "one limit"),
        ("vllm: ttft p95 is 2 s at peak", "one limit"),
    ],
)
def test_a_percentile_against_two_limits_is_unmeasurable(line, why):
    v = evaluate(parse_condition(line), [ttft()], context())
    assert v.state is State.UNMEASURABLE
    assert why in v.sentence


def test_one_start_does_not_decide_a_rate_three_do():
    assert evaluate(FAST, [speed(400)], context()).state is State.UNDECIDED
    v = evaluate(FAST, [speed(400, 1), speed(350, 2), speed(390, 3)], context())
    assert v.state is State.HOLDS
    assert "covers the median 75% of the time" in v.sentence
    assert evaluate(FAST, [speed(400, 1), speed(290, 2), speed(390, 3)], context()).state is State.UNDECIDED
    assert evaluate(FAST, [speed(200, 1), speed(290, 2), speed(250, 3)], context()).state is State.FAILS


def test_repeats_of_one_start_are_one_start():
    repeats = [speed(400 + i, 1, id=f"r{i}", repeat=i) for i in (1, 2, 3)]
    v = evaluate(FAST, repeats, context())
    assert (v.state, v.n, v.value) == (State.UNDECIDED, 1, 402)


def test_a_spread_over_starts_is_judged_by_the_figures_of_each_start():
    """27,000, 27,504 and 27,100 tokens: 504 / 27,504 = 1.8 %."""
    capacity = {"metric": "kv_capacity_tokens", "unit": "tokens", "load_point": None, "load_hash": None}
    starts = [speed(float(c), i, **capacity) for i, c in enumerate((27_000, 27_504, 27_100), 1)]
    v = evaluate(parse_condition("vllm: kv_capacity_spread <= 10 %"), starts, context())
    assert (v.state, v.value) == (State.HOLDS, pytest.approx(504 / 27_504))
    assert set(v.used) == {e.id for e in starts}


def test_two_starts_prove_a_spread_too_wide_and_never_one_that_is_not():
    """22,048 and 27,504 tokens, as two starts of one card held: 5,456 / 27,504 = 19.8 %, whatever a third holds."""
    narrow = parse_condition("vllm: kv_capacity_spread <= 10 %")
    capacity = {"metric": "kv_capacity_tokens", "unit": "tokens", "load_point": None, "load_hash": None}
    wide, close = (
        evaluate(narrow, [speed(c, i, **capacity) for i, c in enumerate(starts, 1)], context())
        for starts in ((22_048.0, 27_504.0), (27_000.0, 27_504.0))
    )
    assert (wide.state, wide.value) == (State.FAILS, pytest.approx(0.198, abs=5e-4))
    assert (close.state, "1 more would decide it" in close.sentence) == (State.UNDECIDED, True)


def test_the_worst_maximum_decides_a_maximum():
    condition = parse_condition("vllm: itl max <= 250 ms at peak")
    gaps = [ttft(id=f"g{i}", metric="itl_ms", statistic="max", value=v, start=i) for i, v in enumerate((100.0, 350.0))]
    assert evaluate(condition, gaps, context()).state is State.FAILS


def test_two_runs_that_disagree_conflict_and_both_are_shown():
    v = evaluate(PROMISE, [ttft(), ttft(start=2, run="run-2", beyond=30, value=4100.0)], context())
    assert v.state is State.CONFLICTING
    assert "run-1: holds, 1.84 s" in v.sentence and "run-2: fails, 4.1 s" in v.sentence


def test_no_start_may_contradict_a_holds():
    v = evaluate(PROMISE, [ttft(n=600), ttft(n=60, beyond=20, start=2)], context())
    assert v.state is State.CONFLICTING


def test_near_says_which_side():
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at peak near 10 %"), [ttft(value=1840.0)], context())
    assert (v.state, v.side) == (State.NEAR, "holds")
    assert v.relative_distance == pytest.approx(0.08)


def test_what_lies_just_on_the_margin_is_near():
    # (2,000 - 1,800) / 2,000 = 10 %
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at peak near 10 %"), [ttft(value=1800.0)], context())
    assert v.state is State.NEAR


def test_a_run_with_a_setting_that_the_newest_leaves_to_the_engine_does_not_count_beside_it():
    """That only one contract states a field makes it another server; no field that both state differs."""
    chunked = CONTRACT.model_copy(update={"candidate": {**CONTRACT.candidate, "prefill_chunk": "512"}})
    known = {c.full_hash(): c for c in (CONTRACT, chunked)}
    older = ttft(start=1, contract=chunked.full_hash(), at=NOW - timedelta(days=3))
    newest = ttft(start=2)
    v = evaluate(PROMISE, [older, newest], context(contracts=known))
    assert (v.used, [p.evidence for p in v.passed_over]) == ((newest.id,), [older.id])
    assert of_the_newest([older, newest], known) == [newest]
