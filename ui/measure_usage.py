"""Measure what users really did: observed usage from monitoring or request logs."""

from __future__ import annotations

import streamlit as st

from services.arrivals import bring_in_usage
from services.usage import EXAMPLE, read_usage_file
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.measure_arrived import tell
from ui.parts import kind_badge, shown_errors
from ui.session import signed
from ui.text import t


def section(ws: Workspace, state: CaseState) -> None:
    """Usage as a file of days or requests."""
    st.markdown(
        f"{kind_badge('observed')} "
        + t("What users really did, from monitoring or request logs. Load in a benchmark never counts as this.")
    )
    st.markdown(
        "- " + t("A row a day: `date,peak_in_flight` and, if known, `requests`.")
        + "\n- " + t("Or a row a request: `start,end` in ISO 8601; the daily peak is counted from them.")
    )  # fmt: skip
    st.download_button(
        t("Example"), EXAMPLE, file_name="usage.csv", mime="text/csv", icon=":material/download:", on_click="ignore"
    )
    upload = st.file_uploader(t("Usage (.csv)"), type="csv", key=f"usage-{state.case.slug}")
    if st.button(t("Bring in"), type="primary", icon=":material/move_to_inbox:", disabled=upload is None) and (
        name := signed()
    ):
        with shown_errors():
            usage = read_usage_file(upload.name, upload.getvalue())
            arrived = bring_in_usage(ws, state.case.id, usage, by=name, source=upload.name)
            tell(
                arrived,
                t(
                    "{n} days came in, {first} to {last}; the highest peak was {peak:g} in flight.", n=len(usage),
                    first=usage[0].day, last=usage[-1].day, peak=max(u.peak_in_flight for u in usage),
                ),
            )  # fmt: skip
