"""Measure by hand: a table that came back from a GPU box."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from services.arrivals import bring_in_table
from services.filled import blank_table, columns_of, rows_of
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.measure_arrived import tell
from ui.parts import kind_badge, plain, shown_errors
from ui.session import author, signed
from ui.text import t


def section(ws: Workspace, state: CaseState) -> None:
    """A table to fill in, with who measured it, from where and when."""
    assert state.plan is not None and state.stored_plan is not None
    plan = state.plan
    st.markdown(
        f"{kind_badge('entered')} "
        + t("Figures without load and lengths mean nothing, so they stand beside each row. Leave empty what nobody "
            "measured.")
    )  # fmt: skip
    version = len([e for e in state.evidence if e.kind == "entered"])
    figures = [c.name for c in columns_of(plan)]
    whole = {
        "n": t("Requests (n)"), "in_flight": t("In flight"), "input_tokens": t("Input tokens"),
        "output_tokens": t("Output tokens"),
    }  # fmt: skip
    config = {
        "candidate": st.column_config.TextColumn(t("Candidate")),
        "load_point": st.column_config.TextColumn(t("Load point")),
        "rate_per_s": st.column_config.NumberColumn(t("Rate (req/s)"), min_value=0.0),
        **{name: st.column_config.NumberColumn(t(name), min_value=0.0) for name in figures},
        **{name: st.column_config.NumberColumn(label, min_value=1, step=1) for name, label in whole.items()},
    }
    blank = pd.DataFrame(blank_table(plan)).astype(
        {"in_flight": "Int64", "rate_per_s": "Float64", "n": "Int64", **dict.fromkeys(figures, "Float64")}
    )
    table = st.data_editor(
        blank, key=f"hand-{state.case.slug}-{state.stored_plan.sha256[:12]}-{version}", hide_index=True,
        column_config=config, disabled=["candidate", "load_point"], placeholder="–",
        column_order=["candidate", "load_point", *figures, "n", "in_flight", "rate_per_s", "input_tokens",
                      "output_tokens"],
        alt=t("Results by load point, to fill in"),
    )  # fmt: skip
    a, b, c = st.columns(3)
    by = a.text_input(t("Measured by"), value=author(), key=f"hand-by-{state.case.slug}")
    source = b.text_input(
        t("From"), placeholder=t("log, sheet or message"), key=f"hand-from-{state.case.slug}-{version}"
    )
    day = c.date_input(t("Day of the run"), value=now().date(), max_value=now().date(), format="YYYY-MM-DD")
    if st.button(t("Store these figures"), type="primary", icon=":material/save:") and signed():
        with shown_errors():
            rows = rows_of(plan, table.astype(object).where(table.notna(), None).to_dict("records"))
            arrived = bring_in_table(ws, state.case.id, rows, by=by, source=source, measured_at=day)
            tell(arrived, t("{n} figures are stored, as entered by {who}.", n=len(arrived.evidence), who=plain(by)))
