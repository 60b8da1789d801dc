"""A measurement from the page: its own process, whose files are the truth."""

from __future__ import annotations

import os
import shutil

import pytest

from bundle.manifest import MANIFEST
from db.jobs import Job, JobState
from planner.errors import NotAllowed
from services.jobs import cancel_job, collect, progress, start_job, stop_job
from services.plans import save_plan
from services.quality_set import shipped_quality_set
from services.verdicts import case_state
from services.workspace import now
from tests.bench.helpers import candidate, free_port, plan
from tests.bench.helpers import point as a_point
from tests.services.made import CASE


@pytest.fixture
def case(shipped):
    return shipped.store.cases.get(CASE).id


def start(ws, case, **more):
    made = plan(candidate(free_port(), "--slots", "4"), case=CASE, **more)
    return start_job(ws, case, save_plan(ws, case, made, "Lee").sha256, "Kim")


def wait(job):
    os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)  # leaves it to be reaped by whoever looks at the job


def test_bundles_are_taken_in_when_it_ends(shipped, case):
    job = start(shipped, case)
    assert progress(shipped, job).alive
    wait(job)
    assert collect(shipped, job) == 1
    ended = shipped.store.jobs.get(job.id)
    assert (ended.state, ended.message) == (JobState.DONE, "")
    seen = progress(shipped, ended)
    assert (seen.state, seen.done, seen.total, seen.alive) == ("finished", 6, 6, False)
    (run,) = shipped.store.runs.of_case(case)
    assert (run.kind, run.imported_by, run.candidate) == ("simulated", "Kim", "emu")
    assert collect(shipped, ended) == 0  # looking again changes nothing


def test_the_shipped_quality_set_comes_along(shipped, case):
    name, digest, items = shipped_quality_set()
    asked = a_point("quality", shape="quality", quality_file=name, file_sha256=digest, requests=items)
    answering = candidate(free_port(), "--slots", "4") | {"contract": {"engine": "vllm", "output_length": "free"}}
    made = plan(answering, points=[asked], case=CASE)
    job = start_job(shipped, case, save_plan(shipped, case, made, "Lee").sha256, "Kim")
    wait(job)
    assert collect(shipped, job) == 1, shipped.store.jobs.get(job.id).message
    (rate,) = [e for e in case_state(shipped, CASE).evidence if (e.metric, e.candidate) == ("pass_rate", "emu")]
    assert (rate.kind, rate.n, rate.load_point) == ("simulated", 16, "quality")  # wc -l catalog/quality/example.jsonl


def test_only_one_measures_at_a_time_and_cancel_is_clean(shipped, case):
    job = start(shipped, case, points=[a_point(requests=5000)])
    with pytest.raises(NotAllowed, match="a measurement is already running"):
        start(shipped, case)
    assert len(shipped.store.jobs.of_case(case)) == 1
    cancel_job(shipped, job)
    wait(job)
    collect(shipped, job)
    assert shipped.store.jobs.get(job.id).state is JobState.CANCELLED


def test_one_that_is_stopped_at_once_ends_too(shipped, case):
    job = start(shipped, case, points=[a_point(requests=5000)])
    stop_job(shipped, job)
    wait(job)
    collect(shipped, job)
    assert shipped.store.jobs.get(job.id).state in (JobState.CANCELLED, JobState.FAILED)


def test_a_server_that_does_not_start_is_a_result(shipped, case):
    made = plan(candidate(free_port(), "--fault", "start-failure"), case=CASE)
    job = start_job(shipped, case, save_plan(shipped, case, made, "Lee").sha256, "Kim")
    wait(job)
    assert collect(shipped, job) == 1
    assert [e.value for e in case_state(shipped, CASE).evidence if (e.metric, e.kind) == ("started", "simulated")] == [
        0.0
    ]


def test_a_plan_with_a_foreign_command_is_refused_with_the_way_out(shipped, case):
    made = plan(candidate(free_port()) | {"launch": {"command": ["rm", "-rf", "x"]}}, case=CASE)
    job = start_job(shipped, case, save_plan(shipped, case, made, "Lee").sha256, "Kim")
    wait(job)
    assert collect(shipped, job) == 0
    ended = shipped.store.jobs.get(job.id)
    assert ended.state is JobState.FAILED
    assert "not the command of a known engine" in ended.message


def test_one_altered_bundle_does_not_keep_the_others_out(shipped, case):
    made = plan(candidate(free_port(), "--slots", "4"), case=CASE, starts=2)
    job = start_job(shipped, case, save_plan(shipped, case, made, "Lee").sha256, "Kim")
    wait(job)
    first, second = sorted(p.parent for p in (shipped.jobs / job.out_dir).rglob(MANIFEST))
    records = next((first / "records").iterdir()) if (first / "records").is_dir() else next(first.rglob("*.parquet"))
    records.unlink()
    assert collect(shipped, job) == 1
    ended = shipped.store.jobs.get(job.id)
    assert ended.state is JobState.FAILED
    assert "is missing" in ended.message
    shutil.rmtree(second)


def test_a_job_whose_process_is_gone_is_settled(shipped, case):
    job = start(shipped, case)
    wait(job)
    shutil.rmtree(shipped.jobs / job.out_dir)  # not even a progress file
    assert not progress(shipped, job).alive
    assert collect(shipped, job) == 0
    assert shipped.store.jobs.get(job.id).state is JobState.FAILED


@pytest.mark.parametrize("body", [b"[]", b"\xff", b'{"state": '])
def test_a_progress_file_that_cannot_be_read_is_none(shipped, case, body):
    at = now()
    job = Job(id="J-1234", case=case, plan_sha256="p" * 64, out_dir="J-1234", created_at=at, created_by="Kim",
              updated_at=at)  # fmt: skip
    (shipped.jobs / "J-1234").mkdir()
    (shipped.jobs / "J-1234" / "progress.json").write_bytes(body)
    assert (progress(shipped, job).state, progress(shipped, job).done) == ("queued", 0)
