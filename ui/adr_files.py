"""Decisions as files: one record or the whole log to take along, a folder to write to, files that come in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import streamlit as st

from decisions.madr_words import Language
from decisions.record import Adr
from services.exporting import Planned, export_markdown, export_zip, plan_export, write
from services.import_files import Brought, unzipped
from services.importing import Imported, import_files, import_path
from services.log_file import export_log, import_log
from services.workspace import Workspace
from ui.adr_charts import charts_of
from ui.parts import plain, shown_errors
from ui.session import signed
from ui.text import t

LANGUAGES = {"en": "English", "ja": "日本語"}


def files_section(ws: Workspace, adr: Adr) -> None:
    """Everything that leaves the log as a file, and everything that comes back."""
    out, back = st.columns(2, gap="large")
    with out:
        _out(ws, adr)
    with back:
        _back(ws, adr)


def _out(ws: Workspace, adr: Adr) -> None:
    st.subheader(t("Take along"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.segmented_control(t("Headings"), list(LANGUAGES), default="en", required=True,
                                      format_func=LANGUAGES.__getitem__, key="export-language")  # fmt: skip
        proposed = st.toggle(t("Proposals too"), key="export-proposed")
    language = cast(Language, chosen)
    file, markdown = export_markdown(ws, adr.id, language=language)
    with st.container(horizontal=True):
        st.download_button(t("This record"), markdown, file_name=file, mime="text/markdown", help=plain(file),
                           icon=":material/download:", on_click="ignore", key=f"md-{adr.id}")  # fmt: skip
        st.download_button(
            t("Whole log, Markdown"), lambda: export_zip(ws, language=language, proposed=proposed, charts=charts_of),
            file_name="decisions.zip", mime="application/zip", icon=":material/folder_zip:", on_click="ignore",
            key="log-zip", help=t("With an index page, and charts of what was measured"),
        )  # fmt: skip
        st.download_button(
            t("Whole log, JSON"), lambda: export_log(ws), file_name="decisions.json", mime="application/json",
            icon=":material/data_object:", on_click="ignore", key="log-json",
            help=t("Every edit with its hash: another Flipline takes it in and checks it again"),
        )  # fmt: skip
    folder = st.text_input(t("Write this case's records into a folder"), key="export-folder",
                           placeholder="docs/decisions")  # fmt: skip
    if st.button(t("Write"), icon=":material/folder:", disabled=not folder.strip(), key="export"):
        with shown_errors():
            target = Path(folder.strip()).expanduser()
            planned = plan_export(ws, target, adr.case, language=language, proposed=proposed, charts=charts_of)
            if not planned.refused:
                write(planned, target)
            _written(planned)


def _written(planned: Planned) -> None:
    for refused in planned.refused:
        st.error(plain(str(refused.error)), icon=":material/edit_off:")
        if refused.difference:
            st.code(refused.difference, language="diff", wrap_lines=True)
    if planned.refused:
        return
    new = [f for f in planned.files if f.state != "same"]
    names = plain(", ".join(f.path.name for f in new)) or "–"
    st.success(t("Files written: {n}. {names}", n=len(new), names=names))
    if planned.left:
        st.caption(t("Left as they are, since others wrote them: {names}",
                     names=plain(", ".join(p.name for p in planned.left))))  # fmt: skip


def _back(ws: Workspace, adr: Adr) -> None:
    st.subheader(t("Bring in"))
    st.caption(t("Decisions of other tools, or our files as a review left them. The same file twice changes nothing."))
    files = st.file_uploader(t("Markdown files, a .zip, or a log as .json"), type=["md", "zip", "json"],
                             accept_multiple_files=True, key="import-files")  # fmt: skip
    folder = st.text_input(t("Or a folder on this machine"), key="import-folder", placeholder="docs/decisions")
    ready = bool(files or folder.strip())
    if st.button(t("Bring in"), icon=":material/upload:", disabled=not ready, key="import") and (name := signed()):
        with shown_errors():
            if files:
                _brought(ws, adr.case, [(f.name, f.getvalue()) for f in files], name)
            if folder.strip():
                _came(import_path(ws, adr.case, Path(folder.strip()).expanduser(), name))


def _brought(ws: Workspace, case: str, files: Sequence[tuple[str, bytes]], name: str) -> None:
    """Uploaded files by what they are."""
    markdown: list[Brought] = []
    for file, body in files:
        if file.lower().endswith(".json"):
            joined = import_log(ws, body.decode("utf-8", "replace"), name, file)
            st.success(t("New records: {n}, here already: {m}.", n=len(joined.new), m=len(joined.there)))
            for sentence in joined.renamed:
                st.info(plain(sentence))
        elif file.lower().endswith(".zip"):
            markdown += unzipped(file, body)
        else:
            markdown.append(Brought(file, body))
    if markdown:
        _came(import_files(ws, case, markdown, name))


def _came(done: Imported) -> None:
    """What came in, what asked for an edit, and what did not come in."""
    if done.new or done.edited:
        st.success(plain(done.sentence))
    else:
        st.info(plain(done.sentence))
    for came in done.edited:
        kinds = ", ".join(t(e.kind.replace("_", " ")) for e in came.edit.asked.edits)
        st.markdown(f"- {plain(came.file)}: {kinds}, {plain(came.edit.author)}")
    for came in done.refused:
        st.error(plain(f"{came.file}: {' '.join(came.edit.asked.refused)}"), icon=":material/edit_off:")
        st.code(came.edit.asked.difference, language="diff", wrap_lines=True)
    for broken in done.broken:
        st.warning(plain(str(broken.error)), icon=":material/broken_image:")
