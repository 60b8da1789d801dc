"""Several conditions become one state: the published truth table."""

from __future__ import annotations

from itertools import product

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Kind, State, Verdict
from planner.evaluate import ALL_OF, ANY_OF, combine, evaluate, ranked_state
from tests.planner.made import FAST, PROMISE, context, speed, ttft


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


@pytest.mark.parametrize(
    ("kind", "value", "measured_ms", "known_by"),
    [
        ("all of", 1.0, 900.0, Kind.ENTERED),  # both hold, and the promise rests on both
        ("all of", 1.0, 9000.0, Kind.MEASURED),  # the measured one alone makes it fail
        ("any of", 0.1, 900.0, Kind.MEASURED),  # the measured one alone makes it hold
        ("any of", 0.1, 9000.0, Kind.ENTERED),  # that none holds rests on both
    ],
)
def test_what_rests_on_every_part_is_known_by_the_weakest(kind, value, measured_ms, known_by):
    measured = evaluate(PROMISE, [ttft(beyond=0 if measured_ms < 2000 else 90, value=measured_ms)], context())
    typed_in = speed(value, 1, kind=Kind.ENTERED, metric="json_valid", unit="share", contract=None, load_hash=None)
    valid = evaluate(parse_condition("vllm: json_valid >= 50 % at parallel-16"), [typed_in], context())
    assert combine(kind, [measured, valid]).kind is known_by


def test_at_every_of_two_points_needs_both():
    condition = parse_condition("vllm: ttft p95 <= 2 s at every of peak, parallel-16")
    v = evaluate(condition, [ttft()], context())
    assert v.state is State.UNMEASURED
    assert [p.state for p in v.parts] == [State.HOLDS, State.UNMEASURED]
