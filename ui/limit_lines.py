"""What is required as a red line across a chart, its words at the end and on the side where the fewest lines pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd

from ui.palette import REQUIRED_COLOUR

CHARACTER, ROW = 0.021, 0.1  # what a character and a row of words take of a plot on half a page
Span = tuple[float, float]


class Place(NamedTuple):
    """Where the words of a line stand."""

    right: bool
    above: bool


PLACES = (Place(True, True), Place(False, True), Place(True, False), Place(False, False))


def limit_line(value: float, label: str, place: Place = PLACES[0]) -> alt.LayerChart:
    """A required value as a line with its words."""
    frame = pd.DataFrame({"value": [value], "label": [label]})
    line = alt.Chart(frame).mark_rule(color=REQUIRED_COLOUR, strokeWidth=1.5).encode(y="value:Q")
    align, dx, x = ("right", -4, alt.value("width")) if place.right else ("left", 4, alt.value(0))
    baseline, dy = ("bottom", -2) if place.above else ("top", 3)
    words = (
        alt.Chart(frame)
        .mark_text(align=align, baseline=baseline, dx=dx, dy=dy, color=REQUIRED_COLOUR, fontSize=12)
        .encode(y="value:Q", x=x, text="label:N")
    )
    return alt.layer(line, words)


def clear_place(
    value: float, label: str, frame: pd.DataFrame, x: str, y: str, series: str, *, log_x: bool = False,
    log_y: bool = False, among: pd.DataFrame | None = None,
) -> Place:  # fmt: skip
    """The place of the words that the fewest lines of `frame` cross; at the right end above the line where none does.

    Axes reach over the rows of `among` and the value, as charts.against_concurrency draws them.
    """
    spanned = frame if among is None else among

    def upward(values: Sequence[float]) -> list[float]:
        return _shares(values, [*spanned[y], value], log=log_y, from_0=True)

    lines = [
        list(zip(_shares(part[x], spanned[x], log=log_x), upward(part[y]), strict=True))
        for _, part in frame.sort_values(x).groupby(series, sort=False)
    ]
    (level,) = upward([value])
    width = CHARACTER * len(label)

    def crossed(place: Place) -> int:
        across = (1 - width, 1.0) if place.right else (0.0, width)
        upright = (level, level + ROW) if place.above else (level - ROW, level)
        return sum(_passes(line, across, upright) for line in lines)

    return min(PLACES, key=crossed)  # the first of equals


def _shares(values: Sequence[float], spanned: Sequence[float], *, log: bool, from_0: bool = False) -> list[float]:
    """Where values lie on an axis, 0 to 1; a log axis of values reaches over whole powers of ten."""
    if log:
        logs = [math.log10(v) for v in spanned if v > 0] or [0.0]
        low, high = (math.floor(min(logs)), math.ceil(max(logs))) if from_0 else (min(logs), max(logs))
        values = [math.log10(v) if v > 0 else low for v in values]
    else:
        ends = [*spanned, 0.0] if from_0 else spanned
        low, high = min(ends), max(ends)
    return [(v - low) / ((high - low) or 1.0) for v in values]


def _passes(line: Sequence[tuple[float, float]], across: Span, upright: Span) -> bool:
    """Whether a line of points touches a box."""
    for (x0, y0), (x1, y1) in zip(line, line[1:] or line, strict=False):
        begin, end = max(x0, across[0]), min(x1, across[1])
        if begin > end:
            continue
        slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
        ys = [y0 + slope * (x - x0) for x in (begin, end)]
        if min(ys) <= upright[1] and max(ys) >= upright[0]:
            return True
    return False
