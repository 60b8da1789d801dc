"""What the terminal entry reads and prints with: tables, sentences, JSON that can be piped."""

from __future__ import annotations

import getpass
import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planner.errors import InputError
from planner.printable import printable

out = Console(soft_wrap=True)


class Argument(NamedTuple):
    """One argument of a command, as argparse takes it."""

    name: str
    options: dict[str, Any]

    @property
    def words(self) -> str:
        """Its name among the parsed arguments."""
        return self.name.removeprefix("--").replace("-", "_")


def day(text: str) -> date:
    """A day as argparse takes it."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no day: write it as 2026-11-29") from None


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; figures stand on the right."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        right = bool(rows) and all(isinstance(row[columns.index(name)], int | float) for row in rows)
        shown.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(escape(printable(str(cell))) for cell in row))
    out.print(shown)


def say(text: str) -> None:
    """Print a sentence as it is."""
    out.print(escape(printable(text)), highlight=False)


def as_json(value: Any) -> None:
    """Print JSON without styling, so that it can be piped."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def read_text(path: Path) -> str:
    """A text file; raises InputError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path), fix="Check the path.") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text.", where=str(path), fix="Save it as UTF-8.") from None


def read_bytes(path: Path) -> bytes:
    """A file as it is; raises InputError."""
    try:
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path), fix="Check the path.") from None


def you() -> str:
    """The name of the account that runs the command."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for its user
        return "terminal"
