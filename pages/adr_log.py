"""ADR log: what was decided, what would change it today, and everything that happened to it since."""

from __future__ import annotations

import streamlit as st

from services.verdicts import judge_adr
from ui.adr_answers import open_fires, record_head
from ui.adr_files import files_section
from ui.adr_graph import decision_graph
from ui.adr_history import history, integrity
from ui.adr_list import chosen
from ui.adr_search import asked_words, searched
from ui.adr_view import written_part
from ui.cached import state as read_state
from ui.cached import workspace
from ui.diff_view import adr_differences
from ui.flip_history import verdicts_in_time
from ui.flip_today import conditions_today
from ui.parts import go_to, head, next_step
from ui.session import open_case
from ui.text import t

ws = workspace()
state = open_case()

head("adr-log", t("The record only grows. New evidence is held against every accepted decision."))

everywhere = st.toggle(t("All cases"), key="adr-all")
adrs = ws.store.adrs.all() if everywhere else state.adrs
if not adrs:
    go_to("decision", t("No decision is recorded yet. A first draft is prefilled from the case:"))
    next_step("adr-log")
    st.stop()

hits = searched(ws, adrs)
if not hits:
    st.markdown(t("No decision has all of these words and passes the filter."))
    st.stop()
cases = {c.id: c.title for c in ws.store.cases.all()} if everywhere else {}
adr = chosen(hits, cases, asked_words())
of_case = state if adr.case == state.case.id else read_state(adr.case)

record_head(ws, of_case, adr)
open_fires(ws, adr)

conditions, record, happened, differences, graph, verdicts, whole = st.tabs(
    [
        t("Conditions today"), t("Record"), t("History"), t("Differences"), t("Graph"), t("Verdicts in time"),
        t("Integrity and export"),
    ]
)  # fmt: skip
with conditions:
    conditions_today(ws, of_case, adr, judge_adr(of_case, adr))
with record:
    written_part(adr)
with happened:
    history(ws, adr)
with differences:
    adr_differences(ws, adr)
with graph:
    decision_graph(ws, adr, [h.adr for h in hits])
with verdicts:
    verdicts_in_time(ws, adr)
with whole:
    integrity(ws, adr)
    files_section(ws, adr)

next_step("adr-log")
