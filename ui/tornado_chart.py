"""The chart of what moves an answer: one bar an input, from one end of its range to the other."""

from __future__ import annotations

import altair as alt
import pandas as pd

from planner.tornado import Leg, Tornado
from ui.text import t

OUT_OF_REACH_ROOM = 1.25  # how far beyond the largest figure "out of reach" is drawn
SIDE_COLOURS = ("#0d9488", "#d97706")  # less than as it stands, more
ROOM = 0.6  # of the widest swing, at both sides, for the words of an end


def tornado_chart(found: Tornado, *, by_units: bool) -> alt.LayerChart:
    """Bars from the answer as it stands to the answer at each end of an input's range, the widest input on top.

    By units, or by speed per user. An end without an answer is drawn beyond all others and says so.
    """

    def answer(leg: Leg) -> float | None:
        return leg.units if by_units else leg.user_tok_s

    legs = [(swing, leg) for swing in found.swings for leg in (swing.low, swing.high)]
    values = [v for leg in (found.base, *(leg for _, leg in legs)) if (v := answer(leg)) is not None]
    beyond = max(values, default=1.0) * OUT_OF_REACH_ROOM if by_units else 0.0
    base = answer(found.base)
    middle = beyond if base is None else base
    unit = t("units") if by_units else t("tok/s")
    rows = []
    for swing, leg in legs:
        value = answer(leg)
        if value == base:
            continue
        said = leg.problem or (t("out of reach") if value is None else f"{value:.3g} {unit}")
        end = beyond if value is None else value
        rows.append({"input": t(swing.title), "base": middle, "value": end, "label": f"{leg.label}: {said}",
                     "why": t(swing.why), "side": "more" if end > middle else "less"})  # fmt: skip
    frame = pd.DataFrame(rows, columns=["input", "base", "value", "label", "why", "side"])
    order = list(dict.fromkeys(frame["input"]))
    title = t("Units by the planning value") if by_units else t("tok/s per user by the planning value")
    low, high = min([middle, *frame["value"]]), max([middle, *frame["value"]])
    room = ROOM * max(high - low, 0.1 * high)
    x = alt.X(
        "value:Q", title=title, scale=alt.Scale(domain=[low - room, high + room], nice=False),
        axis=alt.Axis(grid=False, labelExpr="datum.value < 0 ? '' : datum.label"),
    )  # fmt: skip
    rows_ = alt.Chart(frame).encode(y=alt.Y("input:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)))
    bars = rows_.mark_bar(size=18).encode(
        x=x, x2="base:Q",
        color=alt.Color("side:N", scale=alt.Scale(domain=["less", "more"], range=list(SIDE_COLOURS)), legend=None),
        tooltip=[alt.Tooltip("input:N", title=t("Input")), alt.Tooltip("label:N", title=t("At this end")),
                 alt.Tooltip("why:N", title=t("Why this range"))],
    )  # fmt: skip
    words = [
        rows_.transform_filter(f"datum.side == '{side}'").mark_text(
            align=align, dx=dx, fontSize=11, color=SIDE_COLOURS[side == "more"], limit=260
        ).encode(x=x, text="label:N")
        for side, align, dx in (("less", "right", -5), ("more", "left", 5))
    ]  # fmt: skip
    rule = alt.Chart(pd.DataFrame({"base": [middle]})).mark_rule(color="#94a3b8").encode(x="base:Q")
    return alt.layer(bars, rule, *words).properties(height=34 * max(1, len(order)) + 30)
