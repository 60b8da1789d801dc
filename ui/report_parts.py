"""What a report is made of, whatever its form: sections of sentences, tables, charts and marks, all plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd

from planner.metrics import quantity
from ui.parts import KINDS, STATES
from ui.text import t


class Mark(NamedTuple):
    """A word with one meaning: how a figure is known, or the state of a verdict; `key` is the domain's name of it."""

    key: str

    @property
    def words(self) -> str:
        """The word as it is read."""
        return t(self.key)

    @property
    def colour(self) -> str:
        """The colour that screens give it too; the word says the same without it."""
        return KINDS.get(self.key) or STATES[self.key].colour


Cell = str | Mark


class Table(NamedTuple):
    """A table; `wide` ones have more columns than a page of text has room for."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    wide: bool = False


class Paragraph(NamedTuple):
    """A sentence behind its marks; `tone` is "" (text), "note" (small), "warning" or "result" (stands out)."""

    text: str
    marks: tuple[Mark, ...] = ()
    tone: str = ""


class Heading(NamedTuple):
    """A heading inside a section, behind its mark."""

    text: str
    marks: tuple[Mark, ...] = ()


class Limit(NamedTuple):
    """A value that is asked for, as a chart draws it in red."""

    words: str
    value: float


class Chart(NamedTuple):
    """A picture with what it shows: words for those who do not see it, and its figures.

    `frame` has `x`, series, kind, value, low, high, n; values are in `unit`.
    """

    title: str
    words: str
    picture: alt.Chart | alt.LayerChart
    frame: pd.DataFrame
    x: str
    x_words: str
    unit: str
    limits: tuple[Limit, ...] = ()

    def table(self) -> Table:
        """The figures of the picture, a row a point."""
        head = (t("Series"), self.x_words, t("Value"), t("Range"), t("n"), t("Kind"))
        return Table(head, tuple(self._row(row) for row in self.frame.to_dict("records")))

    def _row(self, row: dict[str, object]) -> tuple[Cell, ...]:
        low, high = (float(str(row[end])) for end in ("low", "high"))
        span = "–" if low == high else f"{quantity(low, self.unit)} – {quantity(high, self.unit)}"
        return (
            str(row["series"]), f"{row[self.x]:g}", quantity(float(str(row["value"])), self.unit), span,
            "–" if pd.isna(row["n"]) else f"{row['n']:,.0f}", Mark(str(row["kind"])),
        )  # fmt: skip


Block = Paragraph | Heading | Table | Chart


class Section(NamedTuple):
    """A part of a report under a title; `appendix` ones stand behind what a meeting reads."""

    title: str
    blocks: tuple[Block, ...]
    appendix: bool = False


class Report(NamedTuple):
    """A whole report: what it is of, the sentence to take away with how it is known, and its sections."""

    title: str
    headline: Paragraph
    under: str
    sections: tuple[Section, ...]

    def marks(self) -> tuple[Mark, ...]:
        """Every mark that the report shows, once, in the order in which it is met."""
        blocks = (self.headline, *(b for s in self.sections for b in s.blocks))
        return tuple(dict.fromkeys(m for b in blocks for m in _marks_of(b)))


def _marks_of(block: Block) -> Iterator[Mark]:
    if isinstance(block, Paragraph | Heading):
        yield from block.marks
    table = block.table() if isinstance(block, Chart) else block
    if isinstance(table, Table):
        yield from (cell for row in table.rows for cell in row if isinstance(cell, Mark))


def marked(key: object) -> tuple[Mark, ...]:
    """The mark of a kind or state, or none where nothing is known."""
    return (Mark(str(key)),) if key else ()


def table_of(frame: pd.DataFrame, *, marks: Sequence[str] = (), wide: bool = False) -> Table:
    """A table of the app; in the columns `marks` what is the word of a kind or state becomes its mark."""
    by_word = {t(key): Mark(key) for key in (*KINDS, *STATES)}
    columns = [str(c) for c in frame.columns]
    rows = (
        tuple(by_word.get(str(x), str(x)) if c in marks else str(x) for c, x in zip(columns, row, strict=True))
        for row in frame.itertuples(index=False)
    )
    return Table(tuple(columns), tuple(rows), wide)
