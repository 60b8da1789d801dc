"""Every cached read of the screens: the workspace once per process, kept bundles by their hash."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from bundle.records import Record
from bundle.run_data import RepeatData
from bundle.samples import e2e_ms, ttft_ms, user_tok_s
from services.evidence import read_kept
from services.foreign import Said, Seen, look
from services.shipped import install_shipped
from services.verdicts import CaseState, case_state
from services.workspace import Workspace, open_workspace


def workspace() -> Workspace:
    """The workspace of this process; an empty one gets the shipped cases.

    Beside a folder called pages/, Streamlit lists its files by itself until st.navigation was called once in the
    process: the first visitor of a deep link would land outside app.py. That run is sent back to it here.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
    return _workspace()


@st.cache_resource
def _workspace() -> Workspace:
    ws = open_workspace()
    install_shipped(ws)
    return ws


def state(case: str) -> CaseState:
    """A case as it stands now; read anew at every rerun, since others write too."""
    return case_state(workspace(), case)


@st.cache_data(max_entries=16, show_spinner=False)
def seen_in(name: str, content: bytes, said: Said, plan: bytes) -> Seen:
    """What a foreign result holds; raises InputError, which is not cached."""
    return look(name, content, said, plan)


@st.cache_data(max_entries=64)
def requests_of(sha256: str) -> pd.DataFrame:
    """Requests of a kept bundle: point, repeat, scheduled_s, outcome, ttft_ms, user_tok_s, e2e_ms, tokens."""
    ws = workspace()
    data = read_kept(ws, ws.store.runs.get(sha256))
    return pd.DataFrame([_request_row(r, rec) for r in data.repeats for rec in r.records if rec.cohort == "load"])


def _request_row(data: RepeatData, record: Record) -> dict[str, object]:
    return {
        "point": data.point.name,
        "repeat": data.repeat.repeat,
        "request": record.request,
        "scheduled_s": record.scheduled_s,
        "outcome": record.outcome,
        "ttft_ms": ttft_ms(record),
        "user_tok_s": user_tok_s(record),
        "e2e_ms": e2e_ms(record),
        "output_tokens": record.output_tokens,
        "error": record.error,
    }


@st.cache_data(max_entries=64)
def telemetry_of(sha256: str) -> pd.DataFrame:
    """Server metrics of a kept bundle: point, repeat, t_s, name, value."""
    ws = workspace()
    data = read_kept(ws, ws.store.runs.get(sha256))
    return pd.DataFrame(
        [
            {"point": r.point.name, "repeat": r.repeat.repeat, "t_s": s.t_s, "name": s.name, "value": s.value}
            for r in data.repeats
            for s in r.telemetry
        ],
        columns=["point", "repeat", "t_s", "name", "value"],
    )
