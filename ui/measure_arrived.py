"""What came in, said after the rerun: what was refused, and whether it re-opens a decision."""

from __future__ import annotations

import streamlit as st

from services.arrivals import Arrived
from ui.parts import flash, go_to, plain
from ui.text import t


def tell(arrived: Arrived, what: str) -> None:
    """Say after the rerun what came in, and keep the rest for `told`."""
    st.session_state["fired"] = [v.sentence for v in arrived.fired]
    st.session_state["broken"] = [str(b.error) for b in arrived.broken]
    flash(what)
    st.rerun()


def told() -> None:
    """Bundles that were refused, and flip conditions that fired because of what came in last."""
    if broken := st.session_state.pop("broken", []):
        refused = t("Not taken in: {n}", n=len(broken))
        st.error("\n".join([refused, "", *(f"- {plain(b)}" for b in broken)]), icon=":material/broken_image:")
    for sentence in st.session_state.pop("fired", []):
        st.error(f"**{t('A flip condition fired.')}** {plain(sentence)}", icon=":material/notifications_active:")
        go_to("adr-log", t("A person answers it:"))
