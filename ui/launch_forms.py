"""How a server is started, as a person takes it away: every form as a file, every value with its reason."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.errors import FliplineError
from planner.launch_forms import FORMS, StartForm
from planner.launch_settings import PURPOSES
from planner.requirements import Requirements
from planner.server_schema import Server
from services.launches import Weights, start_forms, startable
from services.scores import case_score
from services.workspace import Workspace
from ui.parts import plain
from ui.text import t
from ui.whole_table import whole_table

PURPOSE_WORDS = {"benchmark": "For the measurement", "production": "For daily use"}


def show(ws: Workspace, r: Requirements, slug: str, weights: Weights) -> None:
    """Choose server and purpose, see each form, and save it."""
    servers = startable(ws, case_score(ws, r))
    left, right = st.columns(2, vertical_alignment="bottom")
    names = {id: found.name for id, found in servers.items()}
    chosen = left.selectbox(t("Server"), list(servers), format_func=names.get, key=f"start-server-{slug}")
    purpose = right.segmented_control(
        t("Purpose"), list(PURPOSE_WORDS), default="benchmark", required=True, key=f"start-purpose-{slug}",
        format_func=lambda p: t(PURPOSE_WORDS[p]),
    )  # fmt: skip
    if chosen is None or purpose is None:
        return
    try:
        forms = start_forms(ws, r, chosen, purpose, weights)
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")
        return
    for tab, form in zip(st.tabs([t(FORMS[f.form].title) for f in forms]), forms, strict=True):
        with tab:
            _form(form, f"{slug}-{chosen}-{purpose}")
    _flags(forms[0])
    _security(servers[chosen])
    _purposes()


def _form(form: StartForm, key: str) -> None:
    if form.notes:
        st.warning("\n".join(f"- {plain(note)}" for note in form.notes), icon=":material/warning:")
    st.code(form.text, language=form.language, height=420)
    files = {form.file_name: form.text, **form.files}
    with st.container(horizontal=True):
        for name, text in files.items():
            st.download_button(
                t("Download {name}", name=name), text, name, "text/plain", icon=":material/download:",
                on_click="ignore", key=f"start-{key}-{form.form}-{name}",
            )  # fmt: skip


def _flags(form: StartForm) -> None:
    rows = [{t("Setting"): f.flag, t("Value"): f.value or t("(switch)"), t("Why"): f.why} for f in form.launch.flags]
    with st.expander(t("Every setting and the number it came from ({n})", n=len(rows)), icon=":material/flag:"):
        whole_table(rows, t("Settings of {name}", name=form.launch.name))


def _security(server: Server) -> None:
    with st.expander(t("What stands open by default, and what is closed here"), icon=":material/shield:"):
        s = server.security
        if s is None:
            st.markdown(t("Nothing is known of it: take it that everything stands open."))
            return
        key = ", ".join(s.keys) or t("none")
        facts = {
            t("Listens on"): s.bind, t("API key"): key, t("A key covers"): s.key_covers,
            t("Open without a key"): ", ".join(s.open_routes), t("Pages of other origins"): s.cors,
            t("Usage reports"): s.telemetry, t("Log"): s.logging,
            t("What remains"): "; ".join(s.remains) or t("nothing"),
        }  # fmt: skip
        for name, said in facts.items():
            st.markdown(f"**{plain(name)}**: {plain(said)}")
        words = {"benchmark": t("measurement"), "production": t("daily use"), None: t("both")}
        closing = [
            {t("Setting"): f"{x.flag} {x.value}".strip(), t("For"): words[x.only], t("Why"): x.why} for x in s.settings
        ]
        whole_table(closing, t("Settings that close what stands open"))
        st.caption(t("Read in: {sources}", sources=plain("; ".join(s.source))))


def _purposes() -> None:
    with st.expander(t("How the measurement differs from daily use"), icon=":material/compare_arrows:"):
        rows = [
            {
                t("What"): t(p.topic),
                t("Measurement"): t(p.benchmark),
                t("Daily use"): t(p.production),
                t("Why"): t(p.why),
            }
            for p in PURPOSES
        ]
        st.table(pd.DataFrame(rows).set_index(t("What")), border="horizontal")
