"""The made model's identity: what counts as the same model, without an engine to make it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.engine.tiny_model import corpus, revision_of, writes_text


def test_the_revision_is_what_sha256sum_says_about_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.txt").write_text("one")
    listing = b""
    for name in ("a.txt", "b.txt"):
        told = subprocess.run(["sha256sum", tmp_path / name], capture_output=True, check=True).stdout.split()[0]
        listing += name.encode() + b"\0" + told + b"\n"
    told = subprocess.run(["sha256sum"], input=listing, capture_output=True, check=True).stdout.split()[0]
    assert revision_of(tmp_path) == told.decode()


def test_another_byte_or_another_name_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"\x00\x01")
    first = revision_of(tmp_path)
    (tmp_path / "weights").write_bytes(b"\x00\x02")
    second = revision_of(tmp_path)
    (tmp_path / "weights").rename(tmp_path / "weights2")
    assert len({first, second, revision_of(tmp_path)}) == 3


def test_the_tokenizer_learns_from_the_same_two_thousand_lines_everywhere() -> None:
    lines = corpus()
    assert lines == corpus()
    assert len(lines) == 2000
    assert {len(line.split()) for line in lines} == {12}


def test_only_tokens_that_are_whole_characters_may_be_written() -> None:
    assert writes_text("server")
    assert writes_text("\u0120the")  # a leading blank
    assert not writes_text("\u00e3")  # byte 0xE3, the first of three in most Japanese characters
    assert not writes_text("\u010a")  # a line break
    assert not writes_text("<|im_end|>")
