"""What happened to one decision, a place to comment, and the check that nobody changed what happened."""

from __future__ import annotations

import streamlit as st

from decisions.record import Adr
from planner.errors import FliplineError
from services.decisions import comment
from services.workspace import Workspace
from ui.edit_words import history_line
from ui.opinions_view import opinions
from ui.parts import flash, plain, short, shown_errors
from ui.session import signed
from ui.text import t


def history(ws: Workspace, adr: Adr) -> None:
    """Every edit, the newest first, and a form for a comment."""
    edits = ws.store.adrs.edits(adr.id)
    if not edits:
        st.markdown(t("A draft has no history; it begins when it is proposed."))
        return
    st.markdown("\n".join(history_line(edit, lambda id: _called(ws, id)) for edit in reversed(edits)))
    opinions(ws, adr)
    with st.form(f"comment-{adr.id}", border=False, clear_on_submit=True):
        words = st.text_area(t("Comment"), key=f"words-{adr.id}", height="content")
        if st.form_submit_button(t("Add"), icon=":material/comment:") and (name := signed()):
            with shown_errors():
                comment(ws, adr.id, name, words)
                flash(t("The comment is in the log."))
                st.rerun()


def integrity(ws: Workspace, adr: Adr) -> None:
    """The head hash of the record, and the check of every chain against a head that was kept elsewhere."""
    if ws.store.adrs.entries(adr.id):
        st.markdown(f"{t('Last hash of this record')}: `{ws.store.adrs.head(adr.id)}`")
        st.caption(t("Each edit covers the one before it, so a change is found. This is no signature."))
    known = st.text_input(t("Hash from an earlier export, to compare"), key=f"known-{adr.id}",
                          placeholder=t("the line 'head' of the exported file"))  # fmt: skip
    if st.button(t("Check all records"), icon=":material/verified_user:", key="verify"):
        broken = ws.store.adrs.verify({adr.id: known.strip()} if known.strip() else None)
        for link in broken:
            where = t("edit {n} {why}", n=link.seq, why=link.why)
            st.error(f"{_called(ws, link.adr)}: {plain(where)}", icon=":material/gpp_bad:")
        if not broken:
            st.success(t("Every record is whole."), icon=":material/verified_user:")


def _called(ws: Workspace, id: str) -> str:
    """Another ADR as it is called, or its id where its text was altered and cannot be read."""
    try:
        return plain(short(ws.store.adrs.get(id)))
    except FliplineError:
        return plain(id)
