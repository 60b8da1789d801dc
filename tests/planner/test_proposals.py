"""What a score asks a measurement: each proposal names why, and a plan takes it in whole."""

from __future__ import annotations

import pytest

from planner.condition_line import format_condition
from planner.engine_schema import Engine
from planner.planning import candidate_of
from planner.proposals import SHARED_POINT, Proposal, propose
from planner.requirements import Requirements
from planner.rereads import rereads
from planner.scoring import score
from tests.planner.test_scoring import ENGINES, GB10, NORTIA, without_rating


def proposals(r: Requirements = NORTIA, engines: dict[str, Engine] = ENGINES) -> dict[str, Proposal]:
    return {p.id: p for p in propose(r, score(r, engines, compute_capability=GB10))}


def lines(p: Proposal) -> list[str]:
    return [format_condition(c) for c in p.hypothesis.conditions]


def test_an_unknown_gate_asks_whether_it_starts() -> None:
    p = proposals()["P-sglang-gpu"]
    assert p.origin == "unknown gate"
    assert "not proven on 12.1" in p.why
    assert lines(p) == ["sglang: started is true", "sglang: completed_share is 1 at single"]


def test_a_gate_that_passed_or_failed_asks_nothing() -> None:
    asked = proposals()
    assert not any(p.origin == "unknown gate" and p.engines in (("ollama",), ("tgi",)) for p in asked.values())


def test_an_open_shared_prefix_asks_for_sglang_against_vllm() -> None:
    p = proposals()["P-sglang-prefix"]
    assert p.origin == "open requirement"
    assert "reaches 0.3" in p.why
    assert lines(p) == [f"sglang over vllm: output_tok_s >= 1.1 x at {SHARED_POINT} near 10 %"]
    assert p.points[0].shared_prefix == 0.6  # from which on the rules count the prefix fully
    assert p.points[0].in_flight == 16


def test_agents_with_a_shared_prefix_ask_for_sglangs_comparison_before_any_thin_rating() -> None:
    agents = NORTIA.model_copy(update={"shared_prefix_share": 0.9})
    asked = [p for p in proposals(agents).values() if p.origin != "unknown gate"]
    assert asked[0].origin == "close race"
    assert set(asked[0].engines) == {"sglang", "vllm"}
    assert asked[0].points[0].shared_prefix == 0.9


def test_a_rating_one_step_from_another_winner_is_put_to_the_test() -> None:
    p = proposals()["P-vllm-batching"]
    assert p.origin == "thin evidence"
    assert "one step would make SGLang win" in p.why
    assert lines(p) == ["vllm over sglang: output_tok_s >= 1 x at parallel-16"]


def test_a_rating_that_nobody_knows_is_put_to_the_test() -> None:
    p = proposals(engines=without_rating("sglang", "scheduling_policy"))["P-sglang-scheduling"]
    assert "nobody knows it" in p.why


@pytest.mark.parametrize(
    "change",
    [{}, {"shared_prefix_share": 0.9}, {"peak_users_min": 1, "peak_users_max": 3}, {"air_gap": True}],
)
def test_no_two_proposals_test_the_same_and_ids_are_their_own(change: dict[str, object]) -> None:
    r = NORTIA.model_copy(update=change)
    found = propose(r, score(r, ENGINES, compute_capability=GB10))
    assert len({p.id for p in found}) == len(found)
    assert len({p.hypothesis.conditions for p in found}) == len(found)


def test_an_air_gap_nobody_tried_is_asked_without_network() -> None:
    asked = proposals(NORTIA.model_copy(update={"air_gap": True}))
    assert asked["P-ollama-air"].hypothesis.method == "Without network, from files carried in."


def test_a_thin_rating_that_no_load_settles_is_read_again_and_proposes_nothing() -> None:
    engines = without_rating("sglang", "ease_of_install")
    scored = score(NORTIA, engines, compute_capability=GB10)
    (asked,) = rereads(scored)
    assert (asked.engine, asked.criterion) == ("sglang", "ease_of_install")
    assert asked.sentence.startswith(
        "Ease of installation of SGLang is not known, and no load tells it: read or try it"
    )
    assert not any("ease" in p.id for p in propose(NORTIA, scored))
    # Ours rests on documents there, which can prove what they say of themselves.
    assert rereads(score(NORTIA, ENGINES, compute_capability=GB10)) == ()


def test_hearsay_is_read_again_with_its_source() -> None:
    vllm = ENGINES["vllm"]
    heard = vllm.axes["release_cadence"].model_copy(update={"evidence_kind": "reported", "source": ("a thread",)})
    own = {**ENGINES, "vllm": vllm.model_copy(update={"axes": {**vllm.axes, "release_cadence": heard}})}
    (asked,) = rereads(score(NORTIA, own, compute_capability=GB10))
    assert "is rated 2 of 3 (reported, medium confidence)" in asked.sentence
    assert asked.sentence.endswith("(a thread).")


def test_candidates_in_a_plan_have_no_underscore() -> None:
    assert candidate_of("tensorrt_llm") == "tensorrt-llm"
