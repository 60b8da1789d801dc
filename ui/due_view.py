"""What somebody promised to look at and is due, and whether the chat still hears of what fires."""

from __future__ import annotations

import streamlit as st

from services.due import Due, due_of
from services.verdicts import CaseState
from services.webhook import failing
from services.workspace import Workspace, now
from ui.parts import go_to, plain, short
from ui.text import t


def standing_duties(ws: Workspace, state: CaseState) -> None:
    """Reviews and re-checks of the open case that are due by now or soon, and a webhook that does not answer."""
    if told := failing(ws):
        words = t(
            "The webhook at {host} has not taken a message since {since} UTC: {why}. {n} wait to be sent again.",
            host=plain(told.host), since=f"{told.since:%Y-%m-%d %H:%M}", why=t(told.why), n=told.waiting,
        )  # fmt: skip
        st.warning(words, icon=":material/webhook:")
    listed = due_of(state.adrs, now().date())
    if listed:
        st.subheader(t("Due"))
        st.markdown("\n".join(due_line(one) for one in listed))
        go_to("adr-log", t("Look, and say what was found:"))


def due_line(one: Due) -> str:
    """One promise as a line: when, what, of which decision, by whom."""
    day = f":red[{one.on:%Y-%m-%d}]" if one.overdue else f"{one.on:%Y-%m-%d}"
    what = t("review") if one.what == "review" else t("re-check of {condition}", condition=plain(one.condition))
    return f"- {day} · {what} · {plain(short(one.adr))} · {plain(one.who) or t('nobody')}"
