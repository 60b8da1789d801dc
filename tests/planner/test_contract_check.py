"""How complete a contract is, where it contradicts the load points, and how it is edited."""

from __future__ import annotations

import pytest

from planner.contract_check import completeness, contradictions, refuse_contradictions, undeclared_differences
from planner.contract_edit import Edit, edited_contract, edited_settings, edits_of
from planner.errors import InputError, UnknownName
from planner.launch_settings import LaunchSettings
from planner.poc import Stage
from planner.server_schema import RequestFields
from tests.planner.made import ASKED, SHARED
from tests.planner.planned import candidate, closed, plan

HOLDS_LENGTH = RequestFields(max_tokens="max_tokens", ignore_eos=True, min_tokens=True, cache_salt=True,
                             unknown_fields="ignored")  # fmt: skip
ENDS_FREELY = HOLDS_LENGTH.model_copy(update={"ignore_eos": False, "min_tokens": False})


def with_contract(**fields: str):
    """The plan of planned.py, whose ladder goes to 16 in flight with 50 + 100 tokens a request."""
    return plan(candidates=(candidate("fast", "favourite", contract=fields), candidate("slow", "baseline")))


def test_complete_is_what_states_every_material_field_that_a_person_can_state():
    whole = dict(ASKED) | {"gpu_memory_share": "0.9", "prefill_chunk": "2048"}
    both = plan(shared_contract=SHARED, candidates=(candidate("fast", "favourite", contract=whole),
                candidate("slow", "baseline", contract={"engine": "vllm", "engine_version": "unknown"})))  # fmt: skip
    fast, slow = completeness(both)
    assert (fast.share, fast.missing) == (1.0, ())
    # the shared part and the engine; a version called unknown is not stated
    assert slow.stated == (*SHARED, "engine")
    assert {"engine_version", "max_model_len", "quantization"} <= set(slow.missing)
    assert "image" not in slow.missing  # context only


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_model_len": "149"}, r"max_model_len: 149 tokens are fewer than the 50 \+ 100 .* at single"),
        ({"max_num_seqs": "8"}, "max_num_seqs: 8 at once are fewer than the 16 in flight at parallel-16"),
        ({"output_length": "fixed at 128"}, "output_length: 128 tokens are not the 100 that single asks for"),
    ],
)
def test_a_value_that_contradicts_a_load_point_is_refused_with_its_name(fields, sentence):
    with pytest.raises(InputError, match=f"plan: candidate fast, {sentence}"):
        refuse_contradictions(with_contract(**fields), where="plan")


@pytest.mark.parametrize(
    "fields",
    [{}, {"max_model_len": "150"}, {"max_num_seqs": "16"}, {"output_length": "fixed"}, {"max_model_len": "as it is"},
     {"output_length": "fixed at 100"}, {"output_length": "free"}],
)  # fmt: skip
def test_what_fits_its_load_points_is_let_through(fields):
    assert contradictions(with_contract(**fields), {"fast": HOLDS_LENGTH}) == ()


def test_overload_may_queue():
    """Only where a rule looks for the knee must nothing wait unseen."""
    p = plan(load_points=(*plan().load_points[:-1], closed(64, "spare", requests=64)))
    limited = p.model_copy(update={"candidates": (candidate("fast", "favourite", contract={"max_num_seqs": "16"}),)})
    assert contradictions(limited) == ()


def test_long_prompts_beside_the_victims_count_too():
    point = closed(4, "beside", shape="interference", aggressors=1, aggressor_at_s=1, aggressor_input_tokens=8000)
    p = with_contract(max_model_len="4096")
    p = p.model_copy(update={"load_points": (point,), "stages": (Stage(name="A", points=("beside",)),)})
    (found,) = contradictions(p)
    assert (found.point, found.field) == ("beside", "max_model_len")
    assert "8,000 + 16 of the long prompts" in found.sentence


def test_an_engine_that_cannot_hold_a_length_cannot_promise_it():
    found = contradictions(with_contract(output_length="fixed"), {"fast": ENDS_FREELY})
    assert [(f.field, f.point) for f in found] == [("output_length", "single")]
    assert "neither ignore_eos nor min_tokens" in found[0].sentence


def test_one_way_to_hold_a_length_is_enough():
    for way in ("ignore_eos", "min_tokens"):
        one = ENDS_FREELY.model_copy(update={way: True})
        assert contradictions(with_contract(output_length="fixed"), {"fast": one}) == ()


def test_a_difference_that_nobody_declared_is_named():
    two = (candidate("fast", "favourite", contract={"quantization": "fp8"}),
           candidate("slow", "baseline", contract={"quantization": "q8_0"}))  # fmt: skip
    assert undeclared_differences(plan(candidates=two)) == ("quantization",)
    assert undeclared_differences(plan(candidates=two, declared_differences=("quantization",))) == ()


SETTINGS = LaunchSettings(model="m", max_model_len=4096, max_num_seqs=16)


def test_an_edit_changes_the_contract_and_the_launch_alike():
    edits = (Edit("fast", "max_model_len", "8192"), Edit("fast", "prefix_caching", "off"), Edit("slow", "image", "x"))
    assert edited_contract({"max_model_len": "4096"}, "fast", edits) == {"max_model_len": "8192",
                                                                        "prefix_caching": "off"}  # fmt: skip
    settings = edited_settings(SETTINGS, "fast", edits)
    assert (settings.max_model_len, settings.prefix_caching) == (8192, False)
    assert settings.why("max_model_len") == "stated in the contract by hand"
    assert edited_settings(SETTINGS, "slow", edits) == SETTINGS


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        (
            Edit("fast", "max_num_seqs", "many"),
            InputError,
            "candidate fast, max_num_seqs: 'many' is not a whole number",
        ),
        (Edit("fast", "max_num_seqs", "0"), InputError, "'0' is not a whole number of 1 or more"),
        (Edit("fast", "output_length", "short"), InputError, "'short' is none of fixed, free"),
        (Edit("fast", "quantisation", "fp8"), UnknownName, "Did you mean 'quantization'"),
        (Edit("fast", "engine", "sglang"), UnknownName, "contract field 'engine'"),
        (Edit("fast", "prefill_chunk", "8"), InputError, "'8' is not a whole number of 64 or more"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(edit, error, message):
    with pytest.raises(error, match=message):
        edited_settings(SETTINGS, "fast", (edit,))
        edited_contract({}, "fast", (edit,))


def test_what_was_stated_by_hand_is_read_back_from_the_plan():
    own = candidate("fast", "favourite", contract={"image": "x", "quantization": "fp8"}, by_hand=("image",))
    assert edits_of(plan(candidates=(own,), hypotheses=())) == (Edit("fast", "image", "x"),)
