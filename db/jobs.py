"""Jobs: bench processes that a page started, so that closing the browser changes nothing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.tables import JobRow
from planner.errors import NotAllowed, UnknownName
from planner.frozen import Frozen


class JobState(StrEnum):
    """Where a job stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class Job(Frozen):
    """A process that measures; its bundles land in `out_dir`."""

    id: str
    case: str
    plan_sha256: str
    out_dir: str
    pid: int | None = None
    state: JobState = JobState.QUEUED
    message: str = ""
    created_at: datetime
    created_by: str
    updated_at: datetime


class JobStore:
    """Jobs by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: Job) -> Job:
        """Store a new job; raises ConflictError when the id is taken, InputError for an unknown case."""
        with self._database.write() as session:
            fields = job.model_dump(exclude={"case", "state", "created_at", "updated_at"})
            session.add(JobRow(**fields, case_id=job.case, state=job.state.value, created_at=to_text(job.created_at),
                               updated_at=to_text(job.updated_at)))  # fmt: skip
        return job

    def update(
        self, id: str, state: JobState, *, at: datetime, pid: int | None = None, message: str | None = None
    ) -> Job:
        """Set a job's state, and its process and message when given.

        Raises NotAllowed when the job has ended in another way, UnknownName when there is none.
        """
        with self._database.write() as session:
            row = session.get(JobRow, id)
            if row is None:
                raise UnknownName.from_known("job", id, session.exec(select(JobRow.id)))
            if row.state in FINAL and row.state != state:
                raise NotAllowed(f"is {row.state} since {row.updated_at[:16]} UTC and cannot become {state}.",
                                 where=f"job {id}", fix="Start a new one.")  # fmt: skip
            row.state, row.updated_at = state.value, to_text(at)
            row.pid = pid if pid is not None else row.pid
            row.message = message if message is not None else row.message
            session.add(row)
            return _job(row)

    def get(self, id: str) -> Job:
        """The job of that id; raises UnknownName."""
        with self._database.read() as session:
            row = session.get(JobRow, id)
            if row is None:
                raise UnknownName.from_known("job", id, session.exec(select(JobRow.id)))
            return _job(row)

    def of_case(self, case: str) -> tuple[Job, ...]:
        """Jobs of a case, newest first."""
        with self._database.read() as session:
            query = select(JobRow).where(JobRow.case_id == case)
            rows = session.exec(query.order_by(col(JobRow.created_at).desc(), col(JobRow.id).desc()))
            return tuple(_job(r) for r in rows)

    def active(self) -> tuple[Job, ...]:
        """Jobs of all cases that have not ended, oldest first."""
        with self._database.read() as session:
            query = select(JobRow).where(col(JobRow.state).not_in([s.value for s in FINAL]))
            return tuple(_job(r) for r in session.exec(query.order_by(col(JobRow.created_at), col(JobRow.id))))


def _job(row: JobRow) -> Job:
    return Job(
        id=row.id, case=row.case_id, plan_sha256=row.plan_sha256, out_dir=row.out_dir, pid=row.pid,
        state=JobState(row.state), message=row.message, created_at=to_time(row.created_at), created_by=row.created_by,
        updated_at=to_time(row.updated_at),
    )  # fmt: skip
