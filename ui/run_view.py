"""One run in time: what the server said of itself, and the requests that went worst."""

from __future__ import annotations

import streamlit as st

from services.verdicts import CaseState
from ui.cached import requests_of, telemetry_of
from ui.charts import timeline
from ui.parts import shown_errors
from ui.text import t
from ui.views import telemetry_frame


def one_run(state: CaseState) -> None:
    """Choose a run, a load point and a repeat, and see them second by second; nothing where nothing ran."""
    started = [run for run in state.runs if run.status != "failed"]
    if not started:
        return
    st.subheader(t("One run in time"))
    a, b, c = st.columns(3)
    names = {
        run.sha256: t("{who} stage {stage} start {n} · {kind} · {at}", who=run.candidate, stage=run.stage, n=run.start,
                      kind=t(run.kind.value), at=run.created_at[:16].replace("T", " "))
        for run in started
    }  # fmt: skip
    sha = a.selectbox(t("Run"), list(names), format_func=names.get, key=f"run-{state.case.slug}", index=len(names) - 1)
    with shown_errors():
        requests = requests_of(sha)
        points = list(dict.fromkeys(requests["point"])) if not requests.empty else []
        point_shown = b.selectbox(t("Load point"), points, key=f"point-{sha[:12]}")
        of_point = requests[requests["point"] == point_shown] if points else requests
        repeats = list(dict.fromkeys(of_point["repeat"])) if points else []
        repeat = c.selectbox(t("Repeat"), repeats, key=f"repeat-{sha[:12]}-{point_shown}")
        telemetry = telemetry_of(sha)
        left, right = st.columns(2)
        for column, title, metrics, unit in (
            (left, t("Requests running and waiting"), ("running", "waiting"), t("requests")),
            (right, t("KV cache in use"), ("kv_use",), t("share")),
        ):
            with column:
                st.markdown(f"**{title}**")
                frame = telemetry_frame(telemetry, point_shown, repeat, metrics)
                if frame.empty:
                    st.markdown(t("Not measured: the server showed no such metric."))
                else:
                    st.altair_chart(timeline(frame, y_title=unit), alt=title)
        if points:
            st.markdown(f"**{t('Requests')}** · {t('failed first, then the slowest first token')}")
            worst = of_point[of_point["repeat"] == repeat].drop(columns=["point", "repeat"])
            worst = worst.assign(failed=worst["outcome"] != "ok").sort_values(
                ["failed", "ttft_ms"], ascending=[False, False]
            )
            st.dataframe(
                worst.drop(columns="failed"), hide_index=True, height=260, alt=t("Requests of this load point"),
                column_config={
                    "request": t("Request"), "outcome": t("Outcome"), "error": t("Error"),
                    "scheduled_s": st.column_config.NumberColumn(t("Scheduled (s)"), format="%.2f"),
                    "ttft_ms": st.column_config.NumberColumn(t("TTFT (ms)"), format="%.0f"),
                    "user_tok_s": st.column_config.NumberColumn(t("Speed (tok/s)"), format="%.1f"),
                    "e2e_ms": st.column_config.NumberColumn(t("Complete (ms)"), format="%.0f"),
                    "output_tokens": st.column_config.NumberColumn(t("Output (tokens)")),
                },
            )  # fmt: skip
