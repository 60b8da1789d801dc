"""Whose a file is, whether somebody edited it, and which name a new one gets."""

from __future__ import annotations

import pytest

from decisions.exports import Export, file_name, file_names, read_export
from decisions.markdown import to_markdown
from decisions.view import current
from tests.decisions.made import accepted_edits

ID = "01J0000000000000000NORTIA1"
ADR = current(accepted_edits())  # number 7
TEXT = to_markdown(ADR)


def test_what_we_wrote_is_known_as_ours_and_untouched():
    assert read_export(TEXT) == Export(ID, True)


@pytest.mark.parametrize(
    "edited",
    [TEXT.replace("Tanaka", "Suzuki"), TEXT.replace("# vLLM", "#  vLLM"), TEXT.replace("number: 7", "number: 8")],
    ids=["a name", "a space", "the part for machines"],
)
def test_any_edit_is_seen(edited):
    assert edited != TEXT
    assert read_export(edited) == Export(ID, False)


def test_a_text_without_its_hash_counts_as_edited():
    assert read_export("".join(x for x in TEXT.splitlines(True) if not x.startswith("text_sha256:"))) == Export(
        ID, False
    )


@pytest.mark.parametrize("text", ["", "# Notes\n", "```yaml\n- a\n```\n", "```yaml\n{\n```\n", "flipline: 1\n"])
def test_what_others_wrote_is_not_ours(text):
    assert read_export(text) is None


@pytest.mark.parametrize(
    ("present", "name"),
    [
        ({}, "0007-vllm-serves-the-internal-assistant.md"),
        ({"0007-other.md": None}, "0010-vllm-serves-the-internal-assistant.md"),  # 9 is another ADR's number
        ({"0007-other.md": Export("01JANOTHER", True)}, "0010-vllm-serves-the-internal-assistant.md"),
        ({"0012-other.md": None}, "0007-vllm-serves-the-internal-assistant.md"),
        ({"0007-other.md": None, "0012-moved.md": Export(ID, True)}, "0012-moved.md"),
        ({"7_other.md": None}, "0010-vllm-serves-the-internal-assistant.md"),
        ({"0007-other.md": None, "10000-other.md": None}, "10001-vllm-serves-the-internal-assistant.md"),
        ({"2026-11-30-minutes.md": None, "20261130-minutes.md": None, "0007-other.md": None},
         "0010-vllm-serves-the-internal-assistant.md"),  # days are no numbers
        ({"notes.md": None}, "0007-vllm-serves-the-internal-assistant.md"),
    ],
)  # fmt: skip
def test_names_in_a_folder_of_others(present, name):
    assert file_names([ADR], present, [7, 9]) == {ID: name}


def test_the_name_of_a_draft_has_no_number():
    assert file_name(ADR.model_copy(update={"number": None})) == "vllm-serves-the-internal-assistant.md"
