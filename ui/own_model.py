"""Add a model that the catalogue lacks: give its config.json, see what was read and assumed, keep it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from planner.errors import FliplineError
from services.model_reading import Proposal, from_folder, from_hub, from_text
from services.own_models import add_model, summary
from services.workspace import Workspace, now
from ui.parts import flash, plain
from ui.text import t

TYPES = ["json", "txt"]


def show(ws: Workspace) -> None:
    """The section: where the model comes from, what was read, and the button that keeps it."""
    st.subheader(t("Add a model"))
    ways = {
        "paste": t("Paste config.json"), "file": t("Upload config.json"), "folder": t("Folder on this machine"),
        "hub": t("Hub id"),
    }  # fmt: skip
    way = st.segmented_control(
        t("Where from"), list(ways), format_func=lambda w: ways[w], default="paste", key="own-way", required=True
    )
    with st.form("own-model", border=False):
        id = st.text_input(
            t("Name in the catalogue"), key="own-id", placeholder="org/model",
            help=t("A folder's or the hub's own name is taken where this is empty."),
        )  # fmt: skip
        given = _inputs(str(way))
        read = st.form_submit_button(t("Read"), icon=":material/search:", type="primary")
    if read:
        _read(str(way), id, given)
    if problem := st.session_state.get("own-problem"):
        st.error(plain(problem), icon=":material/error:")
    if proposal := st.session_state.get("own-proposal"):
        _preview(ws, proposal)


def _inputs(way: str) -> dict[str, str | None]:
    """The fields of one way; texts by what they are."""
    if way == "paste":
        return {
            "config": st.text_area(t("config.json"), key="own-config", height=220, placeholder="{ ... }"),
            "index": st.text_area(
                t("model.safetensors.index.json (optional: its total is compared with the formula)"), key="own-index"
            ),
        }
    if way == "file":
        config = st.file_uploader(t("config.json"), type=TYPES, key="own-config-file")
        index = st.file_uploader(t("model.safetensors.index.json (optional)"), type=TYPES, key="own-index-file")
        return {
            "config": config.getvalue().decode("utf-8", "replace") if config else "",
            "index": index.getvalue().decode("utf-8", "replace") if index else None,
            "name": config.name if config else None,
        }
    if way == "folder":
        return {"folder": st.text_input(t("Folder with config.json"), key="own-folder", placeholder="models/our-model")}
    st.caption(t("Only config.json and the index are fetched; needs huggingface_hub and a way to the hub."))
    return {"hub": st.text_input(t("Hub id"), key="own-hub", placeholder="org/model")}


def _read(way: str, id: str, given: dict[str, str | None]) -> None:
    """Read what was given; the proposal or the one sentence stays until the next reading."""
    st.session_state.pop("own-proposal", None)
    st.session_state.pop("own-problem", None)
    today = now().date()
    try:
        if way == "folder":
            proposal = from_folder(Path(given["folder"] or "").expanduser(), on=today, id=id.strip())
        elif way == "hub":
            proposal = from_hub(given["hub"] or "", on=today, id=id.strip())
        else:
            name = given.get("name") or "pasted config.json"
            proposal = from_text(given["config"] or "", id=id, name=name, on=today, index=given["index"])
    except FliplineError as e:
        st.session_state["own-problem"] = str(e)
        return
    st.session_state["own-proposal"] = proposal


def _preview(ws: Workspace, proposal: Proposal) -> None:
    """What was read, what was assumed, and the button that keeps it."""
    reading = proposal.reading
    with st.container(border=True):
        st.markdown(f"**{plain(proposal.model.id)}**")
        rows = [{t("What"): t(name), t("Read"): plain(value)} for name, value in summary(proposal)]
        st.table(pd.DataFrame(rows).set_index(t("What")))
        for sentence in reading.warnings:
            st.warning(plain(sentence), icon=":material/warning:")
        if reading.assumed:
            st.markdown(t("Assumed, since config.json does not say it:"))
            st.markdown("\n".join(f"- {plain(sentence)}" for sentence in reading.assumed))
        else:
            st.caption(t("Nothing was assumed: every dimension is stated."))
        replace = st.checkbox(t("Replace an entry of the same name"), key="own-replace")
        if st.button(t("Save"), type="primary", icon=":material/save:", key="own-save"):
            _save(ws, proposal, replace)


def _save(ws: Workspace, proposal: Proposal, replace: bool) -> None:
    try:
        add_model(ws, proposal, replace=replace)
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")
        return
    st.session_state.pop("own-proposal", None)
    # The workspace of this process has read the catalogue already; it is opened anew with the entry.
    st.cache_resource.clear()
    flash(
        t("{model} is in the catalogue: it can be chosen as a model on the Requirements page.", model=proposal.model.id)
    )
    st.rerun()
