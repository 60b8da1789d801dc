"""How the figures of a case are known, and what is left out of the charts."""

from __future__ import annotations

import streamlit as st

from services.verdicts import CaseState
from ui.parts import go_to, kind_badge, plain
from ui.text import t
from ui.views import SEEN, of_older_versions, other_loads


def sources_section(state: CaseState) -> None:
    """The kinds of evidence as badges, and what is left out: what decides nothing, other loads, older versions."""
    known = {f.kind for f in state.evidence.facts}
    kinds = [k.value for k in SEEN if k in known]
    if kinds:
        st.markdown(t("Known from:") + " " + " ".join(kind_badge(k) for k in kinds))
    if "simulated" in kinds:
        st.warning(t("Simulated figures come from the emulator. They test the instrument and decide nothing."),
                   icon=":material/science:")  # fmt: skip
    if others := other_loads(state):
        st.warning(
            t("Left out below: figures of {points} that were taken at another load or length than this plan's.",
              points=plain(", ".join(others))), icon=":material/rule:",
        )  # fmt: skip
    if older := of_older_versions(state):
        st.caption(t("Left out below: older figures of {who}, under another version or other settings.",
                     who=plain(", ".join(older))))  # fmt: skip
    if "measured" not in kinds:
        go_to("measure", t("Nothing was measured on this machine yet."))
