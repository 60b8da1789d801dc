"""Who may take part and who comes first: a card for each engine, the gates, and the score by its parts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pandas as pd
import streamlit as st

from planner.engine_facts import age
from planner.engine_schema import Engine
from planner.scoring import Score, ScoredCandidate
from ui.charts import contributions
from ui.parts import plain, state_badge
from ui.text import t
from ui.words import GATES, criterion, in_words, role_badge


def cards(score: Score, engines: Mapping[str, Engine], today: date) -> None:
    """One card an engine: role, score, reason, and whether its facts have aged."""
    for c in score.candidates:
        with st.container(border=True):
            _card(c, engines[c.engine], today)


def _card(c: ScoredCandidate, engine: Engine, today: date) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        ranked = t("{points:.0f} of 100", points=100 * c.score) if c.ranked else t("not ranked")
        sure = t("sure of {share:.0%}", share=c.confidence)
        st.markdown(
            f"{role_badge(c.advice.role)} **{plain(c.engine_name)}** {plain(c.version)} · {ranked} · :small[{sure}]"
        )
        with st.popover(t("Sources"), icon=":material/menu_book:"):
            for source in c.advice.sources:
                st.markdown(f"- {plain(source)}")
            if not c.advice.sources:
                st.markdown(t("Follows from the score alone."))
    st.markdown(plain(in_words(c.advice.reason)))
    unknown = [criterion(p.criterion) for p in c.contributions if p.weight > 0 and p.rating is None]
    if unknown:
        st.markdown(
            t(":blue[:material/help: Not known:] {names}. Counted as the middle of the scale, neither for nor against.",
              names=", ".join(unknown))
        )  # fmt: skip
    if c.advice.when and c.advice.when not in c.advice.reason:
        st.caption(t("Comes back when: {when}", when=plain(in_words(c.advice.when))))
    if c.form and c.form.note:
        st.caption(t("Would run as: {note}", note=plain(c.form.note)))
    old = age(engine, today)
    if old.stale:
        st.markdown(f":orange[:material/history: {t('Stale facts:')}] {plain(old.sentence)}")


def gate_table(score: Score) -> None:
    """Every gate of every engine, and the reason and source behind each."""
    gates = [g.gate for g in score.candidates[0].gates]
    rows = [f"| | {' | '.join(t(GATES[g]) for g in gates)} |", f"|---|{'---|' * len(gates)}"]
    states = [(plain(c.engine_name), *(state_badge(g.state) for g in c.gates)) for c in score.candidates]
    st.markdown("\n".join([*rows, *(f"| {' | '.join(cells)} |" for cells in states)]))
    st.caption(t("A failed gate takes an engine out of the ranking. Unknown stays unknown until a server was started."))
    with st.expander(t("Reason and source of each gate"), icon=":material/rule:"):
        for c in score.candidates:
            for g in c.gates:
                left, right = st.columns([1, 3])
                left.markdown(f"{plain(c.engine_name)}: {t(GATES[g.gate])} {state_badge(g.state)}")
                source = f"  \n:small[{plain('; '.join(g.sources))}]" if g.sources else ""
                right.markdown(f"{plain(g.reason)}{source}")


def bars(score: Score) -> None:
    """The score of each engine as a bar of its parts, with what it rests on."""
    parts = [
        {
            "candidate": c.engine_name if c.ranked else t("{name} (stopped)", name=c.engine_name),
            "criterion": criterion(p.criterion),
            "contribution": 100 * p.contribution,
            "reason": t("not known: the middle of the scale") if p.rating is None else p.reason,
        }
        for c in score.candidates
        for p in c.contributions
        if p.weight > 0
    ]
    st.altair_chart(
        contributions(pd.DataFrame(parts)),
        alt=t("Score of each engine of 100, by criterion: {all}",
              all=", ".join(f"{c.engine_name} {100 * c.score:.0f}" for c in score.candidates)),
    )  # fmt: skip
    st.caption(
        t("{sentence} Closer than {margin:.1f} points is a near tie: one rating step on one criterion of average "
          "weight.", sentence=plain(score.candidates[0].confidence_sentence), margin=100 * score.near_tie_margin)
    )  # fmt: skip
