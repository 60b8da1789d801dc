"""Which claims of speed cross precisions, and what then stands beside them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind, State
from planner.contract import Contract, Moved
from planner.evaluate import combine, evaluate
from planner.precision_claims import beside, warning_for, warnings_among
from tests.planner.made import ASKED, CONTRACT, NOW, P16, SEEN, SHARED, context, speed
from tests.planner.test_paired import GGUF, SET, rate, sides

WIDER = CONTRACT.model_copy(update={"candidate": ASKED | {"quantization": "bf16"}})
CONTRACTS = {c.full_hash(): c for c in (CONTRACT, GGUF, WIDER)}
CROSSED = (Moved("weight_format", "safetensors", "gguf"), Moved("quantization", "fp8", "q8_0"))
MISSING = (
    "Warning: vllm and ollama differ in quantization (fp8 -> q8_0), and no quality result stands beside their speeds"
)


def answered(only_right: int = 0, **more: object) -> list[Evidence]:
    left, right = sides(100, 0, only_right)
    return [rate("vllm", left).model_copy(update=more), rate("ollama", right, GGUF)]


def test_the_same_precision_in_another_file_format_needs_nothing():
    assert beside("vllm", "ollama", CROSSED[:1], (), CONTRACTS) is None
    assert warning_for("vllm", "ollama", (), (), CONTRACTS) == ""


def test_a_crossing_without_a_quality_result_warns():
    assert warning_for("vllm", "ollama", CROSSED, (), CONTRACTS) == f"{MISSING}."


def test_a_quality_result_takes_the_warning_away_and_is_said():
    found = beside("vllm", "ollama", CROSSED, answered(), CONTRACTS)
    assert not found.warns
    assert found.sentence.startswith("Quality of vllm against ollama: no loss shown (it could be up to 3.62 %)")


def test_a_shown_loss_warns_with_its_size():
    assert "Warning: quality of vllm against ollama: loss shown (10 %" in warning_for(
        "vllm", "ollama", CROSSED, answered(only_right=10), CONTRACTS
    )


@pytest.mark.parametrize(
    "more",
    [
        {"kind": Kind.SIMULATED},
        {"spoiled_by": ("clock-step: 9 ms",)},
        {"items": ()},
        {"load_hash": "other"},
        {"contract": WIDER.full_hash()},
    ],
)
def test_what_is_no_result_in_this_precision_does_not_count(more):
    assert warning_for("vllm", "ollama", CROSSED, answered(**more), CONTRACTS) == f"{MISSING}."


RATIO = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")


def speeds(theirs: Contract = GGUF) -> list[Evidence]:
    ours = [speed(400.0, s) for s in (1, 2, 3)]
    return ours + [speed(100.0, s, "ollama", contract=theirs.full_hash()) for s in (1, 2, 3)]


def test_a_verdict_carries_the_warning_in_its_sentence():
    c = context(contracts=CONTRACTS, points={"parallel-16": P16, "set": SET})
    bare = evaluate(RATIO, speeds(), c)
    assert (bare.state, bare.warning) == (State.HOLDS, f"{MISSING}.")
    assert bare.sentence.endswith(f"{MISSING}.")
    with_result = evaluate(RATIO, [*speeds(), *answered()], c)
    assert with_result.warning == ""
    assert "Quality of vllm against ollama: no loss shown" in with_result.sentence
    assert combine("all of", [with_result, bare]).warning == bare.warning


def test_speeds_side_by_side_are_warned_of_pair_by_pair():
    same = Contract(shared=SHARED, candidate=ASKED | {"engine": "ollama"}, observed=SEEN)
    known = CONTRACTS | {same.full_hash(): same}
    assert warnings_among(speeds(), (), known) == (
        "Warning: ollama and vllm differ in quantization (q8_0 -> fp8), and no quality result stands beside their "
        "speeds.",
    )
    assert warnings_among(speeds(), answered(), known) == ()
    assert warnings_among(speeds(same), (), known) == ()


def test_the_newest_speed_of_a_candidate_says_its_precision():
    same = Contract(shared=SHARED, candidate=ASKED | {"engine": "ollama"}, observed=SEEN)
    earlier = speed(300.0, 4, contract=WIDER.full_hash(), at=NOW - timedelta(days=1))
    known = CONTRACTS | {same.full_hash(): same}
    for order in ([earlier, *speeds(same)], [*speeds(same), earlier]):
        assert warnings_among(order, (), known) == ()


def test_a_loss_on_one_of_several_sets_warns():
    second = [e.model_copy(update={"load_hash": "second", "id": f"{e.id}-2"}) for e in answered()]
    found = beside("vllm", "ollama", CROSSED, [*answered(only_right=10), *second], CONTRACTS)
    assert found.warns
    assert "loss shown (10 %" in found.sentence and "no loss shown" in found.sentence


def test_a_speed_that_states_no_contract_stands_under_the_planned_one():
    typed = [speed(v, 1, c, kind=Kind.ENTERED, contract=None) for c, v in (("vllm", 400.0), ("ollama", 100.0))]
    planned = {"vllm": CONTRACT, "ollama": GGUF}
    assert warnings_among(typed, (), CONTRACTS, planned) == warnings_among(speeds(), (), CONTRACTS)
    assert warnings_among(typed, answered(), CONTRACTS, planned) == ()
    assert warnings_among(typed, (), CONTRACTS) == ()  # nobody knows what they were taken in
