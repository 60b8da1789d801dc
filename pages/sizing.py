"""Sizing: what fits, how fast it can be, and how many units it takes; every figure explained in one click."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.scaling import BY_KIND
from planner.throughput import KINDS
from planner.units import GB, format_duration, format_gb, format_tok_s
from services.cases import sizings
from ui.cached import workspace
from ui.charts import against_concurrency, memory_split
from ui.parts import explained, go_to, head, kind_badge, next_step, plain
from ui.session import open_case
from ui.text import t

ws = workspace()
state = open_case()
r = state.requirements
assert r is not None

head("sizing", t("What fits, how fast it can be, how many units it takes. None of this is measured."))

sized = sizings(ws, r)
labels = {s.plan.id: f"{s.plan.id} · {s.plan.label}" for s in sized}
chosen = st.segmented_control(
    t("Model plan"),
    list(labels),
    default=sized[0].plan.id,
    format_func=labels.get,
    key="plan",
    label_visibility="collapsed",
)
one = next((s for s in sized if s.plan.id == chosen), sized[0])
if one.sizing is None:
    st.error(plain(one.problem), icon=":material/error:")
    go_to("requirements", t("Change the model plan or the machine:"))
    st.stop()
s: Sizing = one.sizing
m = s.memory

st.markdown(
    f"**{plain(s.model)}** {s.plan.quantization} · KV {s.plan.kv_cache_dtype} · {plain(ws.catalog.gpu(s.gpu).name)}"
)
st.markdown(f"#### {plain(s.sentence)}")
for warning in s.warnings:
    st.warning(plain(warning), icon=":material/warning:")

if s.units:
    st.subheader(t("Units"))
    users = r.peak_users_max
    for column, kind in zip(st.columns(3), KINDS, strict=True):
        need = s.units_for(kind, users)
        if need is None:
            continue
        with column.container(border=True, height="stretch"):
            st.markdown(kind_badge(kind))
            found = t("{n} units", n=need.units) if need.units is not None else t("no number of units")
            st.markdown(f"### {found}")
            st.markdown(t(BY_KIND[kind]))
            spare = t("{n} with one spare", n=need.units_with_spare) if need.units_with_spare else t("out of reach")
            st.caption(
                t(
                    "{spare}. By speed per user: at most {batch} at once. By total: {total} units. Decides: {binding}.",
                    spare=spare, batch=need.largest_batch, total=need.units_by_total, binding=t(need.binding),
                )
            )  # fmt: skip
            explained(s.derivation(kind.value))

left, right = st.columns(2)
with left:
    st.subheader(t("Memory"))
    parts = [
        (t("weights"), m.budget.weights), (t("KV cache"), m.budget.kv), (t("engine reserve"), m.budget.reserve),
        (t("other tenants"), m.budget.tenants), (t("left outside"), m.budget.outside),
    ]  # fmt: skip
    frame = pd.DataFrame([{"part": name, "gb": size / GB} for name, size in parts if size > 0])
    st.altair_chart(memory_split(frame), alt=t("Split of the device memory in GB"))
    rows = (
        ("weights", t("Weights"), format_gb(m.weights.total)),
        ("kv_per_token", t("KV per token"), f"{m.kv_bytes_per_token:,} B"),
        ("kv_per_request", t("KV per request"), format_gb(m.kv_bytes_per_request)),
        ("kv_pool", t("KV cache"), format_gb(m.budget.kv)),
        ("requests_that_fit", t("Requests of full context that fit"), f"{s.requests_that_fit:,}"),
        ("reserve", t("Engine reserve"), format_gb(m.budget.reserve)),
    )
    for key, label, value in rows:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"{label}: **{value}**")
            explained(s.derivation(key))
with right:
    st.subheader(t("One after the other, or all at once"))
    if s.completion:
        c = s.completion
        a, b = st.columns(2)
        a.metric(t("Last of {n} users, sequential", n=c.users), format_duration(c.sequential_s), border=True)
        b.metric(t("Last of {n} users, batched", n=c.users), format_duration(c.batched_s), border=True)
        st.caption(
            t(
                "{x:.1f} times sooner, by the bound. One step reads {all}: weights {w} once, KV {kv} for {n} requests.",
                x=c.speed_up, all=format_gb(c.step_gb * GB), w=format_gb(c.step_weights_gb * GB),
                kv=format_gb(c.step_kv_gb * GB), n=c.users,
            )
        )  # fmt: skip
    st.subheader(t("First token, nobody waiting"))
    if s.first_token:
        a, b = st.columns(2)
        a.metric(t("At least"), format_duration(s.first_token.floor_ms / 1000), border=True)
        b.metric(t("Planning value"), format_duration(s.first_token.planning_ms / 1000), border=True)
        st.caption(t("Required: {x:g} s at p{p}, queue included. With others in flight, waiting comes on top.",
                     x=r.ttft_s, p=r.ttft_percentile))  # fmt: skip
        explained(s.derivation("first_token"))
    else:
        st.markdown(t("Not known: the matrix rate of this GPU is not in the catalogue."))

if s.tables:
    st.subheader(t("Batch"))
    frame = pd.DataFrame(
        [
            {"batch": row.batch, "kind": kind.value, "user_tok_s": row.user_tok_s, "total_tok_s": row.total_tok_s}
            for kind in KINDS
            for row in s.tables[kind]
        ]
    )
    a, b = st.columns(2)
    with a:
        st.markdown(f"**{t('Speed per user')}**")
        st.altair_chart(
            against_concurrency(
                frame, y="user_tok_s", y_title=t("tok/s per user"), required=r.user_tok_s_promise,
                required_label=t("promised {x:g} tok/s", x=r.user_tok_s_promise), log=True,
            ),
            alt=t("Speed per user against requests in flight, with the promised speed"),
        )  # fmt: skip
    with b:
        st.markdown(f"**{t('Total')}**")
        st.altair_chart(
            against_concurrency(
                frame, y="total_tok_s", y_title=t("tok/s in total"), required=r.peak_users_max * r.user_tok_s_target,
                required_label=t("needed {x:,.0f} tok/s", x=r.peak_users_max * r.user_tok_s_target),
            ),
            alt=t("Total speed against requests in flight, with the needed total"),
        )  # fmt: skip
    verdict = {True: t("keeps the promise"), False: t("too slow per user")}
    table = pd.DataFrame(
        [
            {
                t("In flight"): bound.batch,
                **{
                    f"{t(kind.value)} {t('total')}": format_tok_s(row.total_tok_s)
                    for kind in KINDS
                    if (row := s.row(kind, bound.batch))
                },
                **{
                    f"{t(kind.value)} {t('per user')}": format_tok_s(row.user_tok_s)
                    for kind in KINDS
                    if (row := s.row(kind, bound.batch))
                },
                t("By the bound"): verdict[bound.meets_promise] if bound.fits else t("does not fit"),
            }
            for bound in s.tables[Kind.BOUND]
        ]
    )
    st.dataframe(table, hide_index=True, alt=t("Batch table: total and per-user speed by kind of estimate"))

if s.cost.total_per_million_tokens is not None or s.cost.kwh_per_million_tokens is not None:
    st.subheader(t("Cost at full load, planning value"))
    a, b, _ = st.columns(3)
    if s.cost.kwh_per_million_tokens is not None:
        a.metric(t("Energy per million output tokens"), f"{s.cost.kwh_per_million_tokens:.2f} kWh", border=True)
    if s.cost.total_per_million_tokens is not None:
        b.metric(
            t("Cost per million output tokens"), f"{s.cost.total_per_million_tokens:.2f} {s.cost.currency}", border=True
        )

next_step("sizing")
