"""Measure on the GPU box: the plan goes there, bundles come back."""

from __future__ import annotations

import streamlit as st

from services.arrivals import Arrived, bring_in_files
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.measure_arrived import tell
from ui.parts import shown_errors
from ui.session import signed
from ui.text import t


def section(ws: Workspace, state: CaseState) -> None:
    """Plan file out, bundles in."""
    stored = state.stored_plan
    assert stored is not None
    st.markdown(t("Take the plan to the GPU box, run it there, bring the folder back: as it is, or as a .zip."))
    st.download_button(
        t("Plan file"), stored.body, file_name="plan.yaml", mime="application/yaml", icon=":material/download:",
        on_click="ignore",
    )  # fmt: skip
    st.code(
        "scp plan.yaml gpu-box:\npython -m bench run plan.yaml --out results\nzip -r results.zip results",
        language="bash",
    )
    count = len(state.runs)  # an uploader is empty again once its files are in
    a, b = st.columns(2)
    zips = a.file_uploader(
        t("Bundles (.zip)"), type="zip", accept_multiple_files=True, key=f"zip-{state.case.slug}-{count}"
    )
    loose = b.file_uploader(
        t("Folder of bundles"), accept_multiple_files="directory", key=f"folder-{state.case.slug}-{count}"
    )
    uploads = [*zips, *loose]
    if st.button(t("Take in"), type="primary", icon=":material/move_to_inbox:", disabled=not uploads) and (
        name := signed()
    ):
        with shown_errors():
            bar = st.progress(0.0)

            def report(done: int, total: int, bundle: str) -> None:
                bar.progress(done / total, text=t("{done} of {total} bundles", done=done, total=total))

            arrived = bring_in_files(ws, state.case.id, [(u.name, u.getvalue()) for u in uploads], name, report)
            tell(arrived, _in_words(arrived))


def _in_words(arrived: Arrived) -> str:
    old = len(arrived.taken) - arrived.new
    return t("New runs: {new}, there already: {old}.", new=arrived.new, old=old)
