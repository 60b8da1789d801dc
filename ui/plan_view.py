"""A plan as it reads: hypotheses, stages and load points, contract, commands."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.condition_line import format_condition
from planner.poc import Plan
from ui.parts import plain
from ui.text import t


def hypotheses(plan: Plan) -> None:
    """Each hypothesis with its conditions as lines, what is expected, and what follows from a no."""
    for h in plan.hypotheses:
        with st.container(border=True):
            st.markdown(f"**{plain(h.id)}** {plain(h.statement)}")
            st.code("\n".join(format_condition(c) for c in h.conditions), language=None)
            if h.warning:
                st.warning(plain(h.warning), icon=":material/report:")
            elif h.expectation:
                st.markdown(t("Expected: {what}", what=plain(h.expectation)))
            st.markdown(
                t("How: {method} **If rejected:** {rejected}", method=plain(h.method), rejected=plain(h.if_rejected))
            )


def stages(plan: Plan) -> None:
    """Two stages and the load points that they run."""
    for s in plan.stages:
        st.markdown(t("**Stage {name}** {why} Points: {points}.", name=plain(s.name), why=plain(s.why),
                      points=plain(", ".join(s.points))))  # fmt: skip
        if s.rule:
            st.markdown(
                t("Rule: {setting} is the largest point of stage {stage} at which this holds:",
                  setting=f"`{s.rule.setting}`", stage=plain(s.rule.from_stage))
            )  # fmt: skip
            st.code(format_condition(s.rule.keeps), language=None)
    points = [
        {
            t("Point"): p.name,
            t("Load"): plain(p.in_words())
            if p.shape not in ("closed", "open")
            else t("{n} in flight", n=p.in_flight)
            if p.in_flight
            else t("{rate:g} requests/s, {arrival}", rate=p.rate_per_s, arrival=t(p.arrival)),
            t("Prompt (tokens)"): p.input_tokens,
            t("Answer (tokens)"): p.output_tokens,
            t("Shared prefix"): f"{p.shared_prefix:.0%}",
            t("Requests"): p.requests,
            t("Warm-up"): p.warmup_requests,
        }
        for p in plan.load_points
    ]
    st.dataframe(pd.DataFrame(points), hide_index=True, height="content", alt=t("Load points of the plan"))


def commands(plan: Plan) -> None:
    """The start commands as the stored plan carries them."""
    for c in plan.candidates:
        st.markdown(f"**{plain(c.id)}** ({t(c.role)}) {plain(c.engine)}")
        st.code(
            " ".join(c.launch.command) or t("attached at {url}", url=c.launch.url), language="bash", wrap_lines=True
        )
