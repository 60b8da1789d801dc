"""Text from outside on a terminal: what ECMA-48 and the Unicode bidirectional algorithm would act on is left out."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.printable import printable
from ui import terminal

CLEAR_SCREEN, RED, TITLE = "\x1b[2J", "\x9b31m", "\x1b]0;owned\x07"  # CSI in 7 and in 8 bits, OSC


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CLEAR_SCREEN + "fine", "[2Jfine"),
        (RED + "fine", "31mfine"),
        ("abc\u202efdp.exe", "abcfdp.exe"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("a\tb\n", "a\tb\n"),
        ("\ud800lone", "lone"),
        ("日本語 \U0001f600 é", "日本語 \U0001f600 é"),
    ],
)
def test_what_would_act_on_a_terminal_is_left_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_an_error_that_quotes_a_file_cannot_act_on_the_terminal() -> None:
    assert str(InputError(f"{TITLE} is no number.", where=f"row 1{CLEAR_SCREEN}")) == "row 1[2J: ]0;owned is no number."


def test_nor_can_a_title_in_a_table_or_a_sentence(capsys, monkeypatch) -> None:
    monkeypatch.setattr(terminal, "out", terminal.Console(soft_wrap=True, width=80))
    terminal.table("Log", ("title",), [(CLEAR_SCREEN + "[bold]x",)])
    terminal.say(TITLE + "[bold]x")
    said = capsys.readouterr().out
    assert "[2J[bold]x" in said and "]0;owned[bold]x" in said
    assert not {"\x1b", "\x07"} & set(said)
