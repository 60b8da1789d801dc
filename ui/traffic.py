"""Requirements from real traffic: a log is looked at, kept without its texts, and taken over where a person says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pandas as pd
import streamlit as st
import yaml

from planner.requirements import Requirements
from planner.traffic import Requests, TrafficSummary, summarise
from planner.traffic_in_flight import LatencyModel
from planner.traffic_proposal import propose
from planner.traffic_replay import Cut, ReplayRow, replay, trace_csv, trace_point
from planner.units import format_duration
from services.traffic import keep, kept, latency_of, take, trace_of
from services.traffic_layouts import NEEDED, ROLES, Role, Unit, by_hand, recognised
from services.traffic_log import Log, columns_of, read_log
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.charts import demand, token_histogram
from ui.parts import flash, kind_badge, plain, shown_errors
from ui.session import signed
from ui.text import t, tn
from ui.traffic_figures import LENGTH_COLUMNS, figures, histogram_frame, length_rows, series_frame, time_unit

UNITS: tuple[Unit, ...] = get_args(Unit)
TRACE_FILE = "traffic.csv"
Named = tuple[tuple[Role, str], ...]


@st.cache_resource(max_entries=2, show_spinner=False)
def _read(file_id: str, named: Named, unit: Unit, leave_out: bool, _name: str, _content: bytes) -> Log:
    layout = by_hand(dict(named), unit, columns_of(_name, _content)) if named else None
    return read_log(_name, _content, layout, leave_out=leave_out)


@st.cache_resource(max_entries=8, show_spinner=False)
def _summary(key: tuple[object, ...], first_s: float, tok_s: float, _requests: Requests) -> TrafficSummary:
    return summarise(_requests, LatencyModel(first_s=first_s, tok_s=tok_s))


@st.cache_resource(max_entries=4, show_spinner=False)
def _replay(key: tuple[object, ...], cut: str, _requests: Requests) -> tuple[ReplayRow, ...]:
    return replay(_requests, Cut.model_validate_json(cut))


def show(ws: Workspace, state: CaseState, r: Requirements) -> None:
    """The section of the Requirements page: upload, what was read, what it proposes, the trace to replay."""
    slug = state.case.slug
    # Tracked, so that a message at the head of the page does not close it.
    with st.expander(
        t("Start from real traffic"), icon=":material/monitoring:", key=f"traffic-open-{slug}", on_change="rerun"
    ):
        st.markdown(
            t("A log with a row for each request: when, prompt tokens, answer tokens; and, if known, how long it took, "
              "session and prefix. The Azure LLM inference trace, Mooncake, BurstGPT and ShareGPT are recognised. "
              "Texts and names are not kept, nor is the file.")
        )  # fmt: skip
        upload = st.file_uploader(t("Request log"), type=["csv", "jsonl", "json", "txt", "log"], key=f"traffic-{slug}")
        if upload is not None:
            with shown_errors():
                _looked_at(ws, state, r, upload.file_id, upload.name, upload.getvalue())
        with shown_errors():
            _kept(ws, slug)


def _looked_at(ws: Workspace, state: CaseState, r: Requirements, file_id: str, name: str, content: bytes) -> None:
    columns = columns_of(name, content)
    layout = recognised(columns)
    named: Named = ()
    unit: Unit = "auto"
    if columns and (layout is None or st.toggle(t("Name the columns by hand"), key=f"by-hand-{file_id}")):
        named, unit = _mapping(file_id, columns, layout.columns if layout else {})
        if not set(NEEDED) <= {role for role, _ in named}:
            st.info(t("Choose a column for time, prompt and answer."), icon=":material/view_column:")
            return
    leave_out = st.toggle(t("Leave broken rows out; they are counted"), key=f"leave-out-{file_id}")
    with st.spinner(t("Reading the log")):
        log = _read(file_id, named, unit, leave_out, name, content)
    key = (file_id, named, unit, leave_out)
    promised = latency_of(r)
    latency = promised
    if log.requests.at_s and log.requests.took_s is None:
        a, b = st.columns(2)
        first = a.number_input(t("Assumed: first token after (s)"), value=promised.first_s, min_value=0.0,
                               key=f"first-{file_id}")  # fmt: skip
        speed = b.number_input(t("Assumed: then tok/s"), value=promised.tok_s, min_value=0.1, key=f"tok-{file_id}")
        latency = LatencyModel(first_s=first, tok_s=speed)
    with st.spinner(t("Counting")):
        s = _summary(key, latency.first_s, latency.tok_s, log.requests)
    _figures(log, s)
    _proposal(ws, state, r, log, s, latency)
    _to_replay(key, file_id, log)


def _mapping(file_id: str, columns: tuple[str, ...], known: Mapping[Role, str]) -> tuple[Named, Unit]:
    """One choice a role, the needed ones first, and the unit of the clock."""
    named: list[tuple[Role, str]] = []
    places = st.columns(3)
    for i, (role, words) in enumerate(ROLES.items()):
        at = columns.index(known[role]) if role in known else None
        label = t(words)
        chosen = places[i % 3].selectbox(
            label[:1].upper() + label[1:], columns, index=at, placeholder=t("no column"), key=f"column-{role}-{file_id}"
        )
        if chosen:
            named.append((role, chosen))
    unit: Unit = places[len(ROLES) % 3].selectbox(
        t("Unit of a clock in numbers"), UNITS, index=UNITS.index("auto"), key=f"unit-{file_id}"
    )
    return tuple(named), unit


def _figures(log: Log, s: TrafficSummary) -> None:
    st.markdown(f"{kind_badge('observed')} **{plain(t(log.layout))}** · {plain(log.name)} · `{log.sha256[:12]}`")
    for finding in (*log.findings, *log.left_out):
        st.caption(plain(finding))
    left, middle, right = st.columns(3)
    with left:
        st.altair_chart(token_histogram(histogram_frame(s)), alt=t("How long prompts and answers are"))
    x_title, _ = time_unit(s)
    if s.rates:
        middle.altair_chart(
            demand(series_frame(s, s.rates.series, s.rates.bin_s), x_title=x_title, y_title=t("Requests per second")),
            alt=t("How often requests came, over time"),
        )
    if s.in_flight:
        right.altair_chart(
            demand(series_frame(s, s.in_flight.series, s.in_flight.bin_s), x_title=x_title, y_title=t("In flight")),
            alt=t("How many requests were in flight at once, over time"),
        )
    st.dataframe(
        pd.DataFrame(length_rows(s), columns=[t("Tokens"), *(t(c) for c in LENGTH_COLUMNS)]), hide_index=True,
        column_config={t(c): st.column_config.TextColumn(alignment="right") for c in LENGTH_COLUMNS},
        alt=t("Lengths in tokens"),
    )  # fmt: skip
    st.dataframe(
        pd.DataFrame(figures(s), columns=[t("Figure"), t("Value"), t("Meaning")]), hide_index=True, height="content",
        column_config={t("Meaning"): st.column_config.TextColumn(width="large"),
                       t("Value"): st.column_config.TextColumn(alignment="right")},
        alt=t("What the log says"),
    )  # fmt: skip


def _proposal(ws: Workspace, state: CaseState, r: Requirements, log: Log, s: TrafficSummary,
              latency: LatencyModel) -> None:  # fmt: skip
    """What would change in the requirements, field by field; nothing does before a named person takes it over."""
    proposed = propose(r, s)
    st.subheader(t("Take into the requirements"))
    if log.estimated:
        st.caption(t("Lengths are estimates from texts: take them over only until real counts are there."))
    fields: list[str] = []
    if proposed:
        st.dataframe(
            pd.DataFrame([(p.field, str(p.now), str(p.proposed), p.why) for p in proposed],
                         columns=[t("Field"), t("Now"), t("By the log"), t("Why")]),
            hide_index=True, height="content", column_config={t("Why"): st.column_config.TextColumn(width="large")},
            alt=t("What the log proposes"),
        )  # fmt: skip
        names = {p.field: f"{p.field}: {p.now} → {p.proposed}" for p in proposed}
        fields = st.multiselect(
            t("Take over"), list(names), default=list(names), format_func=lambda f: names[f], key=f"take-{log.sha256}"
        )
    else:
        st.markdown(t("The requirements say what the log says."))
    with st.container(horizontal=True):
        only = st.button(t("Keep the figures"), icon=":material/inventory_2:", key="traffic-keep")
        both = st.button(t("Keep them and save a new version"), icon=":material/save:", key="traffic-take",
                         disabled=not fields)  # fmt: skip
    if (only or both) and (name := signed()):
        record = keep(ws, state.case.id, log, s, latency, name)
        if both:
            version = take(ws, state.case.id, r, record, fields, name, state.version.n if state.version else 0)
            flash(t("Saved as version {n}, from {log}.", n=version.n, log=plain(log.name)))
        else:
            flash(t("The figures of {log} are kept.", log=plain(log.name)))
        st.rerun()


def _to_replay(key: tuple[object, ...], file_id: str, log: Log) -> None:
    """The scrubbed trace for the instrument, and the load point that names it."""
    st.subheader(t("Replay it"))
    st.caption(t("Times and lengths only, sessions numbered anew. A window is the busiest one; of more requests than "
                 "asked for, the seed draws."))  # fmt: skip
    a, b, c, d = st.columns(4)
    duration = a.number_input(t("Minutes"), value=None, min_value=0.1, placeholder=t("whole log"), key=f"min-{file_id}")
    scale = b.number_input(t("Times as fast"), value=1.0, min_value=0.01, max_value=1000.0, key=f"scale-{file_id}")
    most = c.number_input(t("At most requests"), value=1000, min_value=1, step=100, key=f"most-{file_id}")
    seed = d.number_input(t("Seed"), value=1, min_value=0, step=1, key=f"seed-{file_id}")
    rate = None
    if log.requests.at_s is None:
        rate = st.number_input(t("Requests per second (the log has no times)"), value=1.0, min_value=0.001,
                               key=f"rate-{file_id}")  # fmt: skip
    cut = Cut(duration_s=duration and duration * 60, rate_scale=scale, requests=most, seed=seed, rate_per_s=rate)
    rows = _replay(key, cut.model_dump_json(), log.requests)
    st.download_button(
        tn(len(rows), "Download the trace ({n} request)", "Download the trace ({n:,} requests in {time})",
           time=format_duration(rows[-1].t_s)),
        trace_csv(rows), file_name=TRACE_FILE, mime="text/csv", icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    st.caption(t("Put the file beside the plan, and this among its load points:"))
    point = trace_point("real-traffic", TRACE_FILE, rows).model_dump(mode="json", exclude_defaults=True)
    st.code(yaml.safe_dump([point], sort_keys=False), language="yaml")


def _kept(ws: Workspace, slug: str) -> None:
    for k in kept(ws, slug):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"{kind_badge('observed')} **{plain(k.name)}** · {plain(t(k.layout))} · "
                + tn(k.summary.n, "{n} request", "{n:,} requests")
                + f" · {k.at:%Y-%m-%d %H:%M} UTC · {plain(k.by)} · `{k.source_sha256[:12]}`"
            )
            if k.trace_sha256 is not None:
                st.download_button(
                    t("Trace"), lambda id=k.id: trace_of(ws, slug, id), file_name=f"{k.id}.csv", mime="text/csv",
                    icon=":material/download:", on_click="ignore", key=f"trace-{k.id}",
                )  # fmt: skip
