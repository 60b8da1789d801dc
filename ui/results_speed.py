"""Speed per user, total output and time to first token against requests in flight, as charts."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.requirements import Requirements
from services.verdicts import CaseState
from ui.charts import against_concurrency
from ui.results_chart import Picture, chart_of
from ui.text import t
from ui.views import speed_frame, ttft_frame


def speed_section(state: CaseState, r: Requirements) -> None:
    """The three charts with what is required drawn in; what nobody measured or predicted is said in words."""
    speeds = speed_frame(state)
    left, right = st.columns(2)
    with left:
        st.markdown(f"**{t('Speed per user, slow tail (p5)')}**")
        _speed_per_user(state.case.slug, r, speeds[speeds.metric == "user_tok_s"])
    with right:
        st.markdown(f"**{t('Total output')}**")
        _total_output(state.case.slug, r, speeds[speeds.metric == "output_tok_s"])
    st.markdown(f"**{t('Time to first token, queue included')}**")
    ttft = ttft_frame(state)
    if ttft.empty:
        st.markdown(t("Not measured at a number of requests in flight."))
    else:
        _first_token(state.case.slug, r, ttft)
    st.caption(
        t("Solid: measured. Long dashes: imported or entered. Short dashes: predicted. Dotted: simulated. Bars: range "
          "over starts and repeats.")
    )  # fmt: skip


def _speed_per_user(slug: str, r: Requirements, users: pd.DataFrame) -> None:
    if users.empty:
        st.markdown(t("Not measured, and not predicted either."))
        return
    chart_of(slug, "speed-per-user", *speed_picture(r, users), users)


def speed_picture(r: Requirements, users: pd.DataFrame) -> Picture:
    """Speed per user against requests in flight; `users` are those rows of a speed frame."""
    chart = against_concurrency(
        users, y="value", y_title=t("tok/s per user (p5)"), required=r.user_tok_s_promise,
        required_label=t("promised {x:g} tok/s", x=r.user_tok_s_promise), series="series", log=True,
    )  # fmt: skip
    return Picture(chart, t("Speed per user against requests in flight, with the promised speed"))


def _total_output(slug: str, r: Requirements, total: pd.DataFrame) -> None:
    if total.empty:
        st.markdown(t("Not measured, and not predicted either."))
        return
    chart_of(slug, "total-output", *output_picture(r, total), total)


def output_picture(r: Requirements, total: pd.DataFrame) -> Picture:
    """Total output against requests in flight; `total` are those rows of a speed frame."""
    needed = r.peak_users_max * r.user_tok_s_target
    chart = against_concurrency(
        total, y="value", y_title=t("tok/s in total"), required=needed,
        required_label=t("needed {x:,.0f} tok/s", x=needed), series="series",
    )  # fmt: skip
    return Picture(chart, t("Total output against requests in flight, with what is needed"))


@st.fragment
def _first_token(slug: str, r: Requirements, ttft: pd.DataFrame) -> None:
    who = list(dict.fromkeys(ttft.who))
    chosen = st.segmented_control(t("Whose"), who, default=who[0], required=True, key=f"ttft-who-{slug}",
                                  label_visibility="collapsed")  # fmt: skip
    shown = ttft[ttft.who == chosen]
    chart_of(slug, "ttft", *first_token_picture(r, shown, ttft), shown)


def first_token_picture(r: Requirements, shown: pd.DataFrame, among: pd.DataFrame) -> Picture:
    """TTFT percentiles of one candidate against requests in flight; `among` are those of all candidates."""
    chart = against_concurrency(
        shown, y="value", y_title=t("TTFT (ms)"), required=r.ttft_s * 1000,
        required_label=t("within {x:g} s at p{p}", x=r.ttft_s, p=r.ttft_percentile), series="series", log=True,
        among=among,
    )  # fmt: skip
    return Picture(chart, t("TTFT percentiles against requests in flight, with the required time"))
