"""Decision files that are made to hang, to fill the memory or to end in a traceback."""

from __future__ import annotations

import time

import pytest

from decisions.exports import read_export
from decisions.madr_reader import machine_block, read_madr
from decisions.madr_text import text_of
from planner.errors import InputError

# Ten lists of ten of the one before: 100 bytes a line, ten thousand million words in all.
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 11))
STATUS = "## Status\n\naccepted\n"


def read(text):
    return text_of(read_madr(text, "0001-x.md"), "0001-x.md")


@pytest.mark.parametrize(
    "front",
    [BOMB, "x: &x [*x]", "x: &x {a: *x}", f"x: {'[' * 20_000}", f"x: {'1' * 6_000}", "date: 2026-13-45"],
    ids=["bomb", "list in itself", "map in itself", "deep", "long number", "no day"],
)
def test_front_matter_that_unfolds_or_cannot_be_is_named_with_its_line(front):
    with pytest.raises(InputError, match=r"0001-x\.md, line \d+: front matter cannot be read"):
        read(f"---\n{front}\n---\n# T\n\n{STATUS}")


def test_toml_that_is_nested_without_end_is_named():
    with pytest.raises(InputError, match="front matter cannot be read"):
        read(f"+++\nx = {'[' * 20_000}\n+++\n# T\n\n{STATUS}")


@pytest.mark.parametrize("block", [f"id: x\n{BOMB}", "id: 2026-13-45", f"id: {'1' * 6_000}", f"id: {'[' * 20_000}"],
                         ids=["bomb", "no day", "long number", "deep"])  # fmt: skip
def test_a_block_that_cannot_be_read_is_not_ours(block):
    text = f"# T\n\n{STATUS}\n```yaml\nflipline: 1\n{block}\n```\n"
    assert machine_block(text) is None
    assert read_export(text) is None


def test_an_anchor_that_nothing_uses_is_let_pass():
    assert read(f"---\ntags: &mine [gpu, llm]\n---\n# T\n\n{STATUS}").text.tags == ("gpu", "llm")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"# {'[' * 200_000}\n\n{STATUS}", "title: string should have at most 300 characters"),
        (f"# T\n\n{STATUS}\n" + "#\n" * 200_000, "has more than 2,000 headings"),
    ],
    ids=["title", "headings"],
)
def test_what_is_made_to_take_for_ever_is_refused_at_once(text, sentence):
    began = time.process_time()
    with pytest.raises(InputError, match=sentence):
        read(text)
    assert time.process_time() - began < 10  # each took minutes: every character was held against every other


def test_a_line_of_links_that_never_end_is_read():
    began = time.process_time()
    assert read(f"# T\n\n## Status\n\nsuperseded by {'[a](' * 50_000}\n").superseded_by == ()
    assert time.process_time() - began < 10
