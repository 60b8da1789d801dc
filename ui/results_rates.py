"""The rate curve: first token and goodput against the offered rate, with the asked limits and the knee marked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from planner.knee import Knee, in_words
from planner.measured_capacity import UnitsMeasured
from planner.requirements import Requirements
from services.results import rate_capacity, rate_knees, ttft_ladder, with_ttft_counted
from services.verdicts import KNOWN_BY, CaseState
from ui.cached import workspace
from ui.charts import Picture
from ui.parts import kind_badge, plain, shown_errors
from ui.rate_charts import against_rate
from ui.results_chart import chart_of
from ui.text import t
from ui.views import rate_frame
from ui.words import metrics_in_words


def rates_section(state: CaseState, r: Requirements) -> None:
    """The curve of every candidate that was offered a rate; one sentence where none was."""
    st.subheader(t("Rate curve"))
    statistic = f"p{r.ttft_percentile}"
    ttft = rate_frame(state, "ttft_ms", statistic)
    if ttft.empty:
        st.markdown(t("Not measured at a rate of requests."))
        return
    _curve(state, r, in_seconds(ttft), rate_frame(state, "goodput", "value"))


def in_seconds(ttft: pd.DataFrame) -> pd.DataFrame:
    """A rate frame of TTFT with its values in seconds."""
    return ttft.assign(value=ttft.value / 1000, low=ttft.low / 1000, high=ttft.high / 1000)


@st.fragment
def _curve(state: CaseState, r: Requirements, ttft: pd.DataFrame, goodput: pd.DataFrame) -> None:
    slug = state.case.slug
    asked_s = st.number_input(
        t("First token within (s)"), min_value=0.05, max_value=600.0, value=r.ttft_s, step=0.5, format="%g", width=220,
        key=f"rate-level-{slug}", help=t("Another limit than the one you require shows what it would buy."),
    )  # fmt: skip
    with shown_errors():
        counted = state if asked_s == r.ttft_s else with_ttft_counted(workspace(), state, asked_s)
        knees = rate_knees(counted, asked_s)
        st.table(ladder_frame(counted, r, asked_s).set_index(t("First token within")), border="horizontal")
        for knee in knees:
            st.markdown(_knee_line(knee))
        first_token = first_token_by_rate(r, ttft, knees, asked_s)
        if goodput.empty:
            chart_of(slug, "ttft-by-rate", *first_token, ttft)
            st.caption(t("Goodput by rate: not measured."))
            return
        left, right = st.columns(2)
        with left:
            chart_of(slug, "ttft-by-rate", *first_token, ttft)
        with right:
            chart_of(slug, "goodput-by-rate", *goodput_by_rate(goodput, knees), goodput)


def first_token_by_rate(r: Requirements, ttft: pd.DataFrame, knees: Sequence[Knee], asked_s: float) -> Picture:
    """TTFT in seconds against the offered rate, with the required and the asked limit and the knees."""
    limits = dict.fromkeys((r.ttft_s, asked_s))
    levels = [(s, t("{x:g} s, required", x=s) if s == r.ttft_s else t("{x:g} s", x=s)) for s in limits]
    title = t("TTFT p{p} (s)", p=r.ttft_percentile)
    chart = against_rate(ttft, y_title=title, levels=levels, knees=_marks(knees), log=True)
    words = t("First token at p{p} against the offered rate, with the limits and the knee", p=r.ttft_percentile)
    return Picture(chart, words)


def goodput_by_rate(goodput: pd.DataFrame, knees: Sequence[Knee]) -> Picture:
    """The share of requests that met every level against the offered rate."""
    chart = against_rate(goodput, y_title=t("Goodput"), knees=_marks(knees), share=True)
    return Picture(chart, t("Share of requests that met every level, by rate"))


def _marks(knees: Sequence[Knee]) -> list[tuple[float, str]]:
    return [(k.at.amount, t("knee {x}", x=in_words("open", k.at.amount))) for k in knees if k.at]


def ladder_frame(state: CaseState, r: Requirements, asked_s: float) -> pd.DataFrame:
    """What one unit takes at the required limit and at looser ones, and the units that the peak would need of it."""
    rows = []
    for limit_s in ttft_ladder(r, asked_s):
        first = {found.knee.candidate: found for found in reversed(rate_capacity(state, limit_s))}  # what says most
        for knee, needed in first.values():
            units = {t("Units for {n} users", n=u.users): _units(u) for u in needed}
            rows.append({
                t("First token within"): t("{x:g} s", x=limit_s),
                t("Candidate"): knee.candidate,
                t("Rate a unit keeps"): in_words("open", knee.at.amount) if knee.at else t("none"),
                **units,
                t("Known"): t(KNOWN_BY[knee.kind]) if knee.kind else "–",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _units(u: UnitsMeasured) -> str:
    return t("{n:,}, {m:,} with a spare", n=u.units, m=u.units_with_spare) if u.units else t("not known")


def _knee_line(knee: Knee) -> str:
    badge = kind_badge(knee.kind) if knee.kind else ""
    said = plain(metrics_in_words(knee.sentence))
    return f"{badge} {plain(knee.candidate)}: {said} :small[{plain(knee.lengths)}]"
