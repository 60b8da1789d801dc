"""Speed per user, total output and time to first token against requests in flight, as sections of the Results page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.requirements import Requirements
from services.verdicts import CaseState
from ui.results_chart import chart_of
from ui.speed_charts import first_token_picture, output_picture, speed_picture
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


def _total_output(slug: str, r: Requirements, total: pd.DataFrame) -> None:
    if total.empty:
        st.markdown(t("Not measured, and not predicted either."))
        return
    chart_of(slug, "total-output", *output_picture(r, total), total)


@st.fragment
def _first_token(slug: str, r: Requirements, ttft: pd.DataFrame) -> None:
    who = list(dict.fromkeys(ttft.who))
    chosen = st.segmented_control(t("Whose"), who, default=who[0], required=True, key=f"ttft-who-{slug}",
                                  label_visibility="collapsed")  # fmt: skip
    shown = ttft[ttft.who == chosen]
    chart_of(slug, "ttft", *first_token_picture(r, shown, ttft), shown)
