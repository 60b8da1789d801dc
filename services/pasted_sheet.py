"""A table as somebody copied it: headings and rows out of a spreadsheet, a CSV with , or ;, or a Markdown table.

Rows are counted as in the sheet, the heading being row 1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from planner.errors import InputError
from services.pasted_numbers import EMPTY, tidy
from services.pasted_words import LEFT_OUT, Heading, heading

DELIMITERS = "\t;,|"
MOST_CHARACTERS = 5_000_000


class Row(NamedTuple):
    """The cells of a row and its number in the sheet."""

    number: int
    cells: tuple[str, ...]


class Sheet(NamedTuple):
    """Headings, rows, and sentences for rows that are broken."""

    name: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    broken: tuple[str, ...]

    def example(self, column: int) -> str:
        """The first cell of a column that is not empty."""
        return next((r.cells[column] for r in self.rows if tidy(r.cells[column]).lower() not in EMPTY), "")


def read_sheet(text: str, name: str = "table") -> Sheet:
    """Cells of a table out of a spreadsheet, a CSV with , or ;, or a Markdown table.

    Raises InputError for what is no table.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"is longer than {MOST_CHARACTERS:,} characters.", where=name, fix="Paste the results alone.")
    lines = text.lstrip("\ufeff").splitlines()
    head = next((line for line in lines if line.strip()), "")
    delimiter = "\t" if "\t" in head else max(DELIMITERS, key=head.count)
    rows, broken = _rows(lines, delimiter)
    if len(rows) < 2 or delimiter not in head:
        raise InputError("holds no row under a heading." if head else "is empty.", where=name,
                         fix="Copy the cells with their headings.")  # fmt: skip
    headings, *body = rows
    width = len(headings.cells)
    broken += [
        f"row {r.number}: {len(r.cells)} cells under {width} headings."
        + (" A comma that is a decimal mark needs ; or tabs between cells." if delimiter == "," else "")
        for r in body
        if len(r.cells) != width
    ]
    return Sheet(name, headings.cells, tuple(r for r in body if len(r.cells) == width), tuple(broken))


def _rows(lines: Sequence[str], delimiter: str) -> tuple[list[Row], list[str]]:
    found, broken = [], []
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = [c.strip() for c in next(reader)]
        except StopIteration:
            return found, broken
        except csv.Error as e:
            broken.append(f"row {reader.line_num}: is broken: {e}.")
            continue
        if delimiter == "|":  # a Markdown table: bars at both ends, a rule under the heading
            cells = cells[1:-1] if cells[:1] == [""] else cells
            if cells and all(set(c) <= set("-: ") for c in cells):
                continue
        if any(cells):
            found.append(Row(reader.line_num, tuple(cells)))


def read_sheet_file(name: str, content: bytes) -> Sheet:
    """The same for a file; raises InputError also for what is no text."""
    try:
        return read_sheet(content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"), name)
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix="Save the sheet as CSV, UTF-8.") from None


def proposed(sheet: Sheet) -> tuple[Heading, ...]:
    """What each column holds, by its heading; of two that hold the same the later one is left out."""
    seen: set[tuple[str, str]] = set()
    found = []
    for text in sheet.headings:
        read = heading(text)
        if read.holds != LEFT_OUT and (read.holds, read.spread) in seen:
            read = Heading(LEFT_OUT, read.unit, why="another column holds this already")
        seen.add((read.holds, read.spread))
        found.append(read)
    return tuple(found)
