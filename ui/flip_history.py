"""How the flip conditions of a decision stood in time, and which run, figure, fact or day changed them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import altair as alt
import pandas as pd
import streamlit as st

from db.runs import Run
from db.verdicts import Cause, Judged
from decisions.record import Adr
from services.workspace import Workspace, now
from ui.palette import STATE_COLOURS
from ui.parts import judged, plain, state_badge
from ui.run_link import run_link
from ui.text import t

NEWEST = 20
RUNS_NAMED = 3  # of those that came in at once
ROW_PX = 34
LONG = timedelta(days=7)  # a time axis of so much names days, a shorter one hours


class Step(NamedTuple):
    """One change of one condition: from what (empty: judged first), to what, and until when it stood."""

    before: str
    judged: Judged
    until: datetime


def verdicts_in_time(ws: Workspace, adr: Adr) -> None:
    """Every condition as a line of states, then every change with what made it, newest first."""
    steps = steps_of(ws.store.verdicts.history(adr.case, adr=adr.id), now())
    if not steps:
        st.markdown(t("Conditions are judged from the acceptance on, whenever evidence arrives."))
        return
    st.altair_chart(_lines(steps), alt=t("State of each condition in time"))
    runs = {r.sha256: r for r in ws.store.runs.of_case(adr.case)}
    slug = ws.store.cases.get(adr.case).slug
    newest = sorted(steps, key=lambda s: s.judged.at, reverse=True)
    _told(newest[:NEWEST], slug, runs)
    if rest := newest[NEWEST:]:
        with st.expander(t("{n} more", n=len(rest)), icon=":material/more_horiz:"):
            _told(rest, slug, runs)


def steps_of(history: Iterable[Judged], at: datetime) -> tuple[Step, ...]:
    """Rows of the history with the state before and the end of each; what stands now ends at `at`."""
    found: list[Step] = []
    open_one: dict[str, int] = {}
    for j in history:
        i = open_one.get(j.condition)
        before = "" if i is None else found[i].judged.state
        if i is not None:
            found[i] = found[i]._replace(until=j.at)
        open_one[j.condition] = len(found)
        found.append(Step(before, j, at))
    return tuple(found)


def _lines(steps: Sequence[Step]) -> alt.LayerChart:
    frame = pd.DataFrame(
        {
            "condition": s.judged.condition, "state": t(s.judged.state), "from": s.judged.at, "until": s.until,
            "since": f"{s.judged.at:%Y-%m-%d %H:%M} UTC", "why": s.judged.cause.says, "sentence": s.judged.sentence,
        }
        for s in steps
    )  # fmt: skip
    states = list(dict.fromkeys(s.judged.state for s in steps))
    scale = alt.Scale(domain=[t(s) for s in states], range=[STATE_COLOURS[s] for s in states])
    base = alt.Chart(frame).encode(
        y=alt.Y("condition:N", title=None, axis=alt.Axis(labelLimit=220), sort=list(dict.fromkeys(frame["condition"]))),
        color=alt.Color("state:N", title=None, scale=scale, legend=alt.Legend(orient="top", symbolType="square")),
        tooltip=[
            alt.Tooltip("condition:N", title=t("Condition")),
            alt.Tooltip("state:N", title=t("State")),
            alt.Tooltip("since:N", title=t("Since")),
            alt.Tooltip("why:N", title=t("Because")),
            alt.Tooltip("sentence:N", title=t("Verdict")),
        ],
    )
    span = max(s.until for s in steps) - min(s.judged.at for s in steps)
    axis = alt.Axis(format="%Y-%m-%d" if span >= LONG else "%m-%d %H:%M", labelOverlap=True, tickCount=6)
    x = alt.X("from:T", title=t("Time (UTC)"), scale=alt.Scale(type="utc"), axis=axis)
    bars = base.mark_bar(height=9, cornerRadius=2).encode(x=x, x2="until:T")
    changes = base.mark_point(filled=True, size=70, opacity=1).encode(x=x)
    return alt.layer(bars, changes).properties(height=alt.Step(ROW_PX))


def _told(steps: Sequence[Step], slug: str, runs: dict[str, Run]) -> None:
    for s in steps:
        j = s.judged
        change = f"{state_badge(s.before)} → {state_badge(j.state)}" if s.before != j.state and s.before else ""
        late = f" :red[{t('overdue')}]" if j.overdue else ""
        because = "".join(_because(j.cause, slug, runs))
        st.markdown(f"- {j.at:%Y-%m-%d %H:%M} UTC · **{plain(j.condition)}** {change or state_badge(j.state)}{late}"
                    f"{because}  \n  :small[{judged(j.sentence, j.state)}]")  # fmt: skip


def _because(cause: Cause, slug: str, runs: dict[str, Run]) -> Iterator[str]:
    if cause.says:
        yield " · " + t("because {why}", why=plain(cause.says))
    linked = [_link(sha256, slug, runs.get(sha256)) for sha256 in cause.runs[:RUNS_NAMED]]
    if linked:
        yield f": {', '.join(linked)}"
    if more := cause.runs[RUNS_NAMED:]:
        yield " " + t("and {n} more", n=len(more))


def _link(sha256: str, slug: str, run: Run | None) -> str:
    """The run on the Results page, or its hash where it is gone."""
    return run_link(slug, run, "results") if run else f"`{sha256[:12]}`"
