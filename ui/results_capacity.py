"""Knee, batch limit, capacity of one unit, units for the peak and their cost, all from what was seen."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.cost import Cost
from planner.knee import Knee
from planner.measured_capacity import capacity_words
from planner.poc import Plan
from planner.request_rate import DEFAULT_UTILISATION
from services.results import CandidateResult, results_of
from services.verdicts import CaseState
from ui.cached import workspace
from ui.parts import kind_badge, plain, shown_errors
from ui.text import t
from ui.words import metrics_in_words


def capacity_section(state: CaseState, plan: Plan) -> None:
    """A box a candidate; the target utilisation is the one thing that a person sets."""
    st.subheader(t("Best operating point, and units from it"))
    if not plan.service_levels:
        st.markdown(t("The plan promises nothing, so no load can be said to keep it."))
        return
    _boxes(state, plan)


@st.fragment
def _boxes(state: CaseState, plan: Plan) -> None:
    percent = st.number_input(
        t("Load a unit to at most (%)"), min_value=1, max_value=100, value=round(DEFAULT_UTILISATION * 100), step=5,
        width=220, key=f"utilisation-{state.case.slug}", help=t("Of the rate that it was seen to keep the levels at."),
    )  # fmt: skip
    with shown_errors():
        found = results_of(workspace(), state, percent / 100)
        flags = {c.id: c.launch.stage_settings.get("max_num_seqs", "max_num_seqs") for c in plan.candidates}
        for one in found:
            if one.knees:
                _box(one, flags[one.candidate])
        undecided = [one.candidate for one in found if not one.knees]
        if undecided:
            st.markdown(
                t("No load decides it for {who}: not measured, or not enough.", who=plain(", ".join(undecided)))
            )


def _box(one: CandidateResult, flag: str) -> None:
    with st.container(border=True):
        keeps = capacity_words(one.unit)
        capacity = t("one unit keeps {what}", what=" · ".join(keeps)) if keeps else t("no load keeps every level")
        st.markdown(f"**{plain(one.candidate)}**: {plain(capacity)}")
        for knee in one.knees:
            st.markdown(_knee_line(knee))
        if one.limit and one.limit.max_num_seqs:
            st.markdown(f"`{flag} {one.limit.max_num_seqs}` {plain(one.limit.reason)}")
        elif one.limit:
            st.markdown(f"`{flag}`: {plain(one.limit.reason)}")
        if any(u.units for u in one.units):
            st.table(units_frame(one).set_index(t("Users at once")), border="horizontal")
        for u in one.units:
            if u.units is None:
                st.markdown(plain(u.sentence))
        if one.cost:
            st.caption(plain(cost_in_words(one.cost)))


def _knee_line(knee: Knee) -> str:
    badge = kind_badge(knee.kind) if knee.kind else ""
    way = t("closed loop") if knee.way == "closed" else t("open loop")
    return f"{badge} {plain(metrics_in_words(knee.sentence))} :small[{way}, {plain(knee.lengths)}]"


def units_frame(one: CandidateResult) -> pd.DataFrame:
    """A row an end of the peak; what nothing decides reads "not measured"."""

    def count(n: int | None) -> str:
        return t("not measured") if n is None else f"{n:,}"

    rows = [
        {
            t("Users at once"): f"{u.users:,}",
            t("By users at once"): count(u.by_users),
            t("By total output"): count(u.by_total),
            t("By rate"): f"{count(u.by_rate)} ({u.rate_per_s:.3g} req/s)",
            t("Units"): count(u.units),
            t("With one to spare"): count(u.units_with_spare),
        }
        for u in one.units
    ]
    return pd.DataFrame(rows)


def cost_in_words(c: Cost) -> str:
    """Power and money per million output tokens at the knee; what rests on an unknown input says so."""
    power = t("{w:,.0f} W a unit", w=c.unit_power_w) if c.unit_power_w is not None else t("power not known")
    energy = c.kwh_per_million_tokens
    per_token = t("{x:.3g} kWh per million tokens", x=energy) if energy is not None else ""
    total = c.total_per_million_tokens
    money = (
        t("{x:,.2f} {currency} per million tokens", x=total, currency=c.currency)
        if total is not None
        else t("cost not known: price, years or electricity is not stated")
    )
    speed = t("At {x:,.0f} tok/s a unit", x=c.unit_tok_s)
    return f"{speed}: {', '.join(x for x in (power, per_token, money) if x)}."
