"""What to measure next, as a list: on the Results page whole, on the Overview its head."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.measure_next import Next
from ui.next_words import next_rows
from ui.parts import plain
from ui.text import t

SHOWN = 5


def measure_next_section(runs: tuple[Next, ...]) -> None:
    """The first runs as a table, the rest on request; says so where everything is settled."""
    st.subheader(t("Measure next"))
    if not runs:
        st.markdown(t("Nothing that could be measured would change the decision."))
        return
    st.table(next_frame(runs[:SHOWN]), border="horizontal")
    if rest := runs[SHOWN:]:
        with st.expander(t("{n} more", n=len(rest)), icon=":material/more_horiz:"):
            st.table(next_frame(rest, first=SHOWN + 1), border="horizontal")


def next_frame(runs: tuple[Next, ...], first: int = 1) -> pd.DataFrame:
    """The runs as Markdown shows them literally."""
    return next_rows(runs, first).map(plain).set_index(t("Order"))
