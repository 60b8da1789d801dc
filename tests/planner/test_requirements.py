"""Requirements: what is refused, what contradicts itself, and what follows as service levels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.condition_line import format_condition
from planner.requirements import PRESETS, Hardware, ModelPlan, Requirements, contradictions

B = ModelPlan(id="B", label="30B, 3B active", model="Qwen/Qwen3-30B-A3B", quantization="fp8", favourite=True)


def nortia(**changed: object) -> Requirements:
    fields: dict[str, object] = {
        "peak_users_min": 20, "peak_users_max": 50, "user_tok_s_promise": 20, "user_tok_s_target": 25, "ttft_s": 2,
        "completion_s": 5, "completion_answer_tokens": 75, "input_tokens": 3596, "output_tokens": 500,
        "context_tokens": 4096, "model_plans": (B,), "hardware": (Hardware(gpu="GX-10"),),
    }  # fmt: skip
    return Requirements.model_validate({**fields, **changed})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"peak_users_min": 60}, "upper end 50 is below the lower end 60"),
        ({"input_tokens": 4000}, "context of 4,096 tokens is smaller than input . output = 4,500"),
        ({"user_tok_s_target": 15}, "target speed is below the promised speed"),
        ({"model_plans": (B, B)}, "only one model plan can be the favourite"),
        ({"model_plans": (B, B.model_copy(update={"favourite": False}))}, "carry the same id"),
        ({"model_plans": ()}, "at least 1"),
        ({"ttft_s": -1}, "greater than 0"),
        ({"users": 50}, "not permitted"),
    ],
)
def test_impossible_requirements_are_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        nortia(**changed)


def test_500_tokens_in_5_seconds_contradict_25_tok_s() -> None:
    # 500 / (5 - 2) = 167 tok/s, 500 / 5 = 100; at 25 tok/s 20 s; 25 x 3 = 75 tokens fit.
    (found,) = contradictions(nortia(completion_answer_tokens=None))
    assert "167 tok/s after a first token at 2 s (100 without the wait)" in found.sentence
    assert "they take 20 s" in found.sentence
    assert "about 75 tokens" in found.way_out
    assert "completion_answer_tokens" in found.fields


def test_the_shipped_answer_length_of_75_tokens_is_consistent() -> None:
    assert contradictions(nortia()) == ()


def test_no_time_after_the_first_token() -> None:
    (found,) = contradictions(nortia(completion_s=2))
    assert found.fields == ("completion_s", "ttft_s")


def test_more_requests_than_a_user_can_read() -> None:
    # 500 tokens at 25 tok/s take 20 s: three a minute fill it, four do not fit.
    assert contradictions(nortia(requests_per_user_per_min=3)) == ()
    (found,) = contradictions(nortia(requests_per_user_per_min=4))
    assert "more than one user can read" in found.sentence


def test_service_levels_are_conditions() -> None:
    lines = [format_condition(level) for level in nortia().service_levels()]
    assert lines[:2] == ["user_tok_s p5 >= 20 tok/s", "ttft p95 <= 2 s"]


def test_the_favourite_is_marked_or_the_first() -> None:
    first, second = (B.model_copy(update={"id": i, "favourite": False}) for i in ("A", "C"))
    assert nortia(model_plans=(first, B)).favourite_plan == B
    assert nortia(model_plans=(first, second)).favourite_plan == first


def test_equal_requirements_have_the_same_hash_and_a_change_another() -> None:
    assert nortia().sha256() == nortia().sha256() != nortia(peak_users_max=51).sha256()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_are_consistent(name: str) -> None:
    asked = nortia(**PRESETS[name], completion_s=None, completion_answer_tokens=None)
    assert asked.input_tokens + asked.output_tokens <= asked.context_tokens
    assert contradictions(asked) == ()


@given(tokens=st.integers(1, 4000), seconds=st.floats(2.1, 200), target=st.floats(20, 200))
def test_a_completion_contradicts_exactly_when_it_needs_more_than_the_target(
    tokens: int, seconds: float, target: float
) -> None:
    asked = nortia(
        completion_s=seconds, completion_answer_tokens=tokens, user_tok_s_target=target, requests_per_user_per_min=0.1
    )
    needs_more = tokens / (seconds - 2) > target * 1.0001
    assert bool(contradictions(asked)) == needs_more
