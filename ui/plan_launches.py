"""How the instrument starts the candidates of a plan, and what is and is not equal between them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.engine_facts import server
from planner.launch import LaunchPlan, fairness
from services.plans import Drafted
from services.workspace import Workspace
from ui.parts import plain
from ui.text import t
from ui.whole_table import whole_table

EQUAL = {
    "equalised": ":green-badge[:material/check: equalised]",
    "declared": ":orange-badge[:material/edit_note: declared]",
    "cannot": ":red-badge[:material/close: cannot be made equal]",
}
CAUTIONS = {"setting": ":material/warning:", "declared": ":material/edit_note:", "cannot": ":material/close:"}


def launch_form(launch: LaunchPlan, note: str) -> None:
    """One start command with the reason for every flag."""
    st.markdown(f"**{plain(launch.engine)} {plain(launch.version)}** {note}")
    st.code(launch.command_line, language="bash", wrap_lines=True)
    flags = [{t("Flag"): f.flag, t("Value"): f.value or t("(switch)"), t("Why"): f.why} for f in launch.flags]
    with st.expander(t("Every flag and why ({n})", n=len(flags)), icon=":material/flag:"):
        whole_table(flags, t("Flags of {name}", name=launch.engine))
    for w in launch.warnings:
        st.markdown(f"{CAUTIONS[w.kind]} **{plain(t(w.topic))}** {plain(w.sentence)}")


def launches(drafted: Drafted) -> None:
    """Commands per candidate; the baseline's everyday form stands beside the one that is measured."""
    tabs = st.tabs(list(drafted.launches))
    for tab, (candidate, launch) in zip(tabs, drafted.launches.items(), strict=True):
        with tab:
            everyday = drafted.everyday.get(candidate)
            note = t("is started for the measurement, because it shows its metrics and holds the answer length.")
            launch_form(launch, note if everyday else "")
            if everyday:
                launch_form(everyday, t("is the same load in daily use; it is not what the plan measures."))


def fair(ws: Workspace, drafted: Drafted) -> None:
    """Defaults that skew a comparison: what the commands make equal, what is declared, what cannot be."""
    servers = {c: server(ws.catalog.engines, launch.engine) for c, launch in drafted.launches.items()}
    rows = [
        {
            t("Default"): plain(t(row.topic)),
            **{
                c: f"{t(EQUAL[f.by])} {plain(f.default)}" + (f"  \n→ {plain(f.how)}" if f.how else "")
                for c, f in row.servers.items()
            },
            t("What it does to a comparison"): plain("; ".join(dict.fromkeys(f.effect for f in row.servers.values()))),
        }
        for row in fairness(servers)
    ]
    st.table(pd.DataFrame(rows).fillna("–").set_index(t("Default")), border="horizontal")
