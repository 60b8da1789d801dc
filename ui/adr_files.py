"""Decisions as files: one record or the whole log to take along, and folders to write to."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from decisions.record import Adr
from services.exporting import export_all, export_markdown
from services.workspace import Workspace
from ui.parts import plain, shown_errors
from ui.text import t


def files_section(ws: Workspace, adr: Adr) -> None:
    """Everything that leaves the log as a file, and everything that comes back."""
    st.subheader(t("Markdown"))
    file, markdown = export_markdown(ws, adr.id)
    st.download_button(t("Download {file}", file=file), markdown, file_name=file, mime="text/markdown",
                       icon=":material/download:", on_click="ignore", key=f"md-{adr.id}")  # fmt: skip
    folder = st.text_input(t("Write all numbered records of this case into a folder"), key="export-folder",
                           placeholder="docs/decisions")  # fmt: skip
    if st.button(t("Write"), icon=":material/folder:", disabled=not folder.strip(), key="export"):
        with shown_errors():
            paths = export_all(ws, Path(folder.strip()).expanduser(), adr.case)
            st.success(t("{n} files written: {names}", n=len(paths), names=plain(", ".join(p.name for p in paths))))
