"""A table of words whose cells are read whole: lines break where a dataframe would cut them off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from ui.parts import plain


def whole_table(rows: Sequence[Mapping[str, object]], alt: str) -> None:
    """Show rows with their first column as heads; text is shown literally, and what no row has is no column."""
    if not rows:
        return
    frame = pd.DataFrame(rows).fillna("").astype(str)
    shown = frame.loc[:, (frame != "").any()].map(plain)
    st.table(shown.set_index(shown.columns[0]), border="horizontal", alt=alt)
