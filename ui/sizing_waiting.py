"""Waiting on the Sizing page: TTFT as a range, and what batch policy and arrivals do to it. Simulated, not measured."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import pandas as pd
import streamlit as st

from planner.capacity import Sizing
from planner.derive_waiting import LEAST_PREDICTED_S, policies_derivation, waiting_derivations
from planner.errors import InputError
from planner.frozen import sha256_of
from planner.queue_load import Process
from planner.queue_ranges import BURSTINESS, SPREAD_CV, WaitingRange, Window, compare, grows, waiting_range
from planner.queue_result import Simulation, Summary
from planner.requirements import Requirements
from planner.statistics import percentile
from planner.units import format_duration, format_tok_s
from ui.charts import cumulative, timeline
from ui.parts import explained, kind_badge, plain
from ui.text import t

POLICY_TITLES = {"continuous": "Continuous batching", "slots": "Fixed slots", "static": "Static batches"}
ARRIVALS: dict[Process, str] = {"closed": "Users who pause", "poisson": "Poisson arrivals", "gamma": "Bursts"}


class _Run(NamedTuple):
    """One policy: its requests, and the summary of those that count."""

    simulation: Simulation
    window: Window
    summary: Summary


@st.fragment
def show(sizing: Sizing, requirements: Requirements) -> None:
    """The section, with controls of its own; without a known speed one sentence says why it is empty."""
    st.subheader(t("Waiting for the first token"))
    if sizing.inputs is None or not sizing.requests_that_fit:
        st.markdown(t("Not simulated: no request fits, or no speed is known."))
        return
    st.markdown(f"{kind_badge('simulated')} {t('Predicted by simulation, not measured.')}")
    units = st.number_input(t("Units that share the peak"), 1, 10_000, 1, key="waiting-units", width=240)
    key = _key(sizing, requirements)
    try:
        _show_range(_range(key, units, sizing, requirements), sizing, requirements)
        more = st.expander(t("The same arrivals under three policies"), icon=":material/compare_arrows:",
                           key="waiting-policies", on_change="rerun")  # fmt: skip
        if more.open:  # three more simulations and charts: only for who asks for them
            with more:
                _compared(key, units, sizing, requirements)
    except InputError as e:
        st.error(plain(str(e)), icon=":material/error:")


def _compared(key: str, units: int, sizing: Sizing, requirements: Requirements) -> None:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    process = left.segmented_control(
        t("Arrivals"), list(ARRIVALS), default="closed", required=True, format_func=lambda p: t(ARRIVALS[p]),
        key="waiting-arrivals",
    )  # fmt: skip
    spread = right.checkbox(t("Lengths differ"), key="waiting-spread")
    runs = _policies(key, units, process, spread, sizing, requirements)
    st.dataframe(_table(runs), hide_index=True, alt=t("Policies compared: first token, whole answer, goodput, cache"))
    said = _about(runs[0], process, spread)
    left, right = st.columns([6, 1], vertical_alignment="center")
    left.caption(t("Planning speed. {said} Where policies agree, one line covers the other.", said=said))
    with right:
        explained(policies_derivation([run.summary for run in runs], sizing, requirements, units, said))
    _charts(runs, requirements)


def _key(sizing: Sizing, requirements: Requirements) -> str:
    """All that a simulation depends on, as one short text."""
    parts = (sizing.inputs, sizing.launch, sizing.settings, sizing.memory)
    return sha256_of([requirements.sha256(), *(p.model_dump(mode="json") for p in parts if p)])


@st.cache_data(max_entries=64, show_spinner=False)
def _range(key: str, units: int, _sizing: Sizing, _requirements: Requirements) -> WaitingRange:
    return waiting_range(_sizing, _requirements, units=units)


@st.cache_data(max_entries=64, show_spinner=False)
def _policies(
    key: str, units: int, process: Process, spread: bool, _sizing: Sizing, _requirements: Requirements
) -> list[_Run]:
    r = _requirements
    return [
        _Run(run, window, run.summary(r.ttft_s, r.user_tok_s_promise, window.warmup_s))
        for run, window in compare(_sizing, r, process, units=units, spread=spread)
    ]


def _show_range(found: WaitingRange, sizing: Sizing, r: Requirements) -> None:
    for column, derived in zip(st.columns(2), waiting_derivations(found, sizing, r), strict=True):
        with column.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f"{t(derived.title)} **{derived.value}**")
            explained(derived)
    st.caption(
        t(
            "Over {n} cases: the stated load as users with and without pauses and as arrivals, by the bound and by the "
            "planning value. Required: {x:g} s at p{p}. No cached prefixes.",
            n=len(found.cases), x=r.ttft_s, p=r.ttft_percentile,
        )
    )  # fmt: skip
    if found.grows:
        loads = ", ".join(t(name) for name in found.grows)
        st.warning(t("More arrives than one unit finishes ({loads}): the queue grows, and a longer window would show "
                     "longer waits.", loads=loads), icon=":material/trending_up:")  # fmt: skip
    with st.expander(t("Cases behind the range")):
        st.dataframe(_cases(found), hide_index=True, alt=t("TTFT and answer time under each assumed load"))


def _cases(found: WaitingRange) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                t("Load"): t(c.load), t("Step times"): t(c.kind.value), t("TTFT p50"): _duration(c.ttft_p50_s),
                t("TTFT p95"): _duration(c.ttft_p95_s), t("Answer p50"): _duration(c.e2e_p50_s),
                t("Answer p95"): _duration(c.e2e_p95_s), t("Goodput"): f"{c.goodput:.0%}",
                t("Queue"): t("grows") if c.grows else t("steady"),
            }
            for c in found.cases
        ]
    )  # fmt: skip


def _table(runs: list[_Run]) -> pd.DataFrame:
    rows = []
    for _, _, s in runs:
        if s.ttft_s is None or s.e2e_s is None:
            continue
        rows.append(
            {
                t("Policy"): t(POLICY_TITLES[s.policy]), t("TTFT p50"): _duration(s.ttft_s.p50),
                t("TTFT p95"): _duration(s.ttft_s.p95), t("Answer p50"): _duration(s.e2e_s.p50),
                t("Answer p95"): _duration(s.e2e_s.p95),
                t("Goodput"): t("none came") if s.goodput is None else f"{s.goodput:.0%}",
                t("Total output"): format_tok_s(s.output_tok_s), t("Preemptions"): f"{s.preemptions:,}",
                t("KV peak"): f"{s.kv_peak_share:.0%}",
                t("Queue"): t("grows") if grows(s) else t("steady"),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _about(run: _Run, process: Process, spread: bool) -> str:
    """What was offered, in words: requests, window, mean lengths, and what the arrivals assume."""
    served = run.simulation.after(run.window.warmup_s)
    n = max(1, len(served))
    said = t(
        "{n:,} requests in {duration} after {warmup} of warm-up, on average {prompt:,.0f} in / {output:,.0f} out.",
        n=len(served), duration=format_duration(run.window.duration_s - run.window.warmup_s),
        warmup=format_duration(run.window.warmup_s), prompt=sum(s.prompt_tokens for s in served) / n,
        output=sum(s.output_tokens for s in served) / n,
    )  # fmt: skip
    more = []
    if process == "gamma":
        more.append(t("Bursts: gamma arrivals of burstiness {b:g}.", b=BURSTINESS))
    if spread:
        more.append(t("Lengths: log-normal, deviation {cv:g} of the mean, cut at the context.", cv=SPREAD_CV))
    return " ".join([said, *more])


def _charts(runs: list[_Run], r: Requirements) -> None:
    names = [t(POLICY_TITLES[run.simulation.policy]) for run in runs]
    first, whole = [], []
    for name, run in zip(names, runs, strict=True):
        served = run.simulation.after(run.window.warmup_s)
        first += _shares(name, [s.ttft_s for s in served])
        whole += _shares(name, [s.e2e_s for s in served])
    left, right = st.columns(2)
    with left:
        _draw(
            cumulative(pd.DataFrame(first), x_title=t("Seconds to the first token"), order=names, limit=r.ttft_s),
            t("Share of requests by time to first token, for each policy, with the required limit"),
        )
    with right:
        _draw(
            cumulative(pd.DataFrame(whole), x_title=t("Seconds to the last token"), order=names),
            t("Share of requests by time to the last token, for each policy"),
        )
    held = [
        {"t_s": look.t_s, "value": look.kv_share * 100, "name": name}
        for name, run in zip(names, runs, strict=True)
        for look in run.simulation.timeline
    ]
    if held:
        chart = timeline(pd.DataFrame(held), y_title=t("KV cache held (%)"), x_title="Seconds of simulated time",
                         order=names)  # fmt: skip
        _draw(chart, t("KV cache held over simulated time, for each policy"))


def _shares(name: str, seconds: list[float]) -> list[dict[str, object]]:
    """Every percentile of a distribution: what a chart can show of it."""
    ordered = sorted(seconds)
    return [{"name": name, "share": q / 100, "seconds": percentile(ordered, q)} for q in range(101)] if ordered else []


def _draw(chart: alt.Chart | alt.LayerChart, words: str) -> None:
    st.vega_lite_chart(spec=chart.to_dict(validate=False), alt=words)


def _duration(seconds: float) -> str:
    return t("under 1 ms") if seconds < LEAST_PREDICTED_S else format_duration(seconds)
