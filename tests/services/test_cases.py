"""Cases and their requirements: versions, contradictions of people, names that are checked before anything is kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planner.errors import ConflictError, FliplineError, InputError
from planner.loads import LoadPoint
from planner.predictions import bound_tok_s, predict
from planner.requirements import Hardware, ModelPlan
from services.cases import (
    begin_case,
    favourite_sizing,
    load_sizing,
    requirements_from,
    save_requirements,
    sizings,
)
from services.launches import start
from services.verdicts import case_state
from tests.services.made import CASE


@pytest.fixture
def state(shipped):
    return case_state(shipped, CASE)


def test_a_value_out_of_range_is_named_with_its_field(state):
    with pytest.raises(InputError, match=r"requirements: peak_users_min: .*greater than or equal to 1 \(given: 0\)"):
        requirements_from(state.requirements.model_dump() | {"peak_users_min": 0})


def test_requirements_that_cannot_be_are_one_sentence(state):
    with pytest.raises(InputError, match="the upper end 10 is below the lower end 20"):
        requirements_from(state.requirements.model_dump() | {"peak_users_max": 10})


def test_every_save_is_a_version_and_the_same_twice_is_none(shipped, state):
    r = requirements_from(state.requirements.model_dump() | {"peak_users_max": 40})
    second = save_requirements(shipped, state.case.id, r, "Kim", 1)
    assert (second.n, second.author) == (2, "Kim")
    assert save_requirements(shipped, state.case.id, r, "Kim", 2).n == 2
    assert case_state(shipped, CASE).plan_is_stale


def test_who_saves_second_is_told(shipped, state):
    dump = state.requirements.model_dump()
    save_requirements(shipped, state.case.id, requirements_from(dump | {"ttft_s": 3}), "Kim", 1)
    with pytest.raises(ConflictError):
        save_requirements(shipped, state.case.id, requirements_from(dump | {"ttft_s": 4}), "Lee", 1)
    assert case_state(shipped, CASE).requirements.ttft_s == 3


def test_an_unknown_gpu_is_caught_before_anything_is_stored(shipped, state):
    dump = state.requirements.model_dump()
    wrong = requirements_from(dump | {"hardware": [dump["hardware"][0] | {"gpu": "nvidia-gb10-dgx-sprak"}]})
    with pytest.raises(FliplineError, match="Did you mean"):
        save_requirements(shipped, state.case.id, wrong, "Kim", 1)
    with pytest.raises(FliplineError, match="Did you mean"):
        begin_case(shipped, "Another", wrong, "Kim")
    assert [c.slug for c in shipped.store.cases.all()] == [CASE]
    assert len(shipped.store.cases.requirements(state.case.id)) == 1


def test_a_case_needs_a_title_and_a_name_of_its_own(shipped, state):
    with pytest.raises(InputError, match="needs a title"):
        begin_case(shipped, " ", state.requirements, "Kim")
    assert begin_case(shipped, "Support: assistant!", state.requirements, "Kim").slug == "support-assistant"
    with pytest.raises(ConflictError):
        begin_case(shipped, "support assistant", state.requirements, "Lee")
    # a title without Latin letters is a title too
    assert begin_case(shipped, "推論サーバー", state.requirements, "Kim").title == "推論サーバー"


def test_the_favourite_is_sized_first(shipped, state):
    sized = sizings(shipped, state.requirements)
    assert [s.plan.id for s in sized] == ["B", "A", "C"]
    assert sized[0].sizing == favourite_sizing(shipped, state.requirements)


@pytest.mark.parametrize(("count", "devices", "fits"), [(1, 1, False), (2, 2, True), (3, 2, True), (8, 4, True)])
def test_a_unit_is_the_fewest_devices_of_the_machine_that_hold_the_peak(shipped, state, count, devices, fits):
    """70.6 billion parameters of two bytes are 141 GB: one H100 of 76.5 GB for the engine does not hold them, two do.

    A request of 4,096 tokens takes 80 x 2 x 8 x 128 x 2 B x 4,096 = 1.34 GB: two devices leave 12 GB less reserve, no
    room for 50 of them; four leave 165 GB less reserve.
    """
    r = state.requirements.model_copy(update={
        "model_plans": (ModelPlan(id="X", label="X", model="meta-llama/Llama-3.3-70B-Instruct", quantization="bf16"),),
        "hardware": (Hardware(gpu="nvidia-h100-80gb-sxm", count=count, in_house=True),),
    })  # fmt: skip
    found = favourite_sizing(shipped, r)
    assert (found.settings.tensor_parallel, found.inputs is not None) == (devices, fits)
    assert load_sizing(shipped, r, by_team=False).settings.tensor_parallel == devices
    if fits:
        made = start(shipped, r, "vllm", "kubernetes", "production")
        assert f"--tensor-parallel-size\n        - '{devices}'" in made.text
        assert f"nvidia.com/gpu: {devices}" in made.text


def test_what_is_expected_at_a_load_point_counts_requests_as_long_as_it_sends(shipped, state):
    """1,024 + 400 tokens a request where the longest context is 4,096: less is read in a step."""
    chat = state.requirements.model_copy(update={"input_tokens": 1024, "output_tokens": 400})
    point = LoadPoint(name="eight", in_flight=8, input_tokens=1024, output_tokens=400, requests=80)
    longest, sent = favourite_sizing(shipped, chat), load_sizing(shipped, chat, by_team=True)
    assert (longest.context_tokens, sent.context_tokens) == (4096, 1424)
    assert sent.inputs.kv_gb_per_request == pytest.approx(1424 * 98_304 / 1e9)
    assert predict(longest, "vllm", [point], datetime(2026, 11, 1, tzinfo=UTC)) == ()
    # the bound by hand: weights once and eight caches, at 273 GB/s
    read_gb = sent.inputs.always_read_gb + sent.inputs.experts_gb * (1 - (1 - 8 / 128) ** 8) + 8 * 0.139984896
    assert bound_tok_s(sent, [point]) == {"eight": pytest.approx(8 * 273 / read_gb, rel=1e-4)}
