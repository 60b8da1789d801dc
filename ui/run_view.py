"""One run in time: its requests, the gaps between their tokens, the server beside them, and what went worst."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from bundle.manifest import Repeat
from db.runs import Run
from services.evidence import manifest_of
from services.run_details import SERVER, Gaps, RequestDetails, Thinned, metric_lines, outliers, phases
from services.verdicts import CaseState
from ui.cached import gaps_of, requests_of, server_of
from ui.charts import timeline
from ui.parts import shown_errors
from ui.request_charts import gaps_in_time, waterfall
from ui.results_chart import chart_of
from ui.run_link import ANCHOR, linked_run
from ui.text import t, tn

TABLE_HEIGHT = 260
VIEWS = ("Requests", "Gaps between tokens", "Server")


def one_run(state: CaseState) -> None:
    """Choose a run, a load point and a repeat, and see them second by second; nothing where nothing ran."""
    if runs := [run for run in state.runs if run.status != "failed"]:
        st.subheader(t("One run in time"), anchor=ANCHOR)
        _one_run(state.case.slug, runs)


@st.fragment  # the rest of the page says nothing else when another run is chosen
def _one_run(slug: str, runs: list[Run]) -> None:
    with shown_errors():
        run, repeat = _chosen(slug, runs)
        if repeat is None:
            st.markdown(t("This run has no requests: its server served none."))
            return
        seen = requests_of(run, repeat)
        _counts(repeat, seen)
        name = f"{slug}-{run.sha256[:12]}-{repeat.load_point}-{repeat.repeat}"
        # One of them at a time: a choice above then draws one chart again, not four.
        view = st.segmented_control(t("Look at"), VIEWS, default=VIEWS[0], format_func=t, required=True,
                                    key=f"view-{slug}", label_visibility="collapsed")  # fmt: skip
        if view == VIEWS[0]:
            _requests(name, seen)
        elif view == VIEWS[1]:
            _gaps(name, gaps_of(run, repeat))
        else:
            _server(name, server_of(run, repeat))


def _chosen(slug: str, runs: list[Run]) -> tuple[Run, Repeat | None]:
    a, b, c = st.columns([2, 1, 1])
    names = {
        run.sha256: t("{who} stage {stage} start {n} · {kind} · {at}", who=run.candidate, stage=run.stage, n=run.start,
                      kind=t(run.kind.value), at=run.created_at[:16].replace("T", " "))
        for run in runs
    }  # fmt: skip
    sha = a.selectbox(t("Run"), list(names), format_func=names.get, key=f"run-{slug}", index=linked_run(list(names)))
    run = next(run for run in runs if run.sha256 == sha)
    repeats = manifest_of(run).repeats
    points = list(dict.fromkeys(r.load_point for r in repeats))
    point = b.selectbox(t("Load point"), points, key=f"point-{sha[:12]}")
    here = {r.repeat: r for r in repeats if r.load_point == point}
    number = c.selectbox(t("Repeat"), list(here), key=f"repeat-{sha[:12]}-{point}")
    return run, here.get(number)


def _counts(repeat: Repeat, seen: RequestDetails) -> None:
    """How many requests there were and what became of them, with the tokens that the prefix cache gave."""
    frame = seen.requests
    words = [tn(len(frame), "{n:,} request", "{n:,} requests"), t("{n:,} ok", n=int((frame.outcome == "ok").sum())),
             t("{n:,} failed", n=int((frame.outcome == "failed").sum()))]  # fmt: skip
    if cut := int((frame.outcome == "undetermined").sum()):
        words.append(t("{n:,} cut off by us", n=cut))
    told = frame[frame.cached_tokens.notna() & frame.prompt_tokens.gt(0)]
    if len(told):
        share = told.cached_tokens.sum() / told.prompt_tokens.sum()
        words.append(t("{share:.0%} of the prompt tokens from the prefix cache", share=share))
    if repeat.status == "stopped":
        words.append(t("stopped: {why}", why=repeat.stop_reason))
    st.markdown(" · ".join(words))


def _shown(thinned: Thinned, what: str) -> str:
    """Which of many are drawn."""
    if len(thinned.frame) == thinned.total:
        return ""
    return t("Drawn: {n:,} of {total:,} {what}: those that stand out, and one in {k} of the others.",
             n=len(thinned.frame), total=thinned.total, what=what, k=thinned.every)  # fmt: skip


def _requests(name: str, seen: RequestDetails) -> None:
    bars = phases(seen.waterfall.frame)
    if bars.empty:
        st.markdown(t("No request was sent."))
        return
    bars = bars.assign(phase=bars.phase.map(t))
    found = outliers(seen.requests)
    words = t(
        "Requests as bars over {s:.0f} seconds: {n}; standing out, and named in the table below: {odd}",
        n=len(seen.waterfall.frame), s=bars.to_s.max() - bars.from_s.min(), odd=len(found),
    )  # fmt: skip
    chart_of(name, "requests", waterfall(bars), words, bars)
    st.caption(_shown(seen.waterfall, t("requests")))
    st.markdown(f"**{t('Outliers')}** · {t('failed first, then the slowest first token')}")
    if found.empty:
        st.markdown(t("None failed, and there are too few requests for any to stand out."))
    else:
        _outlier_table(found)


def _outlier_table(found: pd.DataFrame) -> None:
    number = st.column_config.NumberColumn
    columns = {
        "request": number(t("Request"), pinned=True), "why": st.column_config.TextColumn(t("Why")),
        "scheduled_s": number(t("Scheduled (s)"), format="%.2f"), "ttft_ms": number(t("TTFT (ms)"), format="%.0f"),
        "longest_gap_ms": number(t("Longest gap (ms)"), format="%.0f"),
        "longest_gap_at_s": number(t("… ended at (s)"), format="%.2f"),
        "e2e_ms": number(t("Complete (ms)"), format="%.0f"), "prompt_tokens": number(t("Prompt (tokens)")),
        "cached_tokens": number(t("From the cache")), "output_tokens": number(t("Output (tokens)")),
        "finish_reason": st.column_config.TextColumn(t("Ended by")), "http_status": number(t("HTTP")),
        "error": st.column_config.TextColumn(t("Error")),
    }  # fmt: skip
    known = [c for c in columns if (found[c].notna() & (found[c] != "")).any()]
    st.dataframe(
        found[known].assign(why=found.why.map(_in_words)), hide_index=True, height=TABLE_HEIGHT, column_config=columns,
        alt=t("Requests that failed, that waited longest, or whose tokens stalled"), key="outliers",
    )  # fmt: skip


def _in_words(why: str) -> str:
    return ", ".join(t(reason) for reason in why.split(", "))


def _gaps(name: str, gaps: Gaps) -> None:
    frame = gaps.shown.frame
    if frame.empty:
        st.markdown(t("No gap is known: no answer came in more than one part."))
        return
    words = t("{n} gaps over time, the longest {ms:,.0f} ms at {s:.1f} s", n=len(frame), ms=frame.gap_ms.max(),
              s=frame.end_s[frame.gap_ms.idxmax()])  # fmt: skip
    chart_of(name, "gaps", gaps_in_time(frame, gaps.aggressor), words, frame)
    said = [_shown(gaps.shown, t("gaps"))]
    if gaps.aggressor:
        said.append(t("The band: long prompts were on the server, from {a:.1f} to {b:.1f} s.", a=gaps.aggressor[0],
                      b=gaps.aggressor[1]))  # fmt: skip
    if gaps.left_out:
        said.append(t("{n:,} gaps are left out: their tokens were merged on the way, so that their times are upper "
                      "bounds.", n=gaps.left_out))  # fmt: skip
    st.caption(" ".join(s for s in said if s))


def _server(of: str, server: pd.DataFrame) -> None:
    lines = [(title, names[0], unit, metric_lines(server, names).assign(value=lambda f, by=by: f.value / by))
             for title, names, unit, by in SERVER if server.name.isin(names).any()]  # fmt: skip
    missing = [t(title) for title, names, _, _ in SERVER if not server.name.isin(names).any()]
    for i in range(0, len(lines), 2):
        for column, (title, name, unit, frame) in zip(st.columns(2), lines[i : i + 2], strict=False):
            with column:
                st.markdown(t(title))
                words = t("{title}: highest {x:,.3g} {unit}", title=t(title), x=frame.value.max(), unit=t(unit))
                chart_of(of, name, timeline(frame, y_title=t(unit)), words, frame)
    if missing:
        st.caption(t("Not measured: {what}.", what=", ".join(missing)))
