"""Measure on the GPU box: the plan goes there, bundles come back."""

from __future__ import annotations

import streamlit as st

from services.arrivals import bring_in_zip
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
    st.markdown(t("Take the plan to the GPU box, run it there, bring the folder back as a .zip."))
    st.download_button(
        t("Plan file"), stored.body, file_name="plan.yaml", mime="application/yaml", icon=":material/download:",
        on_click="ignore",
    )  # fmt: skip
    st.code(
        "scp plan.yaml gpu-box:\npython -m bench run plan.yaml --out results\nzip -r results.zip results",
        language="bash",
    )
    upload = st.file_uploader(t("Bundles (.zip)"), type="zip", key=f"zip-{state.case.slug}")
    if st.button(t("Take in"), type="primary", icon=":material/move_to_inbox:", disabled=upload is None) and (
        name := signed()
    ):
        assert upload is not None
        with shown_errors():
            arrived = bring_in_zip(ws, state.case.id, upload.name, upload.getvalue(), name)
            new = sum(taken.new for taken in arrived.taken)
            tell(
                arrived,
                t("{new} runs came in, {old} were there already.", new=new, old=len(arrived.taken) - new),
            )
