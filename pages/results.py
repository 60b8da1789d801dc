"""Results: what was measured against what was required and predicted, and a verdict for every hypothesis."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.condition_line import format_test
from planner.conditions import Verdict
from planner.metrics import quantity
from services.verdicts import judge_hypotheses, judge_levels, users_served
from ui.charts import against_concurrency, as_csv, svg
from ui.parts import go_to, head, kind_badge, next_step, plain, state_badge
from ui.run_view import one_run
from ui.session import open_case
from ui.text import t
from ui.views import (
    SEEN,
    bound_frame,
    figure_in_words,
    kv_spread,
    leaves,
    other_loads,
    outcomes_frame,
    results_frame,
    speed_frame,
    ttft_frame,
)
from ui.words import metrics_in_words

state = open_case()
case, r, plan = state.case, state.requirements, state.plan

head("results", t("What was seen, against what you need and what was predicted."))
for finding in state.findings:
    st.warning(plain(finding), icon=":material/report:")

if r is None or plan is None:
    go_to("poc-plan", t("There is no plan yet, so there is nothing to judge. Make it first:"))
    st.stop()

kinds = dict.fromkeys(e.kind.value for e in state.evidence if e.kind in SEEN)
if kinds:
    st.markdown(t("Known from:") + " " + " ".join(kind_badge(k) for k in kinds))
if "simulated" in kinds:
    st.warning(t("Simulated figures come from the emulator. They test the instrument and decide nothing."),
               icon=":material/science:")  # fmt: skip
if others := other_loads(state):
    st.warning(
        t("Left out below: figures of {points} that were taken at another load or length than this plan's.",
          points=plain(", ".join(others))), icon=":material/rule:",
    )  # fmt: skip
if "measured" not in kinds:
    go_to("measure", t("Nothing was measured on this machine yet."))
st.markdown(f"#### {plain(users_served(state).sentence)}")


def chart_of(chart: object, alt: str, key: str, frame: pd.DataFrame) -> None:
    """A chart with its data and picture to take along."""
    st.altair_chart(chart, alt=alt, key=f"chart-{key}")
    with st.container(horizontal=True):
        st.download_button(
            t("SVG"), lambda: svg(chart), file_name=f"{case.slug}-{key}.svg", mime="image/svg+xml",
            icon=":material/image:", type="tertiary", key=f"svg-{key}", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            t("CSV"), as_csv(frame), file_name=f"{case.slug}-{key}.csv", mime="text/csv", icon=":material/table:",
            type="tertiary", key=f"csv-{key}", on_click="ignore",
        )  # fmt: skip


speeds = speed_frame(state)
left, right = st.columns(2)
with left:
    st.markdown(f"**{t('Speed per user, slow tail (p5)')}**")
    users = speeds[speeds.metric == "user_tok_s"]
    if users.empty:
        st.markdown(t("Not measured, and not predicted either."))
    else:
        chart_of(
            against_concurrency(
                users, y="value", y_title=t("tok/s per user (p5)"), required=r.user_tok_s_promise,
                required_label=t("promised {x:g} tok/s", x=r.user_tok_s_promise), series="series", log=True,
            ),
            t("Speed per user against requests in flight, with the promised speed"), "speed-per-user", users,
        )  # fmt: skip
with right:
    st.markdown(f"**{t('Total output')}**")
    total = speeds[speeds.metric == "output_tok_s"]
    if total.empty:
        st.markdown(t("Not measured, and not predicted either."))
    else:
        chart_of(
            against_concurrency(
                total, y="value", y_title=t("tok/s in total"), required=r.peak_users_max * r.user_tok_s_target,
                required_label=t("needed {x:,.0f} tok/s", x=r.peak_users_max * r.user_tok_s_target), series="series",
            ),
            t("Total output against requests in flight, with what is needed"), "total-output", total,
        )  # fmt: skip

st.markdown(f"**{t('Time to first token, queue included')}**")
ttft = ttft_frame(state)
if ttft.empty:
    st.markdown(t("Not measured at a number of requests in flight."))
else:
    who = list(dict.fromkeys(ttft.who))
    chosen = st.segmented_control(t("Whose"), who, default=who[0], required=True, key=f"ttft-who-{case.slug}",
                                  label_visibility="collapsed")  # fmt: skip
    shown = ttft[ttft.who == chosen]
    chart_of(
        against_concurrency(
            shown, y="value", y_title=t("TTFT (ms)"), required=r.ttft_s * 1000,
            required_label=t("within {x:g} s at p{p}", x=r.ttft_s, p=r.ttft_percentile), series="series", log=True,
        ),
        t("TTFT percentiles against requests in flight, with the required time"), "ttft", shown,
    )  # fmt: skip
st.caption(
    t("Solid: measured. Long dashes: imported or entered. Short dashes: predicted. Dotted: simulated. Bars: range over "
      "starts and repeats.")
)  # fmt: skip

st.subheader(t("Verdicts"))
evidence = {e.id: e for e in state.evidence}


def figure_table(parts: list[Verdict]) -> None:
    """Value, threshold, distance and n of every condition that was decided or at least seen."""
    rows = [
        {
            t("State"): t(v.state.value),
            t("Value"): quantity(v.value, v.unit),
            t("Threshold"): quantity(v.threshold, v.unit) if v.threshold is not None else "–",
            t("Room"): quantity(v.distance, v.unit) if v.distance is not None and v.unit != "bool" else "–",
            t("Requests or starts (n)"): f"{v.n:,}" if v.n else t("not stated"),
            t("Kind"): t(v.kind.value) if v.kind else "–",
            t("Because"): metrics_in_words(v.sentence),
        }
        for v in parts
        if v.value is not None
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index(t("State")), border="horizontal")  # it wraps the reasons


for judged in judge_hypotheses(state):
    h, verdict = judged.hypothesis, judged.verdict
    with st.container(border=True):
        st.markdown(f"{state_badge(verdict.state)} **{h.id}** {plain(h.statement)}")
        badge = f"{kind_badge(verdict.kind)} " if verdict.kind else ""
        st.markdown(f"{badge}{plain(metrics_in_words(verdict.sentence))}")
        expected = verdict.expectation or h.expectation
        if h.warning and not verdict.decided:
            st.caption(f":material/warning: {plain(h.warning)}")
        elif expected:
            st.caption(t("Expectation: {what}", what=plain(expected)))
        if verdict.side == "fails":
            st.markdown(f"**{t('Then')}:** {plain(h.if_rejected)}")
        parts = [leaf for part in judged.parts for leaf in leaves(part)]
        with st.expander(t("Evidence"), icon=":material/fact_check:"):
            figure_table(parts)
            for v in parts:
                if v.value is None:
                    st.markdown(f"- {plain(metrics_in_words(v.sentence))}")
            used = dict.fromkeys(i for v in parts for i in v.used)
            passed = dict.fromkeys((p.evidence, p.reason) for v in parts for p in v.passed_over)
            if used:
                st.markdown(f"**{t('Used')}**")
                for i in used:
                    words = metrics_in_words(figure_in_words(evidence[i]))
                    st.markdown(f"- {kind_badge(evidence[i].kind)} {plain(words)}")
            if passed:
                st.markdown(f"**{t('Passed over')}**")
                for i, reason in passed:
                    words = metrics_in_words(figure_in_words(evidence[i])) if i in evidence else i
                    st.markdown(f"- {plain(words)}: *{plain(reason)}*")
            if not used and not passed:
                st.markdown(t("No evidence yet."))

st.subheader(t("Service levels"))
levels = judge_levels(state)
if levels:
    candidates = [c.id for c in plan.candidates]
    lines = [
        f"| {t('Load point')} | " + " | ".join(map(plain, candidates)) + " |",
        "|---" * (len(candidates) + 1) + "|",
    ]
    for point in plan.load_points:
        cells = " | ".join(state_badge(levels[c, point.name].state) for c in candidates)
        lines.append(f"| {plain(point.name)} :small[{plain(point.in_words())}] | {cells} |")
    st.markdown("\n".join(lines))
    st.caption(
        t(
            "All levels together: {levels}.",
            levels=plain(metrics_in_words("; ".join(map(format_test, plan.service_levels)))),
        )
    )
    with st.expander(t("Why"), icon=":material/help:"):
        for verdict in levels.values():
            st.markdown(f"- {state_badge(verdict.state)} {plain(metrics_in_words(verdict.sentence))}")

st.subheader(t("Figures"))
table = results_frame(state)
if table.empty:
    st.markdown(t("Not measured."))
else:
    whose = {t(name): st.column_config.TextColumn(pinned=True) for name in ("Candidate", "Load point")}
    st.dataframe(
        table, hide_index=True, height="content", column_config=whose, alt=t("Figures by candidate and load point")
    )
    st.download_button(
        t("CSV"), as_csv(table), file_name=f"{case.slug}-figures.csv", mime="text/csv", icon=":material/table:",
        on_click="ignore", key="csv-figures",
    )  # fmt: skip

st.subheader(t("Outcomes"))
outcomes = outcomes_frame(state)
if outcomes.empty:
    st.markdown(t("No engine was started yet."))
else:
    st.dataframe(outcomes, hide_index=True, alt=t("What each engine start came to"))
    for sentence in kv_spread(state):
        st.caption(t("KV capacity of {what}", what=plain(sentence)))

st.subheader(t("Measured / bound"))
ratios = bound_frame(state)
if ratios.empty:
    st.markdown(t("Not measured."))
else:
    st.dataframe(ratios, hide_index=True, width="content", alt=t("Measured throughput over the bound"))

one_run(state)
next_step("results")
