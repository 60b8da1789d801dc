"""A report as Markdown: its charts are tables with bars, because forges show no picture that is inside the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisions.escaping import inline
from planner.metrics import quantity
from ui.report_parts import Block, Cell, Chart, Heading, Mark, Paragraph, Report, Table

BAR = 24  # characters of the longest bar


def as_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; every text is literal, and the same report makes the same bytes."""
    lines = [f"# {inline(report.title)}", _paragraph(report.headline, strong=True), inline(report.under)]
    for section in report.sections:
        lines.append(f"## {inline(section.title)}")
        lines += [text for block in section.blocks for text in _block(block)]
    return "\n\n".join(lines) + "\n"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _paragraph(block)
    elif isinstance(block, Heading):
        yield f"### {_marks(block.marks)}{inline(block.text)}"
    elif isinstance(block, Chart):
        yield f"### {inline(block.title)}"
        yield _table(bars(block))
    else:
        yield _table(block)


def _paragraph(p: Paragraph, *, strong: bool = False) -> str:
    text = inline(p.text)
    said = f"{_marks(p.marks)}{f'**{text}**' if strong else text}"
    return f"> {said}" if p.tone == "warning" else said


def _marks(marks: Sequence[Mark]) -> str:
    return "".join(f"`{m.words}` " for m in marks)


def _table(shown: Table) -> str:
    rows = [shown.head, *shown.rows]
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(shown.head), *lines[1:]])


def _cell(cell: Cell) -> str:
    return inline(cell.words if isinstance(cell, Mark) else cell)


def bars(chart: Chart) -> Table:
    """The figures of a chart with a bar each, and what is asked for as rows of their own."""
    table = chart.table()
    values = [float(v) for v in chart.frame["value"]]
    longest = max([*values, *(limit.value for limit in chart.limits)], default=0.0) or 1.0

    def bar(value: float, ink: str) -> str:
        return ink * max(1, round(BAR * value / longest)) if value > 0 else ""

    rows: list[tuple[Cell, ...]] = [
        (*row, bar(value, "█")) for row, value in zip(table.rows, values, strict=True)
    ]  # fmt: skip
    for limit in chart.limits:
        empty = ("–",) * (len(table.head) - 3)
        rows.append((limit.words, "–", quantity(limit.value, chart.unit), *empty, bar(limit.value, "░")))
    return Table((*table.head, ""), tuple(rows))
