"""Measure on this machine: run the plan, watch what runs, look back at earlier runs."""

from __future__ import annotations

import streamlit as st

from db.jobs import FINAL, Job
from planner.units import format_duration
from services.jobs import cancel_job, collect, progress, start_job, stop_job
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.parts import flash, go_to, plain, shown_errors
from ui.session import signed
from ui.text import t


def section(ws: Workspace, state: CaseState) -> None:
    """Run the plan on this machine."""
    plan, stored = state.plan, state.stored_plan
    assert plan is not None and stored is not None
    active = bool(_jobs(ws, state, final=False))
    # Figures from elsewhere bring load points of their own, which no stage runs.
    run_points = {name for stage in plan.stages for name in stage.points}
    st.markdown(
        t(
            "Runs the plan on this machine: {candidates} at {points} load points, {starts} starts each. Only where the "
            "GPU is; elsewhere the start fails, and that is a result too.",
            candidates=plain(", ".join(c.id for c in plan.candidates)), starts=plan.starts,
            points=len(run_points),
        )
    )  # fmt: skip
    if state.plan_is_stale:
        go_to("poc-plan", t("The requirements changed after this plan was made."))
    if st.button(t("Run the plan"), type="primary", icon=":material/play_arrow:", disabled=active) and (
        name := signed()
    ):
        with shown_errors():
            start_job(ws, state.case.id, stored.sha256, name)
            st.rerun()
    st.caption(t("It goes on when you close the browser. The emulator's answers are marked simulated."))


def running(ws: Workspace, state: CaseState) -> None:
    """Every measurement of the case that is under way."""
    for job in _jobs(ws, state, final=False):
        _watch(ws, job.id)


@st.fragment(run_every="1s")
def _watch(ws: Workspace, job_id: str) -> None:
    """The page reruns once when it has ended."""
    job = ws.store.jobs.get(job_id)
    seen = progress(ws, job)
    if not seen.alive:
        with shown_errors():
            new = collect(ws, job)
            ended = ws.store.jobs.get(job_id)
            flash(
                t("The measurement has ended: {state}, new runs: {n}. {why}", state=t(ended.state.value), n=new,
                  why=plain(ended.message))
            )  # fmt: skip
            st.rerun()
    with st.container(border=True):
        st.markdown(f"**{t('Measuring')}** · {plain(seen.where) or t('starting')}")
        share = seen.done / seen.total if seen.total else 0.0
        st.progress(min(1.0, share), text=t("{done} of {total} requests", done=seen.done, total=seen.total or "?"))
        rate = t("{x:.2g} requests/s", x=seen.rate_per_s) if seen.rate_per_s else t("rate not known yet")
        left = (
            t("about {x} left", x=format_duration(seen.eta_s)) if seen.eta_s is not None else t("time left not known")
        )
        st.caption(f"{rate} · {left} · {t('started by {who}', who=plain(job.created_by))}")
        if seen.last_error:
            st.warning(plain(seen.last_error), icon=":material/warning:")
        with st.container(horizontal=True):
            if st.button(t("Cancel"), icon=":material/stop_circle:", key=f"cancel-{job_id}"):
                cancel_job(ws, job)
                st.toast(t("Cancelling: what is sealed so far is kept."))
            if st.button(t("Stop at once"), type="tertiary", key=f"stop-{job_id}"):
                stop_job(ws, job)


def earlier(ws: Workspace, state: CaseState) -> None:
    """Measurements from this page that have ended."""
    past = _jobs(ws, state, final=True)
    if not past:
        return
    with st.expander(t("Earlier measurements from this page ({n})", n=len(past)), icon=":material/history:"):
        for job in past:
            st.markdown(
                f"- {job.created_at:%Y-%m-%d %H:%M} UTC · **{t(job.state.value)}** · {plain(job.created_by)}"
                + (f" · {plain(job.message)}" if job.message else "")
            )


def _jobs(ws: Workspace, state: CaseState, *, final: bool) -> list[Job]:
    return [j for j in ws.store.jobs.of_case(state.case.id) if (j.state in FINAL) is final]
