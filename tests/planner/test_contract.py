"""Contract fields: material or context, equal or declared, and what an unstated field means."""

from __future__ import annotations

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


def test_two_unstated_fields_are_not_equal():
    a = Contract(candidate={k: v for k, v in FULL.items() if k != "model_revision"})
    assert [d.field for d in parity(a, a).differences] == ["model_revision"]


def test_context_fields_do_not_enter_the_material_hash():
    assert contract().material_hash() == contract(driver="y", os="z").material_hash()
    assert contract().material_hash() != contract(gpu="y").material_hash()
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
