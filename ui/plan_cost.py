"""What a plan takes: minutes and tokens by candidate and load point, what a budget cost, and what n can prove."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from planner.plan_budget import PlanCost, PointCost
from planner.plan_trim import Lost
from planner.poc import Plan
from planner.sample_size import Claim, claims, starts_needed
from planner.units import format_duration
from ui.hypothesis_forms import about
from ui.parts import kind_badge, plain
from ui.text import t
from ui.words import metrics_in_words

ENDS = {"predicted": "", "stop rule": "the limit, and warm-up", "no prediction": "at most, not predicted"}
SERVICE_LEVEL = "service level"


def cost(plan: Plan, found: PlanCost, lost: Sequence[Lost] = ()) -> None:
    """The time as one sentence, four figures, what the budget cost, and a table by candidate and load point."""
    st.markdown(
        t("{badge} About **{time}** of GPU time: {starts} starts of each server, five minutes to load, each candidate "
          "at its own predicted speed. Downloads come on top.",
          badge=kind_badge("planning"), time=about(found.minutes), starts=plan.starts)
    )  # fmt: skip
    figures = st.columns(len(plan.candidates) + 2)
    for column, c in zip(figures, plan.candidates, strict=False):
        column.metric(plain(c.id), about(found.minutes_of(c.id)))
    figures[-2].metric(t("Prompt tokens"), _millions(found.prompt_tokens))
    figures[-1].metric(t("Answer tokens"), _millions(found.output_tokens))
    if lost:
        with st.container(border=True):
            st.markdown(t("**What the budget of {time} cost**", time=format_duration((plan.budget_min or 0) * 60)))
            st.markdown("\n".join(
                t("- {what} ({time}): {why}.", what=plain(x.what), time=format_duration(x.minutes * 60),
                  why=plain(x.why))
                for x in lost
            ))  # fmt: skip
    cut = [p for p in found.points if p.ends == "stop rule"]
    if cut:
        st.warning(
            t("The plan's limit of {limit} ends these before all requests are through: {points}. Fewer requests will "
              "count there.", limit=format_duration(plan.stop.max_point_s),
              points=plain(", ".join(dict.fromkeys(f"{p.candidate} at {p.point}" for p in cut)))),
            icon=":material/timer_off:",
        )  # fmt: skip
    with st.expander(t("Time and tokens by load point"), icon=":material/schedule:"):
        st.dataframe(pd.DataFrame([_row(p) for p in found.points]), hide_index=True, height="content",
                     alt=t("Time and tokens by candidate and load point"))  # fmt: skip


def _millions(tokens: int) -> str:
    return f"{tokens / 1e6:,.1f} M" if tokens >= 100_000 else f"{tokens:,}"


def _row(p: PointCost) -> dict[str, object]:
    note = ENDS[p.ends]
    return {
        t("Candidate"): p.candidate, t("Stage"): p.stage, t("Point"): p.point, t("Runs"): p.times,
        t("Each"): format_duration(p.seconds) + (f" ({t(note)})" if note else ""),
        t("Together"): format_duration(p.total_s),
        t("Prompt tokens"): f"{p.times * p.prompt_tokens:,}", t("Answer tokens"): f"{p.times * p.output_tokens:,}",
    }  # fmt: skip


def sample_sizes(plan: Plan) -> None:
    """Which percentiles can be claimed with the plan's requests and starts, and how many would allow what."""
    found, means = claims(plan), starts_needed(plan)
    short = [c for c in found if not c.possible and c.where != SERVICE_LEVEL]
    few = sorted({m.where for m in means if not m.possible})
    if short:
        st.warning(
            t("Too few requests to prove: {what}.", what=plain(metrics_in_words(
                "; ".join(f"{c.where} {c.test} at {c.point} (n = {c.counted})" for c in short)))),
            icon=":material/report:",
        )  # fmt: skip
    if few:
        st.warning(
            t("{ids} are decided over starts, and the plan has {n}: three are needed.", ids=plain(", ".join(few)),
              n=plan.starts),
            icon=":material/report:",
        )  # fmt: skip
    asked = [c for c in found if c.where != SERVICE_LEVEL]
    if asked:
        st.dataframe(_frame(asked), hide_index=True, height="content", alt=t("What the sample sizes can prove"))
    st.caption(
        t("n: requests in the steady window over all starts. Requests in flight together share their steps: at worst "
          "they are worth one a wave. Needed: requests with which 0, 1 or 5 may miss the limit, at 99 %; a verdict is "
          "given at 95 %.")
    )  # fmt: skip
    levels = [c for c in found if c.where == SERVICE_LEVEL]
    if levels:
        with st.expander(t("Service levels at the other points ({n})", n=len(levels)), icon=":material/functions:"):
            st.dataframe(_frame(levels), hide_index=True, height="content", alt=t("Sample sizes of the service levels"))


def _frame(found: Sequence[Claim]) -> pd.DataFrame:
    return pd.DataFrame([
        {
            t("Asked by"): c.where, t("Test"): metrics_in_words(c.test), t("Point"): c.point, t("n"): c.counted,
            t("May miss it"): str(c.may_be_beyond) if c.possible else t("cannot be proved"),
            t("Waves"): c.waves,
            t("If waves move as one"): str(c.at_least_beyond) if c.sure else t("cannot be proved"),
            t("Needed"): " / ".join(f"{n:,}" for n in c.needed),
        }
        for c in found
    ])  # fmt: skip
