"""A report as one HTML page for screen and paper, light and dark, with its charts inside and nothing else needed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from planner.printable import printable
from ui.charts import svg
from ui.report_parts import Chart, Report
from ui.text import language, t

WIDTH, HEIGHT = 520, 250


def as_html(report: Report) -> str:
    """The report as a page; every text is literal, and the same report makes the same bytes."""
    return _template().render(report=report, lang=language(), t=t)


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, finalize=_shown,
    )  # fmt: skip
    environment.filters["drawn"] = _drawn
    environment.tests["day"] = lambda cell: isinstance(cell, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d", cell))
    return environment.get_template("report.html.j2")


def _shown(value: object) -> object:
    """Text without control characters and without marks that turn the order of what follows."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawn(chart: Chart) -> Markup:
    """The chart as inline SVG in the colours of the page; Vega escapes its texts."""
    ink = {"labelColor": "currentColor", "titleColor": "currentColor"}
    lines = {"gridColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor"}
    drawn = (
        chart.picture.properties(width=WIDTH, height=HEIGHT, background="transparent")
        .configure_axis(**ink, **lines, gridOpacity=0.15, labelFontSize=12, titleFontSize=12, titleFontWeight="normal")
        .configure_legend(**ink, labelFontSize=12, columnPadding=40)  # else wider fonts than Vega's own overlap
        .configure_view(stroke=None)
    )
    # The picture takes the width that there is, and the figure around it says what it shows.
    return Markup(re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg aria-hidden="true" \1>', svg(drawn), count=1))
