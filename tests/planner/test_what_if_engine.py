"""When another engine would come first, and up to how many users the simplest one is enough."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.requirements import Requirements
from planner.scoring import Score, score
from planner.sensitivity import winner
from planner.weighting import shares
from planner.what_if_engine import CHANGES, Room, by_shared_prefix, by_users, enough, outcomes, simplest_that_suffices
from tests.planner.test_scoring import ENGINES, GB10, NORTIA


def scored(r: Requirements) -> Score:
    return score(r, ENGINES, compute_capability=GB10)


def test_the_rules_put_ollama_first_up_to_five_users_and_vllm_from_six() -> None:
    # Seed: real concurrency around 5 means a simpler set-up.
    strip = by_users(NORTIA, scored(NORTIA))
    assert [(x.engine, x.low, x.high) for x in strip.reigns] == [("ollama", 1, 5), ("vllm", 6, 100)]
    assert strip.stated == (20, 50)
    assert strip.of("sglang") == ()


def test_sglang_comes_first_from_a_shared_prefix_of_three_tenths() -> None:
    strip = by_shared_prefix(NORTIA, scored(NORTIA))
    assert [(x.engine, x.low, x.high) for x in strip.reigns] == [("vllm", 0, 0.29), ("sglang", 0.3, 1)]
    assert strip.stated is None  # Nortia does not know it yet
    known = NORTIA.model_copy(update={"shared_prefix_share": 0.5})
    assert by_shared_prefix(known, scored(known)).stated == (0.5, 0.5)


@settings(max_examples=15)
@given(st.integers(1, 120), st.none() | st.floats(0, 1), st.booleans(), st.sampled_from(["low", "high"]))
def test_a_strip_has_no_gap_and_names_the_winner_everywhere(
    users: int, share: float | None, metrics: bool, effort: str
) -> None:
    r = NORTIA.model_copy(update={
        "peak_users_min": users, "peak_users_max": users, "shared_prefix_share": share, "metrics_needed": metrics,
        "upgrade_effort": effort,
    })  # fmt: skip
    found = scored(r)
    ratings = {c.engine: {p.criterion: p.rating for p in c.contributions} for c in found.ranking}
    strip = by_users(r, found)
    assert strip.reigns[0].low == 1
    assert all(b.low == a.high + 1 and a.engine != b.engine for a, b in pairwise(strip.reigns))
    for reign in strip.reigns:
        for n in (int(reign.low), int(reign.high)):
            at = r.model_copy(update={"peak_users_min": n, "peak_users_max": n})
            assert winner(ratings, shares(at)) == reign.engine
    assert next(x.engine for x in strip.reigns if x.low <= users <= x.high) == found.favourite


def test_weights_by_hand_hold_along_the_strip() -> None:
    adjust = {"ease_of_install": 100.0}
    found = score(NORTIA, ENGINES, compute_capability=GB10, adjust=adjust)
    assert [x.engine for x in by_users(NORTIA, found, adjust).reigns] == ["ollama"]


def test_no_engine_that_passes_makes_an_empty_strip() -> None:
    nobody = score(NORTIA, ENGINES, compute_capability=GB10, licences=())
    assert by_users(NORTIA, nobody).reigns == ()


def test_changes_of_one_requirement_name_who_comes_first_then() -> None:
    found = {o.words: o for o in outcomes(NORTIA, ENGINES, scored(NORTIA), GB10)}
    assert found["the host runs Windows"].first == "ollama"
    assert found["most of the prompt is shared"].first == "sglang"
    assert found["a handful of users is the peak"].first == "ollama"
    assert not found["one part-time operator is all"].changes_winner
    assert "metrics from the server are needed" not in found  # Nortia needs them already
    assert len(found) < len(CHANGES)


ROOM = {"ollama": Room(200, 4), "vllm": Room(216, 4), "sglang": Room(216, 4), "tensorrt_llm": Room(216, 4)}


@pytest.mark.parametrize(("peak", "suffices"), [(3, True), (4, True), (5, False), (50, False)])
def test_the_simplest_engine_is_enough_up_to_what_its_form_keeps(peak: int, suffices: bool) -> None:
    r = NORTIA.model_copy(update={"peak_users_min": 1, "peak_users_max": peak})
    found = enough(r, scored(r), ROOM)
    assert found[0].engine == "ollama"  # rated 3 for ease, the others less
    assert found[0].up_to == 4
    simplest = simplest_that_suffices(found)
    assert (simplest is not None) == suffices
    assert simplest is None or simplest.engine == "ollama"


def test_the_sentence_says_the_boundary_its_reason_and_the_gap() -> None:
    few = NORTIA.model_copy(update={"peak_users_min": 1, "peak_users_max": 3})
    ollama = enough(few, scored(few), ROOM)[0]
    assert ollama.sentence == (
        "Ollama suffices for a peak of 3: it is enough up to 4 users at once, as far as the planning value keeps "
        "20 tok/s each on one unit (q8_0 gguf)."
    )
    assert ollama.gaps[0].startswith("metrics: ")  # it has none, and they are asked for
    many = enough(NORTIA, scored(NORTIA), {"ollama": Room(2, 9)})[0]
    assert many.sentence.startswith("Ollama would be enough up to 2 users at once, as far as its KV memory lasts")
    assert many.sentence.endswith("the peak is 50.")
    never = enough(NORTIA, scored(NORTIA), {"ollama": Room(9, 0)})[0]
    assert never.sentence.endswith("by the planning value no user gets 20 tok/s (q8_0 gguf).")
    # 31.2 GB of weights on a card of 24 GB: memory is the reason, whatever the speed
    unfit = enough(NORTIA, scored(NORTIA), {"ollama": Room(0, 0)})[0]
    assert unfit.sentence == (
        "Ollama is never enough on one unit: not one request of that length fits its memory (q8_0 gguf)."
    )


def test_a_stopped_engine_is_never_enough() -> None:
    assert "tgi" not in {e.engine for e in enough(NORTIA, scored(NORTIA), {**ROOM, "tgi": Room(100, 100)})}
