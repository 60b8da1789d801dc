"""Rows of a request log out of CSV or JSON lines, a chunk at a time, with the line of each; what is broken is counted.

Only the columns that a layout names are ever looked at: a log's texts are read past.
"""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from planner.errors import InputError

CHUNK = 1_000
DELIMITERS = ",;\t|"
LOOKED_AT = 100  # objects whose names are the columns: not every object need have them all
ONE = {  # where more than the first word changes
    "rows that end before they begin": "row that ends before it begins",
    "lines that are no JSON object": "line that is no JSON object",
}
LONGEST_CELL = 16 * 2**20  # Python's own limit of 128 KiB is less than a long prompt


class Faults:
    """What is wrong with a log: how often each fault was found, and in which line first."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.first: dict[str, int] = {}

    def add(self, fault: str, line: int) -> None:
        """Count a fault."""
        self.found[fault] += 1
        self.first.setdefault(fault, line)

    def sentences(self) -> list[str]:
        """Each fault with its count and its first line."""
        return [
            f"{n:,} {one_of(fault) if n == 1 else fault} (first: line {self.first[fault]:,})"
            for fault, n in self.found.items()
        ]


def one_of(fault: str) -> str:
    """A fault as it is said of one row or line."""
    return ONE.get(fault) or fault.replace("rows", "row", 1).replace("lines", "line", 1)


class Chunk(NamedTuple):
    """Some rows: their lines, and their cells column by column in the order asked for."""

    lines: Sequence[int]
    columns: Sequence[Sequence[Any]]


class Table:
    """A log as rows; `columns` are the names in its head, or of its first object."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._content = content
        self.is_json = content[:LOOKED_AT].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
        try:
            self.columns = self._json_head() if self.is_json else self._csv_head()
        except UnicodeDecodeError:
            raise self._no_text() from None
        if not self.columns:
            raise InputError("holds no requests.", where=name, fix="Bring a log with a row for each request.")

    def chunks(self, names: Sequence[str], faults: Faults) -> Iterator[Chunk]:
        """The cells of `names`, CHUNK rows at a time; broken lines go into `faults`."""
        lines, rows = array("q"), []
        try:
            for line, row in self._json_rows(names, faults) if self.is_json else self._csv_rows(faults):
                lines.append(line)
                rows.append(row)
                if len(rows) == CHUNK:
                    yield self._chunk(names, lines, rows)
                    lines, rows = array("q"), []
        except UnicodeDecodeError:
            raise self._no_text() from None
        if rows:
            yield self._chunk(names, lines, rows)

    def _chunk(self, names: Sequence[str], lines: array[int], rows: Sequence[Sequence[Any]]) -> Chunk:
        places = range(len(names)) if self.is_json else [self.columns.index(name) for name in names]
        return Chunk(lines, [[row[i] for row in rows] for i in places])

    def _no_text(self) -> InputError:
        return InputError("is not text in UTF-8.", where=self.name, fix="Save the log as UTF-8.")

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8-sig", newline="")

    def _csv_head(self) -> tuple[str, ...]:
        head = self._text().readline(LONGEST_CELL)
        self._delimiter = max(DELIMITERS, key=head.count)
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
        try:
            return tuple(c.strip() for c in next(csv.reader([head], delimiter=self._delimiter, strict=True), []))
        except csv.Error as e:
            raise InputError(f"its first line cannot be read: {e}.", where=f"{self.name}, line 1",
                             fix="Begin with the names of the columns.") from None  # fmt: skip

    def _csv_rows(self, faults: Faults) -> Iterator[tuple[int, list[str]]]:
        width = len(self.columns)
        reader = csv.reader(self._text(), delimiter=self._delimiter, strict=True)
        next(reader)
        while True:
            try:
                for row in reader:
                    if len(row) == width:
                        yield reader.line_num, row
                    elif row:
                        faults.add(f"lines without {width} cells", reader.line_num)
                return
            except csv.Error:
                faults.add("broken lines", reader.line_num)

    def _json_head(self) -> tuple[str, ...]:
        objects = (row for row in map(_object, self._text()) if row is not None)
        return tuple(dict.fromkeys(name for row in islice(objects, LOOKED_AT) for name in row))

    def _json_rows(self, names: Sequence[str], faults: Faults) -> Iterator[tuple[int, list[Any]]]:
        numbered = enumerate(self._text(), 1)
        while part := list(islice(numbered, CHUNK)):
            for (number, line), row in zip(part, _objects([line for _, line in part]), strict=True):
                if row is not None:
                    yield number, list(map(row.get, names))
                elif line.strip():
                    faults.add("lines that are no JSON object", number)


def _objects(lines: Sequence[str]) -> Sequence[dict[str, Any] | None]:
    """The object of each line, None where it holds none; parsed at once, twice as fast, while all are sound."""
    bare = [line.strip() for line in lines]
    if all(line[:1] == "{" and line[-1:] == "}" for line in bare):
        try:
            rows: list[dict[str, Any]] = json.loads(f"[{','.join(bare)}]")
        except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
            rows = []
        if len(rows) == len(lines):
            return rows
    return [_object(line) for line in bare]


def _object(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
