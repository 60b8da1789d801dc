"""Two sides of one quality set: counts by hand, bounds against R, and what must hold for any pairs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind, State
from planner.contract import Contract
from planner.deciding_items import paired
from planner.evaluate import evaluate
from planner.loads import LoadPoint
from planner.paired import first_answers, pair
from tests.planner.made import ASKED, CONTRACT, NOW, SEEN, SHARED, context

SET = LoadPoint(name="set", shape="quality", in_flight=1, quality_file="q.jsonl", file_sha256="a" * 64,
                input_tokens=64, output_tokens=64, requests=100)  # fmt: skip
GGUF = Contract(shared=SHARED, candidate=ASKED | {"engine": "ollama", "weight_format": "gguf", "quantization": "q8_0"},
                observed=SEEN, declared_differences=("weight_format", "quantization"))  # fmt: skip


def sides(items: int, only_left: int, only_right: int) -> tuple[dict[str, bool], dict[str, bool]]:
    """The first items pass on the right only, the next ones on the left only, the others on both."""
    left = {f"i{i}": i >= only_right for i in range(items)}
    right = {f"i{i}": not only_right <= i < only_right + only_left for i in range(items)}
    return left, right


def test_only_items_that_both_answered_are_paired():
    found = pair({"a": True, "b": True, "c": False, "d": True}, {"a": True, "b": False, "c": True, "e": True})
    assert (found.items, found.passed, found.only, found.loss, found.p_value) == (3, (2, 2), (1, 1), 0.0, 1.0)


@pytest.mark.parametrize(
    ("items", "only_left", "only_right", "outcome", "interval"),
    [
        # R: binom.test(0, 100)$conf.int 0 to 0.03622; nothing differs, so the direction is free (-1 to 1).
        (100, 0, 0, "no loss shown", (-0.03622, 0.03622)),
        # R: binom.test(6, 40) 0.05708 to 0.29839, binom.test(6, 6) 0.54074 to 1: 0.05708 x 0.08148; 0.29839 x 1.
        (40, 0, 6, "loss shown", (0.00465, 0.29839)),
        (40, 6, 0, "gain shown", (-0.29839, -0.00465)),
        # R: binom.test(5, 40) upper 0.26803, binom.test(5, 5) lower 0.47818: 0.26803 x (2 x 0.47818 - 1).
        (40, 0, 5, "no loss shown", (-0.01170, 0.26803)),
    ],
)  # fmt: skip
def test_a_loss_is_shown_only_beyond_chance(items, only_left, only_right, outcome, interval):
    found = pair(*sides(items, only_left, only_right))
    assert found.outcome == outcome
    assert found.interval == pytest.approx(interval, abs=2e-4)


def test_no_loss_shown_says_how_much_it_could_be():
    assert "no loss shown (it could be up to 3.62 %): of 100 items" in pair(*sides(100, 0, 0)).sentence


@settings(max_examples=60)
@given(st.integers(0, 60), st.integers(0, 15), st.integers(0, 15))
def test_the_interval_leaves_zero_where_mcnemar_says_so_and_turns_with_the_sides(same, only_left, only_right):
    left, right = sides(same + only_left + only_right, only_left, only_right)
    found, turned = pair(left, right), pair(right, left)
    assert (found.outcome != "no loss shown") == (found.p_value < 0.05)
    assert found.interval[0] <= found.loss <= found.interval[1]
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]), abs=1e-12)


def test_the_first_answer_of_an_item_counts():
    assert first_answers([("a", True), ("b", False), ("a", False)]) == {"a": True, "b": False}


def rate(candidate: str, items: dict[str, bool], contract: Contract = CONTRACT, **more: object) -> Evidence:
    return Evidence.model_validate({
        "id": f"rate-{candidate}", "metric": "pass_rate", "value": sum(items.values()) / max(1, len(items)),
        "unit": "share", "kind": Kind.MEASURED, "source": f"{candidate}-1", "run": "r", "start": 1, "at": NOW,
        "candidate": candidate, "load_point": "set", "load_hash": SET.load_hash(), "n": len(items) or 100,
        "contract": contract.full_hash(), "items": tuple(items.items()),
    } | more)  # fmt: skip


def judged(line: str, *pieces: Evidence):
    contracts = {c.full_hash(): c for c in (CONTRACT, GGUF)}
    return evaluate(parse_condition(line), pieces, context(points={"set": SET}, contracts=contracts))


LOSS = "vllm over ollama: quality_loss <= {} % at set"


@pytest.mark.parametrize(
    ("items", "only_left", "only_right", "limit", "state"),
    [(100, 0, 0, 4, State.HOLDS), (100, 0, 0, 3, State.UNDECIDED), (40, 0, 6, 0, State.FAILS),
     (40, 0, 5, 0, State.UNDECIDED), (40, 6, 0, 0, State.HOLDS)],
)  # fmt: skip
def test_a_hypothesis_on_quality_is_judged_across_a_declared_precision(items, only_left, only_right, limit, state):
    left, right = sides(items, only_left, only_right)
    v = judged(LOSS.format(limit), rate("vllm", left), rate("ollama", right, GGUF))
    assert v.state is state
    assert "quantization: fp8 -> q8_0" in v.sentence


def test_an_undecided_loss_says_how_much_larger_the_set_has_to_be():
    left, right = sides(100, 0, 0)
    v = judged(LOSS.format(3), rate("vllm", left), rate("ollama", right, GGUF))
    # 1 - 0.025^(1/n) <= 3 % from n = 122 on: ln 0.025 / ln 0.97 = 121.1.
    assert (v.more.n, v.more.of) == (22, "items")
    assert "at least 22 more items without a further difference would decide it" in v.sentence
    assert judged(LOSS.format(0), rate("vllm", left), rate("ollama", right, GGUF)).more is None


def test_more_items_are_named_only_where_the_loss_has_to_stay_below_a_limit():
    left, right = sides(100, 0, 0)
    v = judged("vllm over ollama: quality_loss >= 1 % at set", rate("vllm", left), rate("ollama", right, GGUF))
    assert (v.state, v.more) == (State.UNDECIDED, None)


def test_the_first_start_answers_first_whatever_its_figures_are_called():
    again, first = ({"i": passed} for passed in (True, False))
    left = [rate("vllm", again, id="a", start=2), rate("vllm", first, id="b", start=1)]
    assert paired(left, [rate("ollama", {"i": True}, GGUF)]).passed == (0, 1)


def test_a_rate_without_its_items_cannot_be_paired():
    v = judged(LOSS.format(2), rate("vllm", {}, value=0.9), rate("ollama", {}, GGUF, value=0.95))
    assert v.state is State.UNDECIDED
    assert "no item is stated on both sides" in v.sentence


def test_another_set_is_another_question():
    other = SET.model_copy(update={"file_sha256": "b" * 64}).load_hash()
    left, right = sides(100, 0, 0)
    v = judged(LOSS.format(4), rate("vllm", left), rate("ollama", right, GGUF, load_hash=other))
    assert v.state is State.INVALID_RUN
    assert "the load differs" in v.sentence


def test_items_not_answers_are_the_sample_of_a_pass_rate():
    # 60 items, all passed: P(0 of 60 beyond 5 %) = 0.95^60 = 0.046. Forty items thrice are still forty: 0.95^40 = 0.13.
    sixty, forty = ({f"i{i}": True for i in range(n)} for n in (60, 40))
    assert judged("vllm: pass_rate >= 95 % at set", rate("vllm", sixty)).state is State.HOLDS
    thrice = [rate("vllm", forty, id=f"r{s}", source=f"vllm-{s}", start=s) for s in (1, 2, 3)]
    v = judged("vllm: pass_rate >= 95 % at set", *thrice)
    assert v.state is State.UNDECIDED
    assert (v.n, v.interval) == (40, pytest.approx((0.9119, 1.0), abs=1e-4))  # R: binom.test(40, 40)
    assert "at least 19 more items" in v.sentence
