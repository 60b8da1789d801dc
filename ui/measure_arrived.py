"""What came in, said after the rerun, and whether it re-opens a decision."""

from __future__ import annotations

import streamlit as st

from services.arrivals import Arrived
from ui.parts import flash, go_to, plain
from ui.text import t


def tell(arrived: Arrived, what: str) -> None:
    """Say after the rerun what came in, and keep what fired for `fired`."""
    st.session_state["fired"] = [v.sentence for v in arrived.fired]
    flash(what)
    st.rerun()


def fired() -> None:
    """The flip conditions that fired because of what came in last."""
    for sentence in st.session_state.pop("fired", []):
        st.error(f"**{t('A flip condition fired.')}** {plain(sentence)}", icon=":material/notifications_active:")
        go_to("adr-log", t("A person answers it:"))
