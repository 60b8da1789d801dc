"""The report of a PoC to take along, on the Results page."""

from __future__ import annotations

import streamlit as st

from services.verdicts import CaseState
from ui.cached import workspace
from ui.report import report_of
from ui.report_html import as_html
from ui.report_markdown import as_markdown
from ui.text import t


def report_section(state: CaseState) -> None:
    """Two downloads, made when somebody asks for one: a page with charts for people, Markdown for a repository."""
    st.subheader(t("Report"))
    st.caption(
        t("For people without the app: verdicts, charts, comparison, evidence. One file that needs nothing else.")
    )
    ws, slug = workspace(), state.case.slug
    with st.container(horizontal=True):
        st.download_button(
            t("HTML, with charts"), lambda: as_html(report_of(ws, state)), file_name=f"{slug}-report.html",
            mime="text/html", icon=":material/description:", key=f"report-html-{slug}", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            t("Markdown"), lambda: as_markdown(report_of(ws, state)), file_name=f"{slug}-report.md",
            mime="text/markdown", icon=":material/download:", key=f"report-md-{slug}", on_click="ignore",
        )  # fmt: skip
