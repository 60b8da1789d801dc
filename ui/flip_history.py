"""How the flip conditions of a decision stood in time, and what changed them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from decisions.record import Adr
from services.workspace import Workspace
from ui.text import t


def verdicts_in_time(ws: Workspace, adr: Adr) -> None:
    """Every change of every condition, newest first."""
    changes = ws.store.verdicts.history(adr.case, adr=adr.id)
    if not changes:
        st.markdown(t("Conditions are judged from the acceptance on, whenever evidence arrives."))
        return
    st.dataframe(
        pd.DataFrame(
            [
                {
                    t("When (UTC)"): f"{j.at:%Y-%m-%d %H:%M:%S}", t("Condition"): j.condition,
                    t("State"): t(j.state), t("Why"): j.sentence,
                }
                for j in reversed(changes)
            ]
        ),
        hide_index=True, alt=t("How the conditions stood in time, newest first"),
    )  # fmt: skip
