"""Every chart of the app. Required values are drawn as rules, estimates dashed, measurements solid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd

from ui.limit_lines import clear_place, limit_line
from ui.palette import DASHES, KIND_COLOURS, OTHER_COLOURS, REQUIRED_COLOUR, colours
from ui.text import t

HEIGHT = 340
SMALL_HEIGHT = 280
STRIP_HEIGHT = 136  # legend and axis included
LEGEND_CHARACTERS = 60  # a row of a legend on half a page, its symbols counted as 4


class Picture(NamedTuple):
    """A chart, and what it shows for who cannot see it."""

    chart: alt.Chart | alt.LayerChart
    words: str


def _concurrency_axis(title: str) -> alt.X:
    return alt.X("batch:Q", scale=alt.Scale(type="log", base=2), title=title, axis=alt.Axis(format="d"))


def _log_axis(field: str, title: str, values: Sequence[float]) -> alt.Y:
    """A log axis with ticks at 1, 2 and 5 times a power of ten, at the powers alone where these would be too many."""
    drawn = [math.log10(v) for v in values if v > 0]
    powers = range(math.floor(min(drawn)), math.ceil(max(drawn)) + 1) if drawn else ()
    ticks = [step * 10.0**power for power in powers for step in ((1, 2, 5) if len(powers) <= 3 else (1,))]
    axis = alt.Axis(values=ticks, format=",~g")
    return alt.Y(field, title=title, scale=alt.Scale(type="log"), axis=axis)


def _legend(names: Sequence[str]) -> alt.Legend:
    """A legend of a few close rows: what it takes is taken from the plot."""
    columns = max(2, LEGEND_CHARACTERS // (4 + max(map(len, names), default=0)))
    return alt.Legend(
        orient="top", columns=columns, labelLimit=240, symbolType="circle", symbolOpacity=1, symbolSize=90,
        symbolStrokeWidth=1, labelFontSize=12, padding=0, rowPadding=3, offset=10,
    )  # fmt: skip


def _value_axis(field: str, title: str, values: Sequence[float], *, log: bool, share: bool) -> alt.Y:
    if share:
        return alt.Y(field, title=title, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    return _log_axis(field, title, values) if log else alt.Y(field, title=title)


def against_concurrency(
    frame: pd.DataFrame, *, y: str, y_title: str, required: float | None = None, required_label: str = "",
    series: str = "kind", log: bool = False, among: pd.DataFrame | None = None,
) -> alt.LayerChart:  # fmt: skip
    """Lines of `y` over `batch` (requests in flight), one colour per `series`; the requirement is a red rule.

    `frame` has the columns batch, `series`, `y` and optionally n, low, high. A range is drawn as a bar. `among` has the
    rows of all that are looked at in turn: one axis for all of them, so that they compare and only data is drawn anew.
    """
    x = _concurrency_axis(t("Requests in flight (log scale)"))
    reach = () if required is None else (required,)
    layers = series_layers(frame, x, t("In flight"), y, y_title, series, log=log, among=among, reach=reach)
    if required is not None:
        place = clear_place(required, required_label, frame, "batch", y, series, log_x=True, log_y=log, among=among)
        layers.append(limit_line(required, required_label, place))
    return alt.layer(*layers).properties(height=HEIGHT)


def series_layers(
    frame: pd.DataFrame, x: alt.X, x_words: str, y: str, y_title: str, series: str, *, log: bool = False,
    share: bool = False, among: pd.DataFrame | None = None, reach: Sequence[float] = (),
) -> list[alt.Chart | alt.LayerChart]:  # fmt: skip
    """Ranges, lines and points; where `frame` has a kind, dashes and hollow points tell what was not measured.

    Ticks reach over the limits in `reach` too, which are drawn beside the lines.
    """
    spanned = frame if among is None else among
    present = list(dict.fromkeys(spanned[series]))
    scale = alt.Scale(domain=present, range=colours(present))
    tooltip = [
        alt.Tooltip(f"{series}:N", title=t("Series")),
        alt.Tooltip(f"{x.shorthand}", title=x_words, format=",.4~g"),
        alt.Tooltip(f"{y}:Q", title=y_title, format=".1%" if share else ",.3~g"),
    ]
    if "n" in frame:
        tooltip.append(alt.Tooltip("n:Q", title=t("Samples")))
    if "kind" in frame:  # a column of its own, else the dashes of a series named by kind get into its legend
        frame = frame.assign(style=frame["kind"])
    base = alt.Chart(frame).encode(
        x=x,
        y=_value_axis(f"{y}:Q", y_title, [*spanned[y], *reach], log=log, share=share),
        color=alt.Color(
            f"{series}:N",
            title=None,
            scale=scale,
            legend=_legend(present),
        ),
        tooltip=tooltip,
    )
    lines = base.mark_line(strokeWidth=2)
    layers: list[alt.Chart | alt.LayerChart] = [lines, base.mark_point(size=60, filled=True, opacity=1)]
    if "kind" in frame:
        kinds = list(dict.fromkeys(spanned["kind"]))
        dashes = alt.Scale(domain=kinds, range=[DASHES[k] for k in kinds])
        measured = alt.FieldOneOfPredicate(field="kind", oneOf=["measured", "observed"])
        layers = [
            lines.encode(strokeDash=alt.StrokeDash("style:N", scale=dashes, legend=None)),
            base.mark_point(size=60, filled=True, opacity=1).transform_filter(measured),
            base.mark_point(size=45, filled=False, strokeWidth=1.5).transform_filter(
                alt.LogicalNotPredicate(**{"not": measured})
            ),
        ]
    if {"low", "high"} <= set(frame.columns):
        layers.insert(0, base.mark_rule(strokeWidth=4, opacity=0.35).encode(y="low:Q", y2="high:Q"))
    return layers


def contributions(frame: pd.DataFrame) -> alt.Chart:
    """Stacked score bars; `frame` has candidate, criterion, contribution (points of 100), reason."""
    order = list(dict.fromkeys(frame["candidate"]))
    criteria = list(dict.fromkeys(frame["criterion"]))
    position = {c: i for i, c in enumerate(criteria)}
    return (
        alt.Chart(frame.assign(position=frame["criterion"].map(position)))
        .mark_bar()
        .encode(
            y=alt.Y("candidate:N", sort=order, title=None, axis=alt.Axis(labelLimit=200)),
            x=alt.X("sum(contribution):Q", title=t("Score (of 100)"), scale=alt.Scale(domain=[0, 100])),
            color=alt.Color(
                "criterion:N", sort=criteria, title=None, scale=alt.Scale(scheme="tableau20"),
                legend=alt.Legend(orient="right", labelLimit=220, symbolLimit=0),
            ),
            order="position:Q",
            tooltip=[
                alt.Tooltip("candidate:N", title=t("Candidate")),
                alt.Tooltip("criterion:N", title=t("Criterion")),
                alt.Tooltip("contribution:Q", title=t("Points"), format=".1f"),
                alt.Tooltip("reason:N", title=t("Reason")),
            ],
        )
        .properties(height=max(44 * len(order), 16 * len(criteria)) + 60)
    )  # fmt: skip


def memory_split(frame: pd.DataFrame) -> alt.Chart:
    """One stacked bar of the device; `frame` has part, gb."""
    order = list(frame["part"])
    return (
        alt.Chart(frame.assign(order=range(len(frame))))
        .mark_bar(size=36)
        .encode(
            x=alt.X("gb:Q", title=t("GB"), stack="zero"),
            color=alt.Color("part:N", sort=order, title=None, legend=alt.Legend(orient="bottom")),
            order="order:Q",
            tooltip=[alt.Tooltip("part:N", title=t("Part")), alt.Tooltip("gb:Q", title=t("GB"), format=",.1f")],
        )
        .properties(height=180)
    )


def cumulative(
    frame: pd.DataFrame, *, x_title: str, order: Sequence[str], limit: float | None = None
) -> alt.LayerChart:
    """Share of requests that took at most so many seconds; `frame` has seconds, share, name. A limit is a red rule."""
    lines = (
        alt.Chart(frame)
        .mark_line(interpolate="step-after", strokeWidth=2, strokeDash=DASHES["simulated"])
        .encode(
            x=alt.X("seconds:Q", title=x_title, scale=alt.Scale(type="symlog")),
            y=alt.Y("share:Q", title=t("Share of requests"), axis=alt.Axis(format="%")),
            color=_series(order, columns=2),
            tooltip=[alt.Tooltip("name:N", title=t("Policy")), alt.Tooltip("share:Q", title=t("Share"), format=".0%"),
                     alt.Tooltip("seconds:Q", title=x_title, format=",.3~g")],
        )
    )  # fmt: skip
    if limit is None:
        return alt.layer(lines).properties(height=260)
    asked = alt.Chart(pd.DataFrame({"seconds": [limit]})).mark_rule(color=REQUIRED_COLOUR, strokeWidth=1.5)
    return alt.layer(lines, asked.encode(x="seconds:Q")).properties(height=260)


def reign_strip(frame: pd.DataFrame, *, x_title: str, stated: tuple[float, float] | None, log: bool) -> alt.LayerChart:
    """Who comes first along one requirement; `frame` has engine, name, low, high, words. What is stated is outlined."""
    order = list(dict.fromkeys(frame["engine"]))
    names = dict(zip(frame["engine"], frame["name"], strict=True))
    ends = [float(frame["low"].min()), float(frame["high"].max())]
    x = alt.Scale(domain=ends, nice=False, **({"type": "log", "base": 2} if log else {}))
    bands = (
        alt.Chart(frame)
        .mark_bar(height=30)
        .encode(
            x=alt.X("low:Q", scale=x, title=x_title, axis=alt.Axis(format="d" if log else "%", grid=False)),
            x2="high:Q",
            color=alt.Color("name:N", title=None, legend=alt.Legend(orient="top"), scale=alt.Scale(
                domain=[names[e] for e in order], range=colours(order))),
            tooltip=[alt.Tooltip("name:N", title=t("Comes first")), alt.Tooltip("words:N", title=t("From, to"))],
        )
    )  # fmt: skip
    if stated is None:
        return alt.layer(bands).properties(height=STRIP_HEIGHT)
    asked = pd.DataFrame({"low": [max(stated[0], ends[0])], "high": [min(stated[1], ends[1])]})
    if stated[0] == stated[1]:
        mark = alt.Chart(asked).mark_rule(color=REQUIRED_COLOUR, strokeWidth=3).encode(x=alt.X("low:Q", scale=x))
    else:
        mark = (
            alt.Chart(asked)
            .mark_bar(height=36, fillOpacity=0, stroke=REQUIRED_COLOUR, strokeWidth=2)
            .encode(x=alt.X("low:Q", scale=x), x2="high:Q")
        )
    return alt.layer(bands, mark).properties(height=STRIP_HEIGHT)


def _series(order: Sequence[str], columns: int = 0) -> alt.Color:
    """The same colours for the same series in every chart of a section; a narrow chart's legend takes several rows."""
    legend = alt.Legend(orient="top", columns=columns) if columns else alt.Legend(orient="top")
    scale = alt.Scale(domain=list(order), range=list(OTHER_COLOURS[: len(order)]))
    return alt.Color("name:N", sort=list(order), title=None, legend=legend, scale=scale)


