"""A chart of the Results page with its data and its picture to take along."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import pandas as pd
import streamlit as st

from ui.charts import as_csv, svg
from ui.text import t


class Picture(NamedTuple):
    """A chart, and what it shows for who cannot see it."""

    chart: alt.Chart | alt.LayerChart
    words: str


def chart_of(slug: str, key: str, chart: alt.Chart | alt.LayerChart, words: str, frame: pd.DataFrame) -> None:
    """Show a chart; `words` says it to who cannot see it, `key` names it and its files among those of the case."""
    # without Altair's own validation, which takes longer than what it checks
    st.vega_lite_chart(spec=chart.to_dict(validate=False), alt=words, key=f"chart-{key}-{slug}")
    with st.container(horizontal=True):
        st.download_button(
            t("SVG"), lambda: svg(chart), file_name=f"{slug}-{key}.svg", mime="image/svg+xml",
            icon=":material/image:", type="tertiary", key=f"svg-{key}-{slug}", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            t("CSV"), lambda: as_csv(frame), file_name=f"{slug}-{key}.csv", mime="text/csv", icon=":material/table:",
            type="tertiary", key=f"csv-{key}-{slug}", on_click="ignore",
        )  # fmt: skip
