"""Charts of one repeat: its requests in time, the gaps between their tokens, the server beside them."""

from __future__ import annotations

from functools import lru_cache

import altair as alt
import pandas as pd

from services.run_details import PHASES
from ui.palette import REQUIRED_COLOUR
from ui.text import t

PHASE_COLOURS = ("#94a3b8", "#d97706", "#2563eb", REQUIRED_COLOUR)  # in the order of PHASES
WATERFALL_HEIGHT = 420
GAPS_HEIGHT = 240
FEW = 40  # requests whose bars may fill their rows
AGGRESSOR_COLOUR = "#d97706"
DOT_COLOUR = "#2563eb"


def waterfall(bars: pd.DataFrame) -> alt.Chart:
    """Each request as a bar over seconds, earliest on top; `bars` as of run_details.phases, with phases in words."""
    chart = _waterfall(frozenset(bars.phase), bars.row.nunique() < FEW).copy(deep=False)
    chart.data = bars
    return chart


@lru_cache
def _waterfall(phases: frozenset[str], few: bool) -> alt.Chart:
    """The chart without its data: to say it in Altair takes as long as all the rest."""
    names = [t(phase) for phase in PHASES]
    present = [n for n in names if n in phases]
    colours = [c for n, c in zip(names, PHASE_COLOURS, strict=True) if n in present]
    return (
        alt.Chart(alt.NamedData(name="bars"))
        .mark_bar(height={"band": 1} if few else 3, aria=False)  # hundreds of bars; the chart says what it shows
        .encode(
            x=alt.X("from_s:Q", title=t("Seconds since the repeat began"), scale=alt.Scale(nice=False)),
            x2="to_s:Q",
            y=alt.Y("row:O", title=t("Requests shown, by schedule"), axis=alt.Axis(labels=False, ticks=False)),
            color=alt.Color(
                "phase:N", sort=present, title=None, legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=present, range=colours),
            ),
            tooltip=[
                alt.Tooltip("request:Q", title=t("Request")), alt.Tooltip("phase:N", title=t("Part")),
                alt.Tooltip("from_s:Q", title=t("From (s)"), format=".3f"),
                alt.Tooltip("to_s:Q", title=t("To (s)"), format=".3f"),
                alt.Tooltip("why:N", title=t("Why it is named")),
            ],
        )
        .properties(height=WATERFALL_HEIGHT)
    )  # fmt: skip


def gaps_in_time(gaps: pd.DataFrame, aggressor: tuple[float, float] | None) -> alt.LayerChart:
    """Gaps between tokens when they ended; `gaps` has request, end_s, gap_ms. The aggressor's time is a band behind."""
    dots = (
        alt.Chart(gaps)
        .mark_circle(size=14, opacity=0.55, color=DOT_COLOUR, aria=False)
        .encode(
            x=alt.X("end_s:Q", title=t("Seconds since the repeat began"), scale=alt.Scale(nice=False)),
            y=alt.Y("gap_ms:Q", title=t("Gap between tokens (ms)")),
            tooltip=[
                alt.Tooltip("request:Q", title=t("Request")),
                alt.Tooltip("end_s:Q", title=t("Ended (s)"), format=".3f"),
                alt.Tooltip("gap_ms:Q", title=t("Gap (ms)"), format=",.1f"),
            ],
        )
    )
    if aggressor is None:
        return alt.layer(dots).properties(height=GAPS_HEIGHT)
    interval = pd.DataFrame({"begin": [aggressor[0]], "end": [aggressor[1]]})
    band = alt.Chart(interval).mark_rect(color=AGGRESSOR_COLOUR, opacity=0.15).encode(x="begin:Q", x2="end:Q")
    return alt.layer(band, dots).properties(height=GAPS_HEIGHT)
