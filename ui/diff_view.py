"""Two versions side by side: what stood, what stands, long texts word by word, and what the change leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from decisions.record import Adr
from planner.differences import Difference, folded
from services.diffs import (
    TODAY,
    Diff,
    Version,
    adr_against,
    adr_diff,
    adr_versions,
    newest_two,
    plan_diff,
    plan_versions,
    requirements_diff,
    requirements_versions,
    score_diff,
    score_versions,
)
from services.workspace import Workspace
from ui.parts import plain, short, shown_errors
from ui.text import t

HISTORY = "history"
MANY, HIGHEST_PX = 14, 600  # more rows than that scroll inside their own frame
LONG = 48  # characters; a longer text is shown once, with its changes inside
_CELL = "padding:.3rem .6rem;vertical-align:top;text-align:left;overflow-wrap:anywhere;white-space:pre-wrap"
_HEAD = f'style="{_CELL};font-weight:400;opacity:.75;border-bottom:1px solid rgba(128,128,128,.45)"'
_ROW = "border-bottom:1px solid rgba(128,128,128,.2)"
_OUT = '<del style="background:rgba(220,38,38,.18)">{text}</del>'
_IN = '<ins style="background:rgba(22,163,74,.22)">{text}</ins>'


def shown_diff(diff: Diff) -> None:
    """The fields that differ as a table, and what follows from them."""
    if not diff.rows:
        st.markdown(t("They do not differ."))
        return
    for sentence in diff.follows:
        st.markdown(f":material/subdirectory_arrow_right: {plain(t(sentence))}")
    st.caption(t("{n} fields differ", n=len(diff.rows)) if len(diff.rows) > 1 else t("One field differs"))
    with st.container(height=HIGHEST_PX if len(diff.rows) > MANY else "content", border=False):
        st.html(as_table(diff.rows, t("Before"), t("After"), t("Field")))


def as_table(rows: Sequence[Difference], before: str, after: str, field: str) -> str:
    """Differences as an HTML table: both sides beside each other, a long text once with its changes marked."""
    heads = "".join(f'<th scope="col" {_HEAD}>{escape(x)}</th>' for x in (field, before, after))
    return (
        '<table style="width:100%;border-collapse:collapse;font-size:.9rem;table-layout:fixed">'
        '<colgroup><col style="width:28%"><col style="width:36%"><col style="width:36%"></colgroup>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(map(_row, rows))}</tbody></table>"
    )


def _row(row: Difference) -> str:
    head = f'<th scope="row" style="{_CELL};font-weight:600">{escape(" › ".join(t(p) for p in row.path))}</th>'
    return f'<tr style="{_ROW}">{head}{_sides(row)}</tr>'


def _sides(row: Difference) -> str:
    if row.before and row.after and max(len(row.before), len(row.after)) > LONG:
        marks = {"same": "{text}", "out": _OUT, "in": _IN}
        text = "".join(marks[p.side].format(text=escape(p.text)) for p in folded(row.pieces))
        return f'<td colspan="2" style="{_CELL}">{text}</td>'
    return "".join(f'<td style="{_CELL}">{escape(text) if text else "–"}</td>' for text in (row.before, row.after))


def adr_differences(ws: Workspace, adr: Adr) -> None:
    """Any two points of an ADR's history, or the ADR against one that it supersedes."""
    older = {id: ws.store.adrs.get(id) for id in adr.supersedes}
    versions = adr_versions(ws, adr.id)
    ways = [*([HISTORY] if len(versions) > 1 else []), *older]
    if not ways:
        st.markdown(t("A draft has one version, and it supersedes nothing: there is nothing to compare it with."))
        return
    way = ways[0]
    if len(ways) > 1:
        way = st.segmented_control(
            t("Compare"), ways, default=way, key=f"diff-way-{adr.id}", required=True,
            format_func=lambda w: t("with {name}", name=older[w].name) if w in older else t("points of its history"),
        )  # fmt: skip
    if way in older:
        st.markdown(t("What it says otherwise than {name}:", name=plain(short(older[way]))))
        shown_diff(adr_against(ws, adr.id, way))
        return
    _two(versions, f"adr-{adr.id}", lambda a, b: adr_diff(ws, adr.id, a, b), first=versions[0].key)


@st.fragment
def requirements_history(ws: Workspace, case: str) -> None:
    """Any two versions of the requirements: what differs, and what that invalidates."""
    versions = requirements_versions(ws, case)
    title = t("Versions ({n})", n=len(versions))
    _folded_in(title, versions, f"requirements-{case}", lambda a, b: requirements_diff(ws, case, a, b))


@st.fragment
def score_history(ws: Workspace, case: str) -> None:
    """Any two scores: as decided, under a version of the requirements, today."""
    versions = score_versions(ws, case)
    _folded_in(t("Compare two scores"), versions, f"score-{case}", lambda a, b: score_diff(ws, case, a, b),
               first=versions[0].key)  # fmt: skip


@st.fragment
def plan_history(ws: Workspace, case: str) -> None:
    """Any two stored plans: points, candidates with their commands, hypotheses, contract."""
    versions = plan_versions(ws, case)
    title = t("Versions ({n})", n=len(versions))
    _folded_in(title, versions, f"plan-{case}", lambda a, b: plan_diff(ws, case, a, b))


def _folded_in(
    title: str, versions: Sequence[Version], key: str, compare: Callable[[str, str], Diff], first: str | None = None
) -> None:
    """A choice of two behind a line; nothing is compared before it is opened."""
    with st.expander(title, icon=":material/history:", key=f"versions-{key}", on_change="rerun") as shown:
        if shown.open:
            _two(versions, key, compare, first)


def _two(versions: Sequence[Version], key: str, compare: Callable[[str, str], Diff], first: str | None = None) -> None:
    """A choice of two versions and their difference; at first the newest two, or `first` against the newest."""
    chosen = newest_two(versions)
    if chosen is None:
        for only in versions:
            st.markdown(plain(_label(only)))
        return
    labels = {v.key: _label(v) for v in versions}
    keys = list(labels)
    left, right = st.columns(2)
    state = f"{key}-{len(keys)}"  # a new version is shown at once, whatever was chosen before it came
    before = left.selectbox(t("Before"), keys, index=keys.index(first or chosen[0]), format_func=labels.get,
                            key=f"before-{state}")  # fmt: skip
    after = right.selectbox(t("After"), keys, index=len(keys) - 1, format_func=labels.get, key=f"after-{state}")
    with shown_errors():
        shown_diff(compare(before, after))


def _label(version: Version) -> str:
    return t("today") if version.key == TODAY else version.in_words
