"""Hypotheses that the score proposes: why each is asked, what it tests, and one click that takes it into the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from planner.condition_line import format_condition
from planner.poc import Plan
from planner.proposals import Proposal
from planner.rereads import Reread
from ui.parts import plain
from ui.text import t
from ui.words import in_words

ORIGINS = {
    "unknown gate": ":blue-badge[:material/help: unknown gate]",
    "open requirement": ":violet-badge[:material/question_mark: open requirement]",
    "close race": ":orange-badge[:material/sports_score: close race]",
    "thin evidence": ":gray-badge[:material/blur_on: thin evidence]",
}


def proposals(asked: Sequence[Proposal], plan: Plan | None, take: Callable[[str], None], key: str) -> None:
    """What no plan covers yet comes first, each with its button; what a plan covers is named with its hypothesis."""
    covered = {p.id: p.covered_by(plan) if plan else None for p in asked}
    for p in (p for p in asked if not covered[p.id]):
        with st.container(border=True):
            said, action = st.columns([4, 1])
            said.markdown(f"{t(ORIGINS[p.origin])} **{plain(p.id)}** {plain(p.hypothesis.statement)}")
            action.button(t("Add to the plan"), icon=":material/playlist_add:", key=f"{key}-{p.id}", on_click=take,
                          args=(p.id,), help=t("Take it into the draft of the plan."), width="stretch")  # fmt: skip
            st.code("\n".join(format_condition(c) for c in p.hypothesis.conditions), language=None)
            # A gate's reason begins with the name of a format, which keeps its small letter.
            why = p.why if p.origin == "unknown gate" else in_words(p.why)
            st.caption(
                t("Why: {why} How: {method} **If rejected:** {rejected}", why=plain(why),
                  method=plain(p.hypothesis.method), rejected=plain(p.hypothesis.if_rejected))
            )  # fmt: skip
    done = [p for p in asked if covered[p.id]]
    if done:
        with st.expander(t("Already in the plan ({n})", n=len(done)), icon=":material/playlist_add_check:"):
            for p in done:
                st.markdown(
                    f"- {t(ORIGINS[p.origin])} {plain(p.hypothesis.statement)} · **{plain(covered[p.id] or '')}**"
                )
    if not asked:
        st.markdown(t("Every gate is settled and no rating is thin enough to need a test of its own."))


def read_again(thin: Sequence[Reread]) -> None:
    """Ratings that no load settles, each with its source."""
    if thin:
        st.markdown(t("Read again or tried by hand before a decision, since no load settles it:"))
        for r in thin:
            st.markdown(f"- {plain(in_words(r.sentence))}")
