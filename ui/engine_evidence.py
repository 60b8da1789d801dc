"""The evidence behind every rating: all cells, a drawer for the one that was clicked, two engines side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pandas as pd
import streamlit as st

from planner.engine_check import cited
from planner.engine_facts import age
from planner.engine_schema import Engine
from planner.ratings import rated
from planner.scoring import Contribution, Score, pugh
from ui.parts import plain, state_badge
from ui.text import t
from ui.words import GATES, better_worse, criterion, rating

CELL_PX, LETTER_PX, MARGIN_PX = 66, 7, 22
NAME_PX = 170  # the longest criterion, and no more: the five engines stand beside it
# A heading has to fit its column; the drawer names the engine in full.
SHORT = {"Hugging Face TGI": "TGI"}
NOT_HIGH = {"medium": "◐", "low": "○", "unknown": ""}  # marks beside a rating; high confidence has none


def evidence(score: Score, engines: Mapping[str, Engine], today: date, key: str) -> None:
    """All ratings as a table; a click on a cell opens what it rests on beside it."""
    order = [c.engine for c in score.candidates]
    names = {c.engine: c.engine_name for c in score.candidates}
    criteria = [w.criterion for w in sorted(score.weights, key=lambda w: -w.weight)]
    table, drawer = st.columns([2, 1])
    with table:
        _cells(score, order, names, criteria, key)
    with drawer, st.container(border=True):
        chosen = st.selectbox(t("Engine"), order, format_func=names.get, key=f"{key}-engine")
        about = st.selectbox(t("Criterion"), criteria, format_func=criterion, key=f"{key}-criterion")
        _drawer(engines[chosen], about, today)


def _cells(
    score: Score, order: Sequence[str], names: Mapping[str, str], criteria: Sequence[str], key: str
) -> None:  # fmt: skip
    """The table; a click sets the two boxes of the drawer, which the keyboard reaches too."""
    parts = {c.engine: {p.criterion: p for p in c.contributions} for c in score.candidates}
    frame = pd.DataFrame(
        {names[e]: [_cell(parts[e][k]) for k in criteria] for e in order},
        index=pd.Index([criterion(k) for k in criteria], name=t("Criterion")),
    )

    def open_cell() -> None:
        for row, column in st.session_state[f"{key}-cells"].selection.cells:
            st.session_state[f"{key}-criterion"] = criteria[row]
            for e in order:
                if names[e] == column:
                    st.session_state[f"{key}-engine"] = e

    st.dataframe(
        frame, key=f"{key}-cells", on_select=open_cell, selection_mode="single-cell",
        height="content", alt=t("Rating of each engine by criterion"),
        column_config={
            "_index": st.column_config.Column(width=NAME_PX),
            **{name: _column(SHORT.get(name, name)) for name in names.values()},
        },
    )  # fmt: skip
    st.caption(
        t("Click a rating for its evidence; the heaviest criteria stand on top. Anchors: ○○○ none, ●○○ limited, "
          "●●○ good, ●●● excellent; ??? not known. ◐ medium confidence, ○ low.")
    )  # fmt: skip


def _column(label: str) -> object:
    """A column as wide as its heading, which is never cut off."""
    return st.column_config.Column(label, width=max(CELL_PX, LETTER_PX * len(label) + MARGIN_PX))


def _cell(p: Contribution) -> str:
    """A rating as marks, with its confidence where that is not high."""
    marks = rating(p.rating).split(" ")[0]
    return f"{marks} {NOT_HIGH.get(p.sureness, '')}".strip()


def _drawer(engine: Engine, about: str, today: date) -> None:
    """Statement, rating and reason, how it is known, for which versions, read when, and each source."""
    axis = rated(engine, about)
    unknown = axis.rating is None
    st.markdown(f"**{plain(engine.name)} · {criterion(about)}**  \n{rating(axis.rating)}")
    st.markdown(f"{plain(axis.statement)}  \n*{plain(axis.reason)}*")
    if unknown:
        st.info(
            t("Nobody knows. It counts as the middle of the scale and lowers the confidence, not the score."),
            icon=":material/help:",
        )
    else:
        st.markdown(
            t("**{kind}**, {confidence} confidence, versions {versions}, read on {day}",
              kind=t(axis.evidence_kind), confidence=t(axis.confidence), versions=plain(axis.versions),
              day=axis.read_on)
        )  # fmt: skip
    if axis.only_documented:
        st.warning(
            t("Documented only: no document proves speed. Nobody read the code or measured it."),
            icon=":material/description:",
        )
    st.markdown(t("Looked for in:") if unknown else t("Sources:"))
    for name in axis.source:
        _source(engine, name)
    old = age(engine, today)
    (st.warning if old.stale else st.caption)(plain(old.sentence))


def _source(engine: Engine, name: str) -> None:
    """One source: its name, and where it is known its address, version, day and what was read there."""
    found = cited(engine, name)
    if found is None:
        st.markdown(f"- {plain(name)}")
        return
    address = found.address if found.address.startswith("http") else f"https://github.com/{found.address}"
    link = f"[{plain(name)}]({address})" if found.address.startswith("http") else plain(f"{name} ({found.address})")
    read = t("{what} (version {version}, read on {day})", what=found.read, version=found.version, day=found.read_on)
    if found.published:
        read = t("{read}, published on {day}", read=read, day=found.published)
    st.markdown(f"- {link}  \n  :small[{plain(read)}]")


def compare(score: Score, engines: Mapping[str, Engine], today: date, key: str) -> None:
    """Two engines side by side: gates, points and what each is rated for, the largest difference first."""
    order = [c.engine for c in score.candidates]
    names = {c.engine: c.engine_name for c in score.candidates}
    left, right = st.columns(2)
    a = left.selectbox(t("One engine"), order, index=0, format_func=names.get, key=f"{key}-a")
    b = right.selectbox(t("Against"), order, index=min(1, len(order) - 1), format_func=names.get, key=f"{key}-b")
    for column, e in ((left, a), (right, b)):
        c = score.of(e)
        old = age(engines[e], today)
        with column:
            st.markdown(
                t("{version}, {points:.1f} points of 100, {share:.0%} of the weights of high confidence",
                  version=plain(f"{c.engine_name} {c.version}"), points=100 * c.score, share=c.confidence)
            )  # fmt: skip
            st.markdown(" ".join(f"{t(GATES[g.gate])} {state_badge(g.state)}" for g in c.gates if g.state != "pass")
                        or t("All gates pass."))  # fmt: skip
            (st.warning if old.stale else st.caption)(plain(old.sentence))
    one, other = ({p.criterion: p for p in score.of(e).contributions} for e in (a, b))
    gap = {k: 100 * (one[k].contribution - other[k].contribution) for k in one if one[k].weight > 0}
    rows = [
        {
            t("Criterion"): criterion(k),
            t("Points between"): f"{gap[k]:+.1f}" if gap[k] else "0",
            names[a]: f"{rating(one[k].rating)}  \n:small[{plain(one[k].reason)}]",
            names[b] if a != b else t("the same"): f"{rating(other[k].rating)}  \n:small[{plain(other[k].reason)}]",
        }
        for k in sorted(gap, key=lambda k: -abs(gap[k]))
    ]
    st.table(pd.DataFrame(rows).set_index(t("Criterion")), border="horizontal")


def against_today(score: Score, datum: str) -> None:
    """Every engine against one, criterion by criterion (Pugh)."""
    names = {c.engine: c.engine_name for c in score.candidates}
    columns = {
        names[e]: {criterion(k): better_worse(v) for k, v in cells.items()}
        for e, cells in pugh(score, datum).items()
        if e != datum
    }
    st.table(pd.DataFrame(columns), border="horizontal")
