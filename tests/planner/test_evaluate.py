"""The evaluator: every state once, by example; then what must always hold."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.conditions import Context, Evidence, Kind, More, State, Verdict
from planner.contract import Contract
from planner.evaluate import ALL_OF, ANY_OF, combine, evaluate, ranked_state
from planner.statistics import effective_n
from tests.planner.made import ASKED, CONTRACT, NOW, PEAK, POINTS, SEEN, SHARED, context, speed, ttft

PROMISE = parse_condition("vllm: ttft p95 <= 2 s at peak")
FAST = parse_condition("vllm: output_tok_s >= 300 tok/s at parallel-16")


def test_a_load_point_outside_the_plan_is_unmeasurable():
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at rush-hour"), [], context())
    assert v.state is State.UNMEASURABLE
    assert "no load point 'rush-hour' in the plan" in v.sentence


def test_without_evidence_it_is_unmeasured_and_says_which_run_would_decide():
    v = evaluate(PROMISE, [], context())
    assert v.state is State.UNMEASURED
    assert "a run of vllm at peak would decide it" in v.sentence


def test_a_spread_over_starts_is_judged_by_the_figures_of_each_start():
    """27,000, 27,504 and 27,100 tokens: 504 / 27,504 = 1.8 %."""
    capacity = {"metric": "kv_capacity_tokens", "unit": "tokens", "load_point": None, "load_hash": None}
    starts = [speed(float(c), i, **capacity) for i, c in enumerate((27_000, 27_504, 27_100), 1)]
    v = evaluate(parse_condition("vllm: kv_capacity_spread <= 10 %"), starts, context())
    assert (v.state, v.value) == (State.HOLDS, pytest.approx(504 / 27_504))
    assert set(v.used) == {e.id for e in starts}


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


def test_two_runs_that_disagree_conflict_and_both_are_shown():
    v = evaluate(PROMISE, [ttft(), ttft(start=2, run="run-2", beyond=30, value=4100.0)], context())
    assert v.state is State.CONFLICTING
    assert "run-1: holds, 1.84 s" in v.sentence and "run-2: fails, 4.1 s" in v.sentence


def test_no_start_may_contradict_a_holds():
    v = evaluate(PROMISE, [ttft(n=600), ttft(n=60, beyond=20, start=2)], context())
    assert v.state is State.CONFLICTING


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


def test_repeats_of_one_start_are_one_start():
    repeats = [speed(400 + i, 1, id=f"r{i}", repeat=i) for i in (1, 2, 3)]
    v = evaluate(FAST, repeats, context())
    assert (v.state, v.n, v.value) == (State.UNDECIDED, 1, 402)


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


def test_near_says_which_side():
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at peak near 10 %"), [ttft(value=1840.0)], context())
    assert (v.state, v.side) == (State.NEAR, "holds")
    assert v.relative_distance == pytest.approx(0.08)


def test_what_lies_just_on_the_margin_is_near():
    # (2,000 - 1,800) / 2,000 = 10 %
    v = evaluate(parse_condition("vllm: ttft p95 <= 2 s at peak near 10 %"), [ttft(value=1800.0)], context())
    assert v.state is State.NEAR


def test_evidence_counts_on_its_last_day():
    line = "vllm: ttft p95 <= 2 s at peak within 30 days"
    assert evaluate(parse_condition(line), [ttft(at=NOW - timedelta(days=30))], context()).state is State.HOLDS


@pytest.mark.parametrize("version", [0, 2])
def test_a_figure_of_another_definition_is_passed_over(version):
    v = evaluate(PROMISE, [ttft(definition_version=version)], context())
    assert (v.state, v.passed_over[0].reason) == (State.UNMEASURED, f"definition {version}, now 1")


def test_one_start_does_not_decide_a_rate_three_do():
    assert evaluate(FAST, [speed(400)], context()).state is State.UNDECIDED
    v = evaluate(FAST, [speed(400, 1), speed(350, 2), speed(390, 3)], context())
    assert v.state is State.HOLDS
    assert "covers the median 75% of the time" in v.sentence
    assert evaluate(FAST, [speed(400, 1), speed(290, 2), speed(390, 3)], context()).state is State.UNDECIDED
    assert evaluate(FAST, [speed(200, 1), speed(290, 2), speed(250, 3)], context()).state is State.FAILS


def test_measured_stands_before_imported_before_entered():
    entered = ttft(id="e", kind=Kind.ENTERED, value=900.0, exceedances=(), n=None, at=NOW, contract=None)
    imported = ttft(id="i", kind=Kind.IMPORTED, value=2808.0, exceedances=(), at=NOW, contract=None, note="public log")
    v = evaluate(PROMISE, [entered, imported], context())
    assert (v.state, v.kind) == (State.FAILS, Kind.IMPORTED)
    assert "as imported" in v.sentence and "public log" in v.sentence
    assert evaluate(PROMISE, [entered], context()).sentence.count("as entered, n not stated") == 1
    assert evaluate(PROMISE, [entered, imported, ttft(beyond=0)], context()).kind is Kind.MEASURED


@pytest.mark.parametrize("kind", [Kind.BOUND, Kind.COVERAGE, Kind.PLANNING, Kind.SIMULATED, Kind.ENGINE_ALONE])
def test_an_estimate_never_decides_it_gives_an_expectation(kind):
    condition = parse_condition("vllm: user_tok_s p5 >= 20 tok/s at parallel-16")
    guess = Evidence(id="p", metric="user_tok_s", statistic="p5", value=10.0, unit="tok/s", kind=kind, source="sizing",
                     at=NOW, candidate="vllm", load_point="parallel-16")  # fmt: skip
    v = evaluate(condition, [guess], context())
    assert v.state is State.UNMEASURED
    assert v.expectation == f"predicted to fail: 10 tok/s against 20 tok/s ({kind.value})"


def test_an_expectation_is_of_the_statistic_that_is_asked_for():
    condition = parse_condition("vllm: user_tok_s p5 >= 20 tok/s at parallel-16")
    rehearsed = [
        speed(v, metric="user_tok_s", statistic=s, kind=Kind.SIMULATED, id=f"r/{s}")
        for s, v in {"p5": 18.0, "p50": 25.0, "p99": 40.0}.items()
    ]
    assert evaluate(condition, rehearsed, context()).expectation.startswith("predicted to fail: 18 tok/s")


def test_what_is_predicted_of_a_ratio_was_predicted_at_this_load_on_both_sides():
    condition = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")
    bound = [speed(v, candidate=c, kind=Kind.BOUND, id=f"b-{c}") for c, v in (("vllm", 300.0), ("ollama", 60.0))]
    elsewhere = speed(900.0, kind=Kind.PLANNING, load_hash="another", id="p-vllm")
    slow = speed(60.0, candidate="ollama", kind=Kind.PLANNING, id="p-ollama")
    # 300 / 60; the 900 tok/s are of other lengths
    told = evaluate(condition, [*bound, elsewhere, slow], context()).expectation
    assert told == "predicted to hold: 5 x against 3 x (bound)"
    nothing = bound[1].model_copy(update={"value": 0.0})
    assert evaluate(condition, [bound[0], nothing], context()).expectation == ""


def test_a_rehearsal_at_another_load_predicts_nothing():
    other = PEAK.model_copy(update={"input_tokens": 100})
    v = evaluate(PROMISE, [ttft(kind=Kind.SIMULATED, load_hash=other.load_hash())], context())
    assert v.expectation == ""


def test_a_document_is_no_evidence_of_speed():
    v = evaluate(PROMISE, [ttft(kind=Kind.DOCUMENTED)], context())
    assert v.state is State.UNMEASURED
    assert v.passed_over[0].reason == "a document is no evidence of speed"


def test_a_server_that_does_not_start_has_failed():
    started = Evidence(
        id="s", metric="started", value=0, unit="bool", kind=Kind.MEASURED, source="b1", at=NOW, candidate="vllm"
    )
    v = evaluate(parse_condition("vllm: started is true"), [started], context())
    assert v.state is State.FAILS
    assert v.value == 0


def test_the_same_name_with_another_load_is_passed_over():
    other = PEAK.model_copy(update={"input_tokens": 100})
    v = evaluate(PROMISE, [ttft(load_hash=other.load_hash())], context())
    assert v.state is State.UNMEASURED
    assert "another one" in v.passed_over[0].reason


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


def share(metric: str, value: float, n: int, start: int = 1) -> Evidence:
    return ttft(id=f"{metric}-{start}-{n}-{value}", metric=metric, statistic="value", value=value, unit="share", n=n,
                start=start, exceedances=())  # fmt: skip


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


def test_goodput_counted_under_other_levels_is_passed_over():
    condition = parse_condition("vllm: goodput >= 90 % at peak")
    piece = share("goodput", 1.0, 200).model_copy(update={"service_levels": "old"})
    assert evaluate(condition, [piece], context(service_levels="old")).state is State.HOLDS
    assert evaluate(condition, [piece], context(service_levels="new")).state is State.UNMEASURED


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


def test_the_worst_maximum_decides_a_maximum():
    condition = parse_condition("vllm: itl max <= 250 ms at peak")
    gaps = [ttft(id=f"g{i}", metric="itl_ms", statistic="max", value=v, start=i) for i, v in enumerate((100.0, 350.0))]
    assert evaluate(condition, gaps, context()).state is State.FAILS


# Ratios and parity.

THREE_TIMES = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")
GGUF = Contract(shared=SHARED, candidate=ASKED | {"engine": "ollama", "weight_format": "gguf", "quantization": "Q8_0"},
                observed=SEEN)  # fmt: skip


def pair(baseline: Contract) -> tuple[list[Evidence], Context]:
    fast = [speed(v, i) for i, v in enumerate((440, 450, 460), 1)]
    slow = [speed(v, i, "ollama", contract=baseline.full_hash()) for i, v in enumerate((120, 130, 125), 1)]
    contracts = {CONTRACT.full_hash(): CONTRACT, baseline.full_hash(): baseline}
    return fast + slow, context(contracts=contracts)


def test_a_ratio_with_an_undeclared_difference_is_refused_by_field():
    evidence, c = pair(GGUF)
    v = evaluate(THREE_TIMES, evidence, c)
    assert v.state is State.INVALID_RUN
    assert "weight_format: safetensors -> gguf" in v.sentence


def test_a_declared_difference_allows_per_token_ratios_and_is_named():
    declared = GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")})
    evidence, c = pair(declared)
    v = evaluate(THREE_TIMES, evidence, c)
    # slowest over fastest 440 / 130 = 3.385; means 450 / 125 = 3.6
    assert v.state is State.HOLDS
    assert v.value == pytest.approx(3.6)
    assert v.interval == (pytest.approx(440 / 130), pytest.approx(460 / 120))
    assert "quantization: fp8 -> Q8_0" in v.sentence
    ttfts = [e.model_copy(update={"metric": "request_rate", "unit": "req/s"}) for e in evidence]
    refused = evaluate(parse_condition("vllm over ollama: request_rate >= 3 x at parallel-16"), ttfts, c)
    assert refused.state is State.INVALID_RUN
    assert "only figures per token compare" in refused.sentence


def of_both(ours, theirs, *capacities) -> tuple[list[Evidence], Context]:
    """Starts of the two, under one contract, and what those of the first can hold."""
    held = [
        speed(c, i, metric="kv_capacity_tokens", unit="tokens", load_point=None, load_hash=None, id=f"kv-{i}")
        for i, c in enumerate(capacities, 1)
    ]
    sides = (("vllm", ours), ("ollama", theirs))
    return [*held, *(speed(v, i, who) for who, values in sides for i, v in enumerate(values, 1))], context()


def test_a_side_that_delivered_nothing_gives_no_ratio():
    v = evaluate(THREE_TIMES, *of_both((400, 410, 420), (0, 100, 100)))
    assert v.state is State.UNDECIDED
    assert "ollama delivered nothing" in v.sentence


def test_the_side_with_fewer_starts_says_how_many_more_a_ratio_needs():
    v = evaluate(THREE_TIMES, *of_both((400, 410, 420), (100,)))
    assert (v.state, v.n, v.more) == (State.UNDECIDED, 1, More(n=2, of="starts"))


def test_starts_that_hold_unlike_shares_of_the_load_conflict_only_where_they_leave_the_ratio_open():
    unlike = (8_000, 12_000)  # 16 x (512 + 128) = 10,240 fit in the second only
    open_ = evaluate(THREE_TIMES, *of_both((400, 410), (100, 100), *unlike))
    assert (open_.state, open_.more) == (State.CONFLICTING, None)
    assert "KV capacity of vllm differs between its starts: 8,000 to 12,000 tokens" in open_.sentence
    assert evaluate(THREE_TIMES, *of_both((400, 410, 420), (100, 100, 100), *unlike)).state is State.HOLDS


def test_an_unstated_field_is_not_equal():
    unstated = GGUF.model_copy(update={
        "candidate": ASKED | {"engine": "ollama"}, "shared": {k: v for k, v in SHARED.items() if k != "model_revision"},
    })  # fmt: skip
    evidence, c = pair(unstated)
    v = evaluate(THREE_TIMES, evidence, c)
    assert v.state is State.INVALID_RUN
    assert "model_revision: r1 -> not stated" in v.sentence


# Combination: the published truth table.


def _verdict(name: str) -> Verdict:
    if name.startswith("near "):
        return Verdict(state=State.NEAR, side="holds" if name.endswith("holds") else "fails", sentence=name)
    return Verdict(state=State(name), side=name if name in ("holds", "fails") else None, sentence=name)


@pytest.mark.parametrize("kind", ["all of", "any of"])
def test_every_pair_of_states_combines_to_the_more_telling_one(kind):
    order = ALL_OF if kind == "all of" else ANY_OF
    for a, b in product(order, repeat=2):
        both = combine(kind, [_verdict(a), _verdict(b)])
        assert ranked_state(both) == min(a, b, key=order.index)


def test_one_fail_fails_all_of_and_one_hold_holds_any_of():
    assert combine("all of", [_verdict("unmeasured"), _verdict("fails")]).state is State.FAILS
    assert combine("any of", [_verdict("unmeasured"), _verdict("holds")]).state is State.HOLDS
    assert combine("all of", [_verdict("unmeasured"), _verdict("holds")]).state is State.UNMEASURED


def test_of_several_failures_the_worst_speaks():
    close = evaluate(FAST, [speed(v, i) for i, v in enumerate((280, 285, 290), 1)], context())  # 5 % below 300
    far = evaluate(PROMISE, [ttft(beyond=90, value=9000.0)], context())  # 350 % above 2 s
    assert combine("all of", [close, far]).sentence == far.sentence
    assert combine("any of", [close, far]).sentence == far.sentence


def test_at_every_of_two_points_needs_both():
    condition = parse_condition("vllm: ttft p95 <= 2 s at every of peak, parallel-16")
    v = evaluate(condition, [ttft()], context())
    assert v.state is State.UNMEASURED
    assert [p.state for p in v.parts] == [State.HOLDS, State.UNMEASURED]


# What must always hold.

_pieces = st.lists(
    st.builds(
        lambda n, share, start, kind, spoiled, age: ttft(
            id=f"{n}-{share:.3f}-{start}-{kind}-{spoiled}-{age}", n=n, beyond=int(n * share), start=start, kind=kind,
            spoiled_by=("rule: x",) if spoiled else (), at=NOW - timedelta(days=age), value=3000 * share + 500,
        ),
        st.integers(1, 300), st.floats(0, 1), st.integers(1, 3), st.sampled_from(list(Kind)), st.booleans(),
        st.integers(0, 60),
    ),
    max_size=5, unique_by=lambda e: e.id,
)  # fmt: skip


@settings(max_examples=150)
@given(_pieces, st.randoms())
def test_the_order_of_evidence_changes_nothing_and_nothing_raises(pieces, rng: random.Random):
    shuffled = list(pieces)
    rng.shuffle(shuffled)
    assert evaluate(PROMISE, pieces, context()) == evaluate(PROMISE, shuffled, context())


@settings(max_examples=150)
@given(st.lists(st.floats(100, 500), min_size=1, max_size=6), st.floats(100, 500), st.floats(0, 100))
def test_a_looser_threshold_never_turns_holds_into_fails(values, threshold, slack):
    evidence = [speed(v, i) for i, v in enumerate(values)]
    strict = FAST.model_copy(update={"threshold": threshold})
    loose = FAST.model_copy(update={"threshold": max(0.0, threshold - slack)})
    rank = {"fails": 0, None: 1, "holds": 2}
    assert rank[evaluate(loose, evidence, context()).side] >= rank[evaluate(strict, evidence, context()).side]


@settings(max_examples=100)
@given(st.integers(20, 400), st.integers(0, 50), st.integers(0, 50))
def test_fewer_requests_beyond_never_turn_holds_into_fails(n, a, b):
    fewer, more = sorted((min(a, n), min(b, n)))
    rank = {"fails": 0, None: 1, "holds": 2}
    assert (
        rank[evaluate(PROMISE, [ttft(n=n, beyond=fewer)], context()).side]
        >= rank[evaluate(PROMISE, [ttft(n=n, beyond=more)], context()).side]
    )


@pytest.mark.parametrize(("true_share", "wrong"), [(0.05, "holds"), (0.05, "fails")])
def test_false_verdicts_stay_under_5_percent_with_correlated_waves(true_share, wrong):
    """130 requests over three starts in waves of ten; a common wave effect carries a third of the variance.

    At the boundary (exactly 5 % beyond) either verdict is wrong, so both must be rare.
    """
    rng = random.Random(20261129)
    within = 0.8164965809  # sqrt(2/3): total variance 1, intraclass correlation 1/3
    between = 0.5773502692
    limit = 1.6448536270  # 95th percentile of the standard normal: 5 % lie beyond
    runs, false = 400, 0
    for _ in range(runs):
        evidence = []
        for start, n in enumerate((44, 43, 43), 1):
            blocks = [i // 10 for i in range(n)]
            common = [rng.gauss(0, between) for _ in range(max(blocks) + 1)]
            values = [common[b] + rng.gauss(0, within) for b in blocks]
            beyond = sum(v > limit for v in values)
            evidence.append(ttft(n=n, beyond=beyond, start=start, effective_n=effective_n(values, blocks)))
        false += evaluate(PROMISE, evidence, context()).side == wrong
    assert false / runs < 0.05


# Open loops: a failure names the lowest rate at which it was seen.


def at_rate(point: str, value: float) -> Evidence:
    return ttft(
        None, value=value, kind=Kind.IMPORTED, load_point=point, load_hash=None, id=point, source=point, exceedances=()
    )


def test_a_failure_in_an_open_loop_names_the_lowest_rate_at_which_it_was_seen():
    rates = {f"rate-{r}": PEAK.model_copy(update={"name": f"rate-{r}", "rate_per_s": r}) for r in (0.1, 0.3, 1.0)}
    seen = [at_rate("peak", 8000), at_rate("rate-0.1", 1900), at_rate("rate-0.3", 4400), at_rate("rate-1.0", 66_000)]
    v = evaluate(PROMISE, seen, context(points=POINTS | rates))
    assert (v.state, v.value) == (State.FAILS, 8000)
    assert v.sentence.endswith("It fails already at 0.3 req/s poisson, 3,596 in / 500 out: 4.4 s.")
    assert "already" not in evaluate(PROMISE, seen[:2], context(points=POINTS | rates)).sentence


def test_a_throughput_that_falls_short_says_nothing_of_lower_rates():
    """What has to be high may be missed for want of load: a lower rate that misses it too is no earlier failure."""
    condition = parse_condition("vllm: request_rate >= 0.5 req/s at peak")
    low = PEAK.model_copy(update={"name": "low", "rate_per_s": 0.1})
    seen = [
        at_rate(p, v).model_copy(update={"metric": "request_rate", "statistic": "value", "unit": "req/s"})
        for p, v in (("peak", 0.4), ("low", 0.1))
    ]
    v = evaluate(condition, seen, context(points=POINTS | {"low": low}))
    assert v.state is State.FAILS
    assert "already" not in v.sentence


def test_a_ratio_of_imported_figures_is_decided_by_the_ranges_that_their_source_states():
    fast, slow = pair(GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")}))[0][::3]
    stated = [e.model_copy(update={"kind": Kind.IMPORTED, "interval": (e.value * 0.9, e.value * 1.1)})
              for e in (fast, slow)]  # fmt: skip
    c = pair(GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")}))[1]
    # 440 / 120 = 3.67; 396 / 132 = 3.0 at the least
    v = evaluate(THREE_TIMES, stated, c)
    assert (v.state, v.kind) == (State.HOLDS, Kind.IMPORTED)
    assert "as imported, 3 x to 4.48 x" in v.sentence
    wider = [e.model_copy(update={"interval": (e.value * 0.8, e.value * 1.2)}) for e in stated]
    assert evaluate(THREE_TIMES, wider, c).state is State.UNDECIDED
