"""The score of the shipped case, what would change it, and what it asks of the plan."""

from __future__ import annotations

import pytest

from planner.errors import UnknownName
from planner.what_if_engine import simplest_that_suffices
from services.scores import case_proposals, case_score, case_what_if, on_candidate
from services.verdicts import case_state
from tests.services.made import CASE

GB10, A100 = "nvidia-gb10-dgx-spark", "nvidia-a100-80gb-sxm"


def test_nortia_keeps_the_seeds_outcome(shipped):
    r = case_state(shipped, CASE).requirements
    roles = {c.engine: c.advice.role for c in case_score(shipped, r).candidates}
    assert roles == {
        "vllm": "favourite", "ollama": "baseline", "sglang": "re-examine", "tgi": "stopped", "tensorrt_llm": "later",
    }  # fmt: skip


def test_when_would_ollama_be_enough(shipped):
    r = case_state(shipped, CASE).requirements
    found = case_what_if(shipped, r, case_score(shipped, r))
    # By the rules up to 5. By speed up to 4: llama.cpp, which Ollama runs, gave nearly this model on this machine 21.4
    # tok/s for each of 4 users and 15 for each of 8 (ggml-org/llama.cpp benches/dgx-spark.md@4c7e9893, 4k prompts).
    assert [(x.low, x.high) for x in found.users.of("ollama")] == [(1, 5)]
    assert found.enough[0].engine == "ollama"
    assert 4 <= found.enough[0].up_to < 8
    assert simplest_that_suffices(found.enough) is None
    few = r.model_copy(update={"peak_users_min": 1, "peak_users_max": 3})
    suffices = simplest_that_suffices(case_what_if(shipped, few, case_score(shipped, few)).enough)
    assert suffices is not None
    assert suffices.sentence.startswith("Ollama suffices for a peak of 3")


def test_a_machine_of_unknown_speed_says_nothing_about_enough(shipped):
    r = case_state(shipped, CASE).requirements
    unknown = r.hardware[0].model_copy(update={"gpu": "nvidia-t4"})  # 30B does not fit on 16 GB
    small = r.model_copy(update={"hardware": (unknown,)})
    assert all(e.up_to == 0 for e in case_what_if(shipped, small, case_score(shipped, small)).enough)


def test_every_machine_of_the_catalogue_can_be_scored(shipped):
    r = case_state(shipped, CASE).requirements
    for gpu in shipped.catalog.gpus:
        other = r.model_copy(update={"hardware": (r.hardware[0].model_copy(update={"gpu": gpu}),)})
        assert len(case_score(shipped, other).candidates) == len(shipped.catalog.engines)


def test_the_proposals_start_with_what_no_plan_covers_yet(shipped):
    state = case_state(shipped, CASE)
    asked = case_proposals(state.requirements, case_score(shipped, state.requirements))
    covered = {p.id: p.covered_by(state.plan) for p in asked}
    assert covered["P-vllm-gpu"] == "H1"
    assert covered["P-sglang-prefix"] is None


def test_a_case_is_scored_on_any_of_its_model_plans_and_machines(shipped):
    """SGLang 0.5 and TensorRT-LLM compute FP8 from compute capability 8.9 on; an A100 has 8.0, where bf16 runs."""
    r = case_state(shipped, CASE).requirements
    two = r.model_copy(update={"hardware": (*r.hardware, r.hardware[0].model_copy(update={"gpu": A100}))})

    def stopped(*asked):
        found = case_score(shipped, on_candidate(two, *asked))
        return found.plan, found.gpu, {c.engine for c in found.candidates if not c.ranked}

    assert stopped() == stopped("B", GB10) == ("B", GB10, {"tgi"})
    assert stopped(None, A100) == ("B", A100, {"tgi", "sglang", "tensorrt_llm"})
    assert stopped("A", A100) == ("A", A100, {"tgi"})
    with pytest.raises(UnknownName, match=r"unknown model plan 'Z'. Known: A, B, C"):
        on_candidate(two, "Z")
    with pytest.raises(UnknownName, match="unknown machine 'nvidia-t4'"):
        on_candidate(two, gpu="nvidia-t4")
