"""Every cached read of the screens: the workspace once per process, kept bundles by their hash."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from bundle.manifest import Repeat
from db.collector import collect_seldom
from db.runs import Run
from services.foreign import Said, Seen, look
from services.recounts import Told
from services.rejudging import judge_if_due
from services.run_columns import server_metrics
from services.run_details import Gaps, RequestDetails, gap_details, request_details
from services.shipped import install_shipped
from services.verdicts import CaseState, case_state
from services.workspace import Workspace, open_workspace
from ui.text import t

MANY = 4  # bundles that are counted again before anybody wants to see it


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
    collect_seldom()
    return ws


def state(case: str, *, judged: bool = True) -> CaseState:
    """A case as it stands now; read anew at every rerun, since others write too. It is judged first, where asked."""
    if judged:
        judge_today(case)
    return case_state(workspace(), case, _counting())


def judge_today(case: str) -> None:
    """Judge a case again at the first visit and the first of each day: a date passed, or a catalogue fact changed."""
    ws = workspace()
    judge_if_due(ws, ws.store.cases.get(case).id, _counting())


def _counting() -> Told:
    """A bar while limits that were changed are counted in many bundles, which takes half a second each, once.

    Who leaves the page meanwhile ends it; the bundles that were counted are not counted again.
    """
    place = None

    def told(done: int, of: int) -> None:
        nonlocal place
        if of < MANY:
            return
        place = place or st.empty()
        if done == of:
            place.empty()
        else:
            place.progress(done / of, t("A limit is new: counting it in the bundles, once. {n} of {of}", n=done, of=of))

    return told


@st.cache_data(max_entries=16, show_spinner=False)
def seen_in(name: str, content: bytes, said: Said, plan: bytes) -> Seen:
    """What a foreign result holds; raises InputError, which is not cached."""
    return look(name, content, said, plan)


# A run's name is its hash, and a repeat is one of a run.
_one_repeat = partial(
    st.cache_data, max_entries=64, show_spinner=False,
    hash_funcs={Run: lambda run: run.sha256, Repeat: lambda repeat: (repeat.load_point, repeat.repeat)},
)  # fmt: skip


@_one_repeat()
def requests_of(run: Run, repeat: Repeat) -> RequestDetails:
    """The requests of one repeat of a kept bundle; raises BundleError, which is not cached."""
    return request_details(workspace(), run, repeat)


@_one_repeat()
def gaps_of(run: Run, repeat: Repeat) -> Gaps:
    """Its gaps between tokens; raises BundleError."""
    return gap_details(workspace(), run, repeat)


@_one_repeat()
def server_of(run: Run, repeat: Repeat) -> pd.DataFrame:
    """What its server said of itself; raises BundleError."""
    return server_metrics(workspace(), run, repeat)
