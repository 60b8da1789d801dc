"""The chart of a rate curve: what a server does against the rate of requests that it is offered."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from ui.charts import HEIGHT, series_layers
from ui.limit_lines import clear_place, limit_line
from ui.palette import KNEE_COLOUR
from ui.text import t


def against_rate(
    frame: pd.DataFrame, *, y_title: str, levels: Sequence[tuple[float, str]] = (),
    knees: Sequence[tuple[float, str]] = (), log: bool = False, share: bool = False,
) -> alt.LayerChart:  # fmt: skip
    """Lines of `value` over `rate` (requests per second offered), a colour per `series`; bars are ranges over starts.

    `frame` has rate, series, kind, value, low, high, n. Asked limits are red rules, knees grey ones that stand upright.
    """
    x = alt.X("rate:Q", title=t("Requests per second offered"), scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    layers = series_layers(frame, x, t("Requests per second offered"), "value", y_title, "series", log=log,
                            share=share)  # fmt: skip
    for value, label in levels:
        place = clear_place(value, label, frame, "rate", "value", "series", log_y=log)
        layers.append(limit_line(value, label, place))
    end = frame["rate"].max()
    layers += [_upright(value, label, leftwards=value > end / 2) for value, label in knees]
    return alt.layer(*layers).properties(height=HEIGHT)


def _upright(value: float, label: str, *, leftwards: bool) -> alt.LayerChart:
    frame = pd.DataFrame({"value": [value], "label": [label]})
    rule = alt.Chart(frame).mark_rule(color=KNEE_COLOUR, strokeWidth=1.5, strokeDash=[4, 3]).encode(x="value:Q")
    text = (
        alt.Chart(frame)
        .mark_text(
            align="right" if leftwards else "left",
            baseline="top",
            dx=-5 if leftwards else 5,
            dy=4,
            color=KNEE_COLOUR,
            fontSize=12,
        )
        .encode(x="value:Q", y=alt.value(0), text="label:N")
    )
    return alt.layer(rule, text)