def timeline(
    frame: pd.DataFrame, *, y_title: str, x_title: str = "Seconds since the repeat began", order: Sequence[str] = ()
) -> alt.Chart:
    """A server metric over seconds; `frame` has t_s, value, name. `order` fixes the colours of the names."""
    return (
        alt.Chart(frame)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("t_s:Q", title=t(x_title), scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=y_title),
            color=_series(order) if order else alt.Color("name:N", title=None, legend=alt.Legend(orient="top")),
            tooltip=["name:N", alt.Tooltip("t_s:Q", format=".1f"), alt.Tooltip("value:Q", format=",.3~g")],
        )
        .properties(height=220)
    )


def token_histogram(frame: pd.DataFrame) -> alt.Chart:
    """Shares of requests by length in powers of two; `frame` has size (its words), share, name."""
    names = list(dict.fromkeys(frame["name"]))
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("size:N", sort=list(dict.fromkeys(frame["size"])), title=t("Tokens, from"),
                    axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            xOffset=alt.XOffset("name:N", sort=names),
            y=alt.Y("share:Q", title=t("Share of requests"), axis=alt.Axis(format="%")),
            color=alt.Color("name:N", title=None, legend=alt.Legend(orient="top"),
                            scale=alt.Scale(domain=names, range=list(OTHER_COLOURS[: len(names)]))),
            tooltip=[alt.Tooltip("name:N", title=t("Series")), alt.Tooltip("size:N", title=t("Tokens, from")),
                     alt.Tooltip("share:Q", title=t("Share"), format=".1%")],
        )
        .properties(height=SMALL_HEIGHT)
    )  # fmt: skip


