"""The rate curve: first token and goodput against the offered rate, with the asked limits and the knee marked."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.knee import Knee, in_words
from planner.requirements import Requirements
from services.results import rate_knees, units_at
from services.verdicts import KNOWN_BY, CaseState
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
    seconds = ttft.assign(value=ttft.value / 1000, low=ttft.low / 1000, high=ttft.high / 1000)
    _curve(state, r, seconds, rate_frame(state, "goodput", "value"))


@st.fragment
def _curve(state: CaseState, r: Requirements, ttft: pd.DataFrame, goodput: pd.DataFrame) -> None:
    slug = state.case.slug
    asked_s = st.number_input(
        t("First token within (s)"), min_value=0.05, max_value=600.0, value=r.ttft_s, step=0.5, format="%g", width=220,
        key=f"rate-level-{slug}", help=t("Another limit than the one you require shows what it would buy."),
    )  # fmt: skip
    with shown_errors():
        knees = rate_knees(state, asked_s)
        for knee in knees:
            _capacity(r, knee)
        limits = dict.fromkeys((r.ttft_s, asked_s))
        levels = [(s, t("{x:g} s, required", x=s) if s == r.ttft_s else t("{x:g} s", x=s)) for s in limits]
        marks = [(k.at.amount, t("knee {x}", x=in_words("open", k.at.amount))) for k in knees if k.at]
        chart = against_rate(
            ttft, y_title=t("TTFT p{p} (s)", p=r.ttft_percentile), levels=levels, knees=marks, log=True
        )
        words = t("First token at p{p} against the offered rate, with the limits and the knee", p=r.ttft_percentile)
        if goodput.empty:
            chart_of(slug, "ttft-by-rate", chart, words, ttft)
            st.caption(t("Goodput by rate: not measured."))
            return
        left, right = st.columns(2)
        with left:
            chart_of(slug, "ttft-by-rate", chart, words, ttft)
        with right:
            shares = against_rate(goodput, y_title=t("Goodput"), knees=marks, share=True)
            chart_of(slug, "goodput-by-rate", shares, t("Share of requests that met every level, by rate"), goodput)


def _capacity(r: Requirements, knee: Knee) -> None:
    """What one unit takes at this limit, and the units that the peak would need of it."""
    badge = kind_badge(knee.kind) if knee.kind else ""
    known = t(KNOWN_BY[knee.kind]) if knee.kind else ""
    head = (
        t("**{rate} per unit**, {known}", rate=in_words("open", knee.at.amount), known=known)
        if knee.at
        else t("**No rate per unit**, {known}", known=known)
    )
    units = " ".join(u.sentence for u in units_at(r, knee)) if knee.at else ""
    said = plain(metrics_in_words(f"{knee.sentence} {units}".strip()))
    st.markdown(f"{badge} {plain(knee.candidate)}: {head} :small[{plain(knee.lengths)}]  \n{said}")
