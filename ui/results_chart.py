"""A chart of the Results page with its data and its picture to take along."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from ui.charts import as_csv, svg
from ui.text import t


def chart_of(slug: str, key: str, chart: alt.Chart | alt.LayerChart, words: str, frame: pd.DataFrame) -> None:
    """Show a chart; `words` says it to who cannot see it, `key` names it on the page, both its files."""
    st.vega_lite_chart(spec=spec_of(chart), alt=words, key=f"chart-{key}")
    with st.container(horizontal=True):
        st.download_button(
            t("SVG"), lambda: svg(chart), file_name=f"{slug}-{key}.svg", mime="image/svg+xml",
            icon=":material/image:", type="tertiary", key=f"svg-{key}", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            t("CSV"), lambda: as_csv(frame), file_name=f"{slug}-{key}.csv", mime="text/csv", icon=":material/table:",
            type="tertiary", key=f"csv-{key}", on_click="ignore",
        )  # fmt: skip


def spec_of(chart: alt.Chart | alt.LayerChart) -> dict[str, Any]:
    """The chart as Vega-Lite with its data under names that do not depend on them: only new data is drawn anew.

    Altair's own validation is left out, since it takes longer than the rest.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False)
    datasets = spec.pop("datasets", {})
    names = {name: f"data-{i}" for i, name in enumerate(datasets)}
    return {**_renamed(spec, names), "datasets": {names[name]: rows for name, rows in datasets.items()}}


def _renamed(part: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A chart and its layers with the data under other names."""
    found = dict(part)
    if "data" in part:
        found["data"] = {"name": names[part["data"]["name"]]}
    if "layer" in part:
        found["layer"] = [_renamed(layer, names) for layer in part["layer"]]
    return found
