"""The decisions of the log as a table to choose from: a thousand rows are as quick as ten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from decisions.record import Adr, Status
from planner.frozen import sha256_of
from services.adr_search import Hit, due_on, excerpt, today
from ui.parts import short
from ui.text import t


def chosen(hits: Sequence[Hit], cases: Mapping[str, str], words: str = "") -> Adr:
    """Show the hits and return the one to look at: of the link, of the click, else what waits for an answer first.

    `cases` are titles by id; a column names the case only where there is more than one.
    """
    ordered = [h.adr for h in hits] if words else sorted((h.adr for h in hits), key=_rank)
    ids = [a.id for a in ordered]
    shown = sha256_of(ids)[:8]
    table, picker = f"log-{shown}", f"adr-{shown}"
    linked = st.query_params.get("adr")
    if picker not in st.session_state:
        st.session_state[picker] = linked if linked in ids else ids[0]

    def clicked() -> None:
        rows = st.session_state[table]["selection"]["rows"]
        if rows:
            st.session_state[picker] = ids[rows[0]]

    st.dataframe(
        pd.DataFrame([_row(a, cases, words) for a in ordered]), key=table, hide_index=True, on_select=clicked,
        selection_mode="single-row", height=min(420, 38 + 35 * len(ordered)),
        column_config={
            t("Tags"): st.column_config.ListColumn(width="medium"),
        },
        alt=t("Decisions with status, who decided, what waits and tags"),
    )  # fmt: skip
    titles = {a.id: short(a) for a in ordered}
    id = st.selectbox(t("Look at"), ids, format_func=titles.get, key=picker)
    st.query_params["adr"] = id
    return ordered[ids.index(id)]


def _rank(adr: Adr) -> tuple[bool, bool, bool]:
    """What waits for an answer comes first, then what stands, then what is under way."""
    return (
        not adr.waits,
        adr.status is not Status.ACCEPTED,
        adr.status not in (Status.PROPOSED, Status.DRAFT),
    )


def _row(adr: Adr, cases: Mapping[str, str], words: str) -> dict[str, object]:
    by = f"{adr.accepted_by}, {adr.accepted_at:%Y-%m-%d}" if adr.accepted_at else "–"
    row: dict[str, object] = {t("Status"): t(adr.status.value), t("Decision"): short(adr), t("Decided"): by}
    if len(cases) > 1:
        row[t("Case")] = cases[adr.case]
    if words:
        row[t("Found")] = excerpt(adr, words)
    return row | {t("Waiting"): _waiting(adr), t("Tags"): list(adr.tags)}


def _waiting(adr: Adr) -> str:
    if adr.waits:
        return t("fired")
    due = due_on(adr)
    return t("due {day}", day=due) if due and due <= today() else "–"
