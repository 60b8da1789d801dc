"""A table that was copied out of a spreadsheet, as figures: each row whole, or refused by its number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from planner.errors import FliplineError, InputError
from planner.metrics import METRICS, to_base
from planner.poc import Plan
from services.filled import Filled, must_be_possible
from services.pasted_checks import as_repeats, must_be_in_order, must_be_one_clock, odd_latencies
from services.pasted_numbers import EMPTY, UNIT_WORDS, YES_NO, Mark, decimal_mark, moment, number, tidy
from services.pasted_sheet import Row, Sheet
from services.pasted_words import LEFT_OUT, WHOLE, Heading

NUMBERS = (*WHOLE, "rate_per_s")


class Stated(NamedTuple):
    """What holds for every row and does not stand in the sheet; a cell of the sheet comes before it."""

    candidate: str = ""
    in_flight: int | None = None
    rate_per_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    n: int | None = None


NOTHING_STATED = Stated()


class Pasted(NamedTuple):
    """Figures in base units; sentences on rows that are refused, columns that are left out, and what looks odd."""

    rows: tuple[Filled, ...]
    refused: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: tuple[str, ...]


def figures_of(
    sheet: Sheet, columns: Sequence[Heading], plan: Plan, stated: Stated = NOTHING_STATED, mark: Mark | None = None
) -> Pasted:  # fmt: skip
    """The figures of a sheet, each row checked whole; raises InputError for what spoils the sheet as such."""
    places = [i for i, c in enumerate(columns) if c.figure or c.holds in NUMBERS]
    if not any(c.figure for c in columns):
        raise InputError("no column holds a figure.", where=sheet.name, fix="Say what a column holds.")
    mark = mark or decimal_mark(
        (f"row {r.number}, {sheet.headings[i]}", r.cells[i]) for r in sheet.rows for i in places
    )
    reader = _Reader(sheet, columns, plan, stated, mark)
    rows: list[Filled] = []
    refused = list(sheet.broken)
    for row in sheet.rows:
        try:
            rows += reader.figures(row)
        except FliplineError as e:
            refused.append(str(e))
    must_be_one_clock(sheet, columns)
    rows, numbered = as_repeats(rows)
    left = [f"{text!r} is left out: {c.why}" for text, c in zip(sheet.headings, columns, strict=True) if c.why]
    return Pasted(tuple(rows), tuple(refused), tuple(left), (*numbered, *odd_latencies(rows)))


class _Reader:
    """Reads one row after another of a sheet whose columns are known."""

    def __init__(self, sheet: Sheet, columns: Sequence[Heading], plan: Plan, stated: Stated, mark: Mark) -> None:
        self._sheet, self._columns, self._plan, self._stated, self._mark = sheet, columns, plan, stated, mark
        self._place = {c.holds: i for i, c in enumerate(columns) if c.holds != LEFT_OUT and not c.figure}
        self._points = plan.points()
        self._names = {name.lower(): c.id for c in plan.candidates for name in (c.engine, c.id)}

    def figures(self, row: Row) -> list[Filled]:
        """Every figure of a row; raises InputError with row and column."""
        found = [
            (c, value) for i, c in enumerate(self._columns) if c.figure and (value := self._figure(row, i)) is not None
        ]
        if not found:
            return []
        load = {name: self._number(row, name) for name in NUMBERS}
        about = Filled(
            candidate=self._candidate(row), load_point="", metric="", statistic="", value=0.0, row=row.number,
            rate_per_s=load["rate_per_s"], at=self._at(row),
            **{name: None if load[name] is None else int(load[name] or 0) for name in WHOLE},
        )  # fmt: skip
        about = about._replace(load_point=self._load_point(row, about))
        made = [
            about._replace(metric=c.figure[0], statistic=c.figure[1], value=value, spread=c.spread)
            for c, value in found
            if c.figure
        ]
        made = _counted_once(made)
        for piece in made:
            must_be_possible(piece, self._points, [c.id for c in self._plan.candidates])
        must_be_in_order(made)
        return made

    def _cell(self, row: Row, name: str) -> str:
        i = self._place.get(name)
        cell = "" if i is None else tidy(row.cells[i])
        return "" if cell.lower() in EMPTY else cell

    def _where(self, row: Row, column: int) -> str:
        return f"row {row.number}, {self._sheet.headings[column]}"

    def _number(self, row: Row, name: str) -> float | None:
        cell = self._cell(row, name)
        if not cell:
            stated: float | None = getattr(self._stated, name, None)
            return stated
        read = number(cell, self._mark)
        where = self._where(row, self._place[name])
        if read is None:
            raise InputError(f"{cell!r} is not a number.", where=where, fix="Write one number.")
        unit = read.unit or UNIT_WORDS.get(self._columns[self._place[name]].unit, ("", 1.0))[0]
        value = read.value / 60 if name == "rate_per_s" and unit == "req/min" else read.value
        if name in WHOLE and not value.is_integer():
            raise InputError(f"{value:g} is not a whole number.", where=where, fix="Write a whole number.")
        return value

    def _figure(self, row: Row, column: int) -> float | None:
        cell, of = tidy(row.cells[column]), self._columns[column]
        if cell.lower() in EMPTY or not of.figure:
            return None
        target, where = METRICS[of.figure[0]], self._where(row, column)
        if target.unit == "bool" and cell.lower() in YES_NO:
            return YES_NO[cell.lower()]
        read = number(cell, self._mark)
        if read is None:
            raise InputError(
                f"{cell!r} is not one number with a unit that is known.",
                where=where,
                fix="Write one value; smallest and largest have columns of their own.",
            )
        unit, factor = (read.unit, 1.0) if read.unit else UNIT_WORDS.get(of.unit, ("", 1.0))
        if not unit and target.unit in ("ms", "s"):
            raise InputError(f"{cell} of what: s or ms?", where=where, fix="Write the unit into the heading.")
        try:
            return to_base(read.value * factor, unit or target.unit, target)
        except InputError as e:
            raise InputError(e.what, where=where, fix=e.fix) from None

    def _candidate(self, row: Row) -> str:
        cell = self._cell(row, "candidate") or self._stated.candidate
        only = self._plan.candidates[0].id if len(self._plan.candidates) == 1 else ""
        return self._names.get(cell.lower(), cell) if cell else only

    def _load_point(self, row: Row, about: Filled) -> str:
        """The plan's name for the load: as the sheet writes it, else the point with the same load and lengths."""
        written = self._cell(row, "load_point")
        if written:
            return next((n for n in self._points if n == written.lower().replace(" ", "-")), written)
        return next((n for n, p in self._points.items() if about.offers(p)), "")

    def _at(self, row: Row) -> datetime | None:
        cell = self._cell(row, "at")
        read = moment(cell) if cell else None
        if cell and read is None:
            raise InputError(f"{cell!r} is no day or time.", where=self._where(row, self._place["at"]),
                             fix="Write it as 2026-11-29 or 2026-11-29T10:00+09:00.")  # fmt: skip
        return read[0] if read else None


def _counted_once(made: Sequence[Filled]) -> list[Filled]:
    """The ends of a spread are of the same requests: only the first of them carries their number."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for piece in made:
        kept.append(piece._replace(n=None) if (piece.metric, piece.statistic) in seen else piece)
        seen.add((piece.metric, piece.statistic))
    return kept
