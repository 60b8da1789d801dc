"""Measuring from the page: bench runs as its own process group and outlives the browser, the tab and the app.

The truth about a run is bench's progress file and the bundles; a job row only says where they are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bundle.folder import find_bundles
from db.ids import new_id
from db.jobs import FINAL, Job, JobState
from db.verdicts import Cause
from planner.errors import FliplineError, NotAllowed
from services.evidence import take_in
from services.plan_files import shipped_beside
from services.rejudging import rejudge
from services.verdicts import asked_conditions, case_state
from services.workspace import ROOT, Workspace, now

PROGRESS = "progress.json"
CANCEL = "cancel"
LOG = "bench.log"
# What this process started; after a restart of the app the process table alone tells whether a job lives.
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
_ENDS = {"finished": JobState.DONE, "cancelled": JobState.CANCELLED, "failed": JobState.FAILED}


class Progress(NamedTuple):
    """What bench last wrote about a run; `alive` is whether its process is there."""

    state: str
    where: str
    done: int
    total: int
    rate_per_s: float | None
    eta_s: float | None
    last_error: str
    alive: bool


def start_job(ws: Workspace, case: str, plan_sha256: str, author: str) -> Job:
    """Start `python -m bench run` on a stored plan.

    Raises NotAllowed while another job of this workspace measures: two loads on one machine spoil each other.
    """
    busy = [j for j in ws.store.jobs.active() if progress(ws, j).alive]
    if busy:
        raise NotAllowed(
            "a measurement is already running.", where=f"job {busy[0].id}", fix="Wait for it or cancel it."
        )
    at = now()
    job_id = new_id(at)
    out = ws.jobs / job_id
    out.mkdir(parents=True)
    plan_file = out / "plan.yaml"
    stored = ws.store.plans.get(plan_sha256)
    plan_file.write_bytes(stored.body)
    for name, data in shipped_beside(stored.plan()).items():
        (out / name).write_bytes(data)
    job = Job(
        id=job_id, case=case, plan_sha256=plan_sha256, out_dir=job_id, created_at=at, created_by=author, updated_at=at
    )
    ws.store.jobs.add(job)
    with (out / LOG).open("wb") as log:
        process = subprocess.Popen(  # left running on purpose
            [sys.executable, "-m", "bench", "run", str(plan_file), "--out", str(out)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    _CHILDREN[process.pid] = process
    return ws.store.jobs.update(job_id, JobState.RUNNING, at=now(), pid=process.pid)


def progress(ws: Workspace, job: Job) -> Progress:
    """Read the progress file; a job without one has not begun to measure."""
    try:
        raw = json.loads((ws.jobs / job.out_dir / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raw = {}
    raw = raw if isinstance(raw, dict) else {}
    where = " · ".join(
        str(x)
        for x in (
            raw.get("candidate"),
            f"stage {raw['stage']}" if raw.get("stage") else "",
            f"start {raw['start']}" if raw.get("start") else "",
            raw.get("point"),
            raw.get("phase"),
        )
        if x
    )
    return Progress(
        state=str(raw.get("state") or job.state.value), where=where, done=int(raw.get("done_requests") or 0),
        total=int(raw.get("total_requests") or 0), rate_per_s=raw.get("rate_per_s"), eta_s=raw.get("eta_s"),
        last_error=str(raw.get("last_error") or ""), alive=_alive(job),
    )  # fmt: skip


def _alive(job: Job) -> bool:
    if job.pid is None or job.state in FINAL:
        return False
    ours = _CHILDREN.get(job.pid)
    if ours is not None and ours.poll() is not None:  # else a child of ours that ended would look alive for ever
        del _CHILDREN[job.pid]
    try:
        command = Path(f"/proc/{job.pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
    return job.id.encode() in command


def cancel_job(ws: Workspace, job: Job) -> None:
    """Ask bench to finish cleanly; it seals what it has."""
    (ws.jobs / job.out_dir / CANCEL).touch()


def stop_job(ws: Workspace, job: Job) -> None:
    """Stop bench at once, for one that does not react to cancel."""
    if job.pid and _alive(job):
        os.killpg(job.pid, signal.SIGTERM)


def collect(ws: Workspace, job: Job) -> int:
    """Take in what a job has sealed so far and settle its state; returns the number of new bundles.

    A bundle that cannot be taken in does not keep the others out: the job's message says what was wrong with it.
    """
    state = case_state(ws, job.case)
    levels = state.plan.service_levels if state.plan else ()
    asked = asked_conditions(state.plan, state.adrs)
    new, refused = 0, ""
    for folder in find_bundles(ws.jobs / job.out_dir):
        try:
            new += take_in(ws, job.case, folder, job.created_by, asked, levels).new
        except FliplineError as e:
            refused = str(e)
    if job.state not in FINAL and not _alive(job):
        seen = progress(ws, job)
        end = JobState.FAILED if refused else _ENDS.get(seen.state, JobState.FAILED)
        message = (
            refused or seen.last_error or ("" if end is JobState.DONE else _last_line(ws.jobs / job.out_dir / LOG))
        )
        ws.store.jobs.update(job.id, end, at=now(), message=message)
    if new:
        rejudge(ws, job.case, Cause(kind="run", says="a run here ended"))
    return new


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except FileNotFoundError:
        return ""
    return lines[-1][:500] if lines else ""