def demand(frame: pd.DataFrame, *, x_title: str, y_title: str) -> alt.Chart:
    """What users did over time, as steps; `frame` has at (moments, or numbers where the log has no date) and value."""
    dated = pd.api.types.is_datetime64_any_dtype(frame["at"])
    kind = "T" if dated else "Q"
    scale = alt.Scale(type="utc") if dated else alt.Undefined
    return (
        alt.Chart(frame)
        .mark_area(
            interpolate="step-after", opacity=0.35, color=KIND_COLOURS["observed"],
            line={"color": KIND_COLOURS["observed"], "strokeWidth": 1},
        )
        .encode(
            x=alt.X(f"at:{kind}", title=x_title, scale=scale, axis=alt.Axis(labelOverlap=True, tickCount=5)),
            y=alt.Y("value:Q", title=y_title),
            tooltip=[
                alt.Tooltip(f"at:{kind}", title=x_title, format="%Y-%m-%d %H:%M:%S" if dated else ",.4~g"),
                alt.Tooltip("value:Q", title=y_title, format=",.3~g"),
            ],
        )
        .properties(height=SMALL_HEIGHT)
    )  # fmt: skip


def svg(chart: alt.Chart | alt.LayerChart) -> str:
    """The chart as an SVG document, without network."""
    import vl_convert  # a large native module: loaded when somebody exports, not at every start

    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def as_csv(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> str:
    """The data behind a chart as CSV."""
    return str(frame[list(columns)].to_csv(index=False) if columns else frame.to_csv(index=False))
