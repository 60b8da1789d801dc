"""Observed demand beside what ran in production: the daily peaks, which server they were seen on, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import altair as alt
import pandas as pd
import streamlit as st

from planner.metrics import quantity
from services.demand import SeenDay, changes, missing, seen_days
from services.usage import Usage
from services.verdicts import CaseState
from ui.palette import KIND_COLOURS, KNEE_COLOUR
from ui.parts import deployment_words, go_to, kind_badge
from ui.text import t, tn

HEIGHT = 220
UNITS = {
    t("Peak in flight"): ("peak_in_flight", "count"), t("Requests"): ("requests", "count"),
    t("Prompt tokens, mean"): ("input_tokens", "count"), t("Answer tokens, mean"): ("output_tokens", "count"),
    t("Shared prefix"): ("shared_prefix_share", "share"), t("Coverage"): ("coverage", "share"),
}  # fmt: skip


def figures_of(days: Sequence[Usage]) -> pd.DataFrame:
    """One row a day, with units; what is not known is a dash."""
    return pd.DataFrame([
        {t("Day (UTC)"): str(u.day)} | {title: _cell(getattr(u, field), unit) for title, (field, unit) in UNITS.items()}
        for u in days
    ])  # fmt: skip


def _cell(value: float | None, unit: str) -> str:
    return "–" if value is None else quantity(value, unit)


def observed_part(state: CaseState) -> None:
    """What was observed so far, and what ran then."""
    st.subheader(t("Observed so far"))
    days = seen_days(state.evidence, state.deployments)
    if not days:
        st.markdown(t("Nothing was observed yet."))
        return
    st.markdown(f"{kind_badge('observed')} " + _window(days))
    _in_production(state, days)
    if any(d.usage.peak_in_flight is not None for d in days):
        st.altair_chart(_peaks(days), alt=t("Peak in flight, day by day, and what ran"))
    with st.expander(t("Day by day"), icon=":material/table_rows:"):
        table = figures_of([d.usage for d in days])
        table.insert(1, t("Ran"), [_ran(d) for d in days])
        table[t("Source")] = [d.source for d in days]
        day_table(table)


def day_table(table: pd.DataFrame) -> None:
    """Days as a table, figures on the right."""
    st.dataframe(
        table, hide_index=True, alt=t("What users did, day by day"),
        column_config={title: st.column_config.TextColumn(alignment="right") for title in UNITS},
    )  # fmt: skip


def _window(days: Sequence[SeenDay]) -> str:
    first, last = days[0].usage.day, days[-1].usage.day
    words = tn(len(days), "{first}", "{n} days, {first} to {last}", first=first, last=last)
    holes = missing(days)
    return f"{words}; {t('not observed: {days}', days=_runs(holes))}" if holes else f"{words}."


def _runs(days: Sequence[date]) -> str:
    """Days in a row as one span."""
    spans: list[list[date]] = []
    for day in days:
        if spans and (day - spans[-1][-1]).days == 1:
            spans[-1].append(day)
        else:
            spans.append([day])
    return ", ".join(str(s[0]) if len(s) == 1 else t("{first} to {last}", first=s[0], last=s[-1]) for s in spans) + "."


def _in_production(state: CaseState, days: Sequence[SeenDay]) -> None:
    """What runs now and since when; days that were seen before anything was deployed are marked."""
    if not state.deployments:
        go_to("adr-log", t("No deployment is recorded, so these days are on whatever ran. Record it:"))
        return
    running = state.deployments[-1]
    st.markdown(f"**{t('In production')}:** {deployment_words(running)}")
    before = sum(d.ran is None for d in days)
    if before:
        st.markdown(
            t(
                "{n} of these days lie before the first deployment: they tell what users did on something else.",
                n=before,
            )
        )


def _ran(day: SeenDay) -> str:
    return f"{day.ran.candidate} {day.ran.engine_version}" if day.ran else t("before deployment")


def _peaks(days: Sequence[SeenDay]) -> alt.LayerChart:
    """A bar a day, pale before the first deployment; a rule where another one began to run."""
    frame = pd.DataFrame([
        {"day": pd.Timestamp(d.usage.day), "peak": d.usage.peak_in_flight, "ran": _ran(d),
         "part": t("in production") if d.ran else t("before deployment"), "coverage": _cell(d.usage.coverage, "share")}
        for d in days if d.usage.peak_in_flight is not None
    ])  # fmt: skip
    x = alt.X("yearmonthdate(day):T", title=None, axis=alt.Axis(format="%d %b", labelOverlap=True))
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=x, y=alt.Y("peak:Q", title=t("Peak in flight")),
            color=alt.Color("part:N", title=None, legend=alt.Legend(orient="top"),
                            scale=alt.Scale(domain=[t("before deployment"), t("in production")],
                                            range=[KIND_COLOURS["bound"], KIND_COLOURS["observed"]])),
            tooltip=[alt.Tooltip("day:T", title=t("Day"), format="%Y-%m-%d"), alt.Tooltip("peak:Q", title=t("Peak")),
                     alt.Tooltip("ran:N", title=t("Ran")), alt.Tooltip("coverage:N", title=t("Coverage"))],
        )
    )  # fmt: skip
    begun = pd.DataFrame([{"day": pd.Timestamp(d.usage.day), "ran": _ran(d)} for d in changes(days)],
                         columns=["day", "ran"])  # fmt: skip
    lines = alt.Chart(begun).mark_rule(color=KNEE_COLOUR, strokeDash=[4, 3]).encode(x=x)
    above = alt.value(-9)  # the plot: on the bars nobody could read it
    words = alt.Chart(begun).mark_text(align="left", color=KNEE_COLOUR, fontSize=12).encode(x=x, y=above, text="ran:N")
    return alt.layer(bars, lines, words).properties(height=HEIGHT)
