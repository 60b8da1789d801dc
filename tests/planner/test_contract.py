"""Contract fields: material or context, equal or declared, and what an unstated field means."""

from __future__ import annotations

import pytest

from planner.contract import FIELD, FIELDS, Contract, moved_fields, parity

FULL = {f.name: "x" for f in FIELDS}


def contract(**changes: str) -> Contract:
    return Contract(candidate=FULL | changes)


def test_equal_contracts_are_comparable():
    assert parity(contract(), contract(engine="y", engine_version="2", driver="9")).state == "comparable"


def test_an_undeclared_difference_is_refused_and_named():
    result = parity(contract(), contract(gpu="y"))
    assert result.state == "refused"
    assert [str(d) for d in result.differences] == ["gpu: x -> y"]


def test_a_declared_difference_counts_only_for_fields_that_may_be_declared():
    declared = contract(quantization="y").model_copy(update={"declared_differences": ("quantization", "gpu")})
    assert parity(contract(), declared).state == "comparable with a declared difference"
    hidden = contract(gpu="y").model_copy(update={"declared_differences": ("gpu",)})
    assert parity(contract(), hidden).state == "refused"


def test_a_difference_to_a_side_that_states_nothing_cannot_be_declared():
    silent = contract(quantization="").model_copy(update={"declared_differences": ("quantization",)})
    assert parity(contract(), silent).state == "refused"


def test_two_unstated_fields_are_not_equal():
    a = Contract(candidate={k: v for k, v in FULL.items() if k != "model_revision"})
    assert [d.field for d in parity(a, a).differences] == ["model_revision"]


def test_context_fields_are_not_material():
    assert contract().material() == contract(driver="y", os="z").material()
    assert contract().material() != contract(gpu="y").material()
    assert {n for n, f in FIELD.items() if not f.material} == {
        "image",
        "driver",
        "runtime",
        "os",
        "cpu",
        "memory_limit",
    }


def test_what_moved_between_decision_and_today():
    moved = moved_fields(contract(engine_version="0.33.0"), contract(engine_version="1.0.0"), "minor")
    assert [str(m) for m in moved] == ["engine_version: 0.33.0 -> 1.0.0"]


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ("0.33.0", "v0.33.0"),
        ("0.25.1", "0.25.1+cpu"),
        ("11434", "b11434-a1b2c3d"),
        ("b11434", "11434 (a1b2c3d)"),
        ("b11434", "version: 11434 (a1b2c3d)"),
    ],
)
def test_decoration_makes_no_other_version(asked, reported):
    assert moved_fields(contract(engine_version=asked), contract(engine_version=reported), "exact") == ()


def test_a_release_candidate_is_another_version_only_when_the_version_must_be_exact():
    final = contract(engine_version="0.33.0")
    for candidate in (contract(engine_version="0.33.0rc1"), contract(engine_version="v0.33.0-rc1")):
        assert moved_fields(candidate, final, "patch") == ()
        assert len(moved_fields(candidate, final, "exact")) == 1


def test_two_texts_that_are_no_versions_are_compared_as_they_stand():
    assert moved_fields(contract(engine_version="nightly"), contract(engine_version="nightly"), "exact") == ()
    assert len(moved_fields(contract(engine_version="nightly"), contract(engine_version="main"), "minor")) == 1


def test_unknown_is_not_stated():
    assert moved_fields(contract(engine_version="0.33.0"), contract(engine_version="Unknown"), "exact") == ()
    assert [d.field for d in parity(contract(gpu="unknown"), contract(gpu="unknown")).differences] == ["gpu"]


def test_contracts_that_differ_in_what_was_declared_or_in_context_are_stored_apart():
    declared = contract().model_copy(update={"declared_differences": ("quantization",)})
    assert contract().material() == declared.material()
    assert len({c.full_hash() for c in (contract(), declared, contract(driver="y"))}) == 3


def test_two_fixed_output_lengths_are_two_loads_whatever_is_declared():
    def between(a: str, b: str) -> str:
        left = contract(output_length=a).model_copy(update={"declared_differences": ("output_length",)})
        return parity(left, contract(output_length=b)).state

    assert between("fixed", "free") == "comparable with a declared difference"
    assert between("fixed, 32 tokens", "fixed, 64 tokens") == "refused"
