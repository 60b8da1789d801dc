"""What differs between two values: named by id, in words, and word by word."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.record import Option
from planner.condition_line import parse_condition
from planner.differences import Difference, differences, field_in_words, folded, in_text, pieces
from planner.requirements import Requirements
from tests.decisions.made import text as nortia_text
from tests.planner.test_requirements import nortia

OPTIONS = nortia_text().options
BOTH = nortia_text()


def changed(**fields: object) -> tuple[Difference, ...]:
    return differences(BOTH, BOTH.model_copy(update=fields))


def test_the_same_value_differs_in_nothing() -> None:
    assert differences(BOTH, nortia_text()) == ()


def test_a_number_reads_with_its_unit_and_both_values() -> None:
    r: Requirements = nortia()
    assert differences(r, r.model_copy(update={"ttft_s": 3.0, "peak_users_max": 80})) == (
        Difference(("peak users, to",), "50", "80"),
        Difference(("first token within (s)",), "2", "3"),
    )


def test_an_option_that_is_taken_out_is_one_difference_and_no_other_one_moves() -> None:
    (gone,) = changed(options=OPTIONS[1:])
    assert gone.path == ("options", "vLLM") and gone.after is None
    assert gone.before is not None and "batches continuously" in gone.before


def test_an_option_in_an_empty_list_is_one_difference_as_well() -> None:
    (new,) = differences(BOTH.model_copy(update={"options": ()}), BOTH.model_copy(update={"options": OPTIONS[:1]}))
    assert new.path == ("options", "vLLM") and new.before is None


def test_another_order_is_said_as_such() -> None:
    assert changed(options=OPTIONS[::-1]) == (Difference(("options", "order"), "vLLM, Ollama", "Ollama, vLLM"),)


def test_a_reason_for_one_option_is_found_inside_it() -> None:
    told = Option(title="Ollama", candidate="ollama-b", pros=("known to all", "small"), cons=("few slots",))
    (found,) = changed(options=(OPTIONS[0], told))
    assert (found.where, found.before, found.after) == ("options › Ollama › for", "known to all", "known to all\nsmall")


def test_a_condition_is_one_line_and_not_eleven_fields() -> None:
    first = BOTH.conditions[1]
    assert first.condition is not None and first.id == "few-users"
    looser = first.model_copy(update={"condition": parse_condition("peak_in_flight max <= 8 over 28 days")})
    (found,) = changed(conditions=(BOTH.conditions[0], looser, *BOTH.conditions[2:]))
    assert found == Difference(
        ("conditions", "few-users", "condition"),
        "peak_in_flight max <= 5 over 28 days", "peak_in_flight max <= 8 over 28 days",
    )  # fmt: skip


def test_what_was_not_stated_is_nothing_and_not_an_empty_text() -> None:
    (found,) = changed(review_on=None)
    assert (found.before, found.after) == ("2027-03-01", None)


def test_fields_of_the_outermost_value_can_be_left_aside() -> None:
    assert differences(BOTH, BOTH.model_copy(update={"title": "other"}), without=("title",)) == ()


def test_field_names_carry_their_unit_for_people() -> None:
    assert [field_in_words(n) for n in ("budget_min", "startup_s", "declared_differences")] == [
        "budget (min)", "startup (s)", "declared differences",
    ]  # fmt: skip


def test_words_are_told_apart_in_english_and_in_japanese() -> None:
    assert [(p.side, p.text) for p in pieces("vLLM serves all", "vLLM serves many")] == [
        ("same", "vLLM serves "), ("out", "all"), ("in", "many"),
    ]  # fmt: skip
    assert [(p.side, p.text) for p in pieces("vLLMを採用する", "vLLMを採用しない")] == [
        ("same", "vLLMを採用"), ("out", "する"), ("in", "しない"),
    ]  # fmt: skip


def test_long_stretches_that_did_not_change_are_cut_beside_the_change() -> None:
    long = "word " * 200
    shown = folded(pieces(f"{long}old {long}", f"{long}new {long}"), keep=20)
    assert [p.side for p in shown] == ["same", "out", "in", "same"]
    assert all(len(p.text) < 60 for p in shown) and shown[0].text.startswith(" … ") and shown[3].text.endswith(" … ")


def test_a_text_of_a_hundred_thousand_words_is_compared_by_line() -> None:
    lines = [f"line {i} of a very long file\n" for i in range(5000)]
    other = [*lines[:2500], "changed\n", *lines[2501:]]
    found = pieces("".join(lines), "".join(other))
    assert [p.text for p in found if p.side != "same"] == ["line 2500 of a very long file\n", "changed\n"]


@settings(max_examples=60)
@given(st.text("ab 日本\n.", max_size=40), st.text("ab 日本\n.", max_size=40))
def test_pieces_give_back_both_texts(before: str, after: str) -> None:
    found = pieces(before, after)
    assert "".join(p.text for p in found if p.side != "in") == before
    assert "".join(p.text for p in found if p.side != "out") == after


def test_nested_values_read_as_lines() -> None:
    assert in_text(OPTIONS[1]) == "title: Ollama\ncandidate: ollama-b\nfor: known to all\nagainst: few slots"
