"""Measure what users really did: from a file of days or requests, or from the Prometheus that watches the engine."""

from __future__ import annotations

import os
from datetime import timedelta

import streamlit as st

from planner.observed_days import MIN_COVERAGE
from services.arrivals import bring_in_usage
from services.demand import Demand, demand_of_file
from services.demand_queries import MOST_DAYS, demand_of_prometheus, engines_that_export
from services.prometheus import ADDRESS, Prometheus
from services.usage import EXAMPLE
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.demand_view import day_table, figures_of, observed_part
from ui.measure_arrived import tell
from ui.parts import kind_badge, plain, shown_errors
from ui.session import signed
from ui.text import t, tn

WHERE = {"file": t("File"), "prometheus": t("Prometheus")}


def section(ws: Workspace, state: CaseState) -> None:
    """A file or a Prometheus, what it says, and what is known by now beside what runs."""
    st.markdown(
        f"{kind_badge('observed')} "
        + t("What users really did, from monitoring or request logs. Load in a benchmark never counts as this.")
    )
    where = st.segmented_control(t("From"), list(WHERE), default="file", format_func=WHERE.get, key="usage-from",
                                 required=True, label_visibility="collapsed")  # fmt: skip
    found = _file(state) if where == "file" else _prometheus(ws, state)
    if found is not None:
        _what_it_says(found)
    pressed = st.button(t("Bring in"), type="primary", icon=":material/move_to_inbox:",
                        disabled=found is None or not found.days)  # fmt: skip
    if pressed and found and (name := signed()):
        with shown_errors():
            arrived = bring_in_usage(ws, state.case.id, found.counted(), by=name, source=found.source)
            tell(arrived, t("It is kept: {what}", what=_said(found)) if arrived.evidence
                 else t("These days were there already."))  # fmt: skip
    observed_part(state)


def _file(state: CaseState) -> Demand | None:
    st.markdown(
        "- " + t("A row a day: `date,peak_in_flight` and, if known, `requests`, lengths, shared prefix, coverage.")
        + "\n- " + t("Or a row a request: `start,end` in ISO 8601, or a request log as Requirements reads it.")
    )  # fmt: skip
    st.download_button(
        t("Example"), EXAMPLE, file_name="usage.csv", mime="text/csv", icon=":material/download:", on_click="ignore"
    )
    known = sum(e.kind == "observed" for e in state.evidence)  # an uploader is empty again once its file is in
    upload = st.file_uploader(t("Usage (.csv, .jsonl)"), type=["csv", "jsonl", "json"],
                              key=f"usage-{state.case.slug}-{known}")  # fmt: skip
    whole = st.checkbox(t("The log holds all of its first and last day"), key="usage-whole",
                        help=t("Else these two reach only from the first and to the last request."))  # fmt: skip
    if upload is None:
        return None
    with shown_errors():
        return _read(upload.file_id, whole, upload.name, upload.getvalue())
    return None


@st.cache_data(max_entries=4, show_spinner=False)
def _read(file_id: str, whole: bool, name: str, _content: bytes) -> Demand:
    """A file is read once: a log may have a million rows."""
    return demand_of_file(name, _content, whole_days=whole)


def _prometheus(ws: Workspace, state: CaseState) -> Demand | None:
    """What was read last stays until something else is asked."""
    kept = f"demand-{state.case.slug}"
    with st.form("usage-prometheus", border=False):
        a, b, c = st.columns([3, 1, 1])
        url = a.text_input(t("Address"), os.environ.get(ADDRESS, ""), placeholder=t("http://prometheus:9090"))
        days = b.number_input(t("Days"), min_value=1, max_value=MOST_DAYS, value=28)
        last = c.date_input(t("Up to"), now().date() - timedelta(days=1), max_value=now().date(), format="YYYY-MM-DD")
        a, b = st.columns([3, 2])
        selector = a.text_input(
            t("Selector"), placeholder=t('job="vllm"'),
            help=t("Label matchers that name your servers; empty takes all of an engine."),
        )  # fmt: skip
        engine = b.selectbox(t("Engine"), engines_that_export(ws.catalog.engines), index=None,
                             placeholder=t("the one whose metrics are there"))  # fmt: skip
        asked = st.form_submit_button(t("Read"), icon=":material/search:")
    if asked:
        st.session_state.pop(kept, None)
        with shown_errors(), st.spinner(t("Asking Prometheus")):
            st.session_state[kept] = demand_of_prometheus(
                Prometheus(url), ws.catalog.engines, last, int(days), engine=engine or "", selector=selector
            )
    found: Demand | None = st.session_state.get(kept)
    return found


def _what_it_says(found: Demand) -> None:
    """The days before they are brought in, what does not count, and what was noticed."""
    st.markdown(f"**{plain(found.source)}** · " + _said(found))
    days = t("Days are those of UTC; one counts from {share:.0%} coverage on.", share=MIN_COVERAGE)
    st.caption("\n".join(f"- {plain(sentence)}" for sentence in (*found.gap_sentences(), *found.findings, days)))
    if found.days:
        day_table(figures_of(found.days))


def _said(found: Demand) -> str:
    if not found.days:
        return t("no day counts")
    peaks = [u.peak_in_flight for u in found.days if u.peak_in_flight is not None]
    first, last = found.days[0].day, found.days[-1].day
    if not peaks:
        return tn(
            len(found.days), "{first}; its peak is not known.", "{n} days, {first} to {last}; peaks are not known.",
            first=first, last=last,
        )  # fmt: skip
    return tn(
        len(found.days), "{first}; the peak was {peak:g} in flight.",
        "{n} days, {first} to {last}; the highest peak was {peak:g} in flight.",
        first=first, last=last, peak=max(peaks),
    )  # fmt: skip
