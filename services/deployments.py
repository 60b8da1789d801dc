"""What went into production: recorded by a person, and from then on what an accepted decision is held against."""

from __future__ import annotations

from datetime import UTC, date, datetime

from db.verdicts import Cause
from decisions.record import Deployment
from planner.errors import InputError, UnknownName
from services.rejudging import rejudge
from services.verdicts import case_state
from services.workspace import Workspace, now, signed_by


def deploy(
    ws: Workspace, case: str, *, candidate: str, since: date, engine_version: str, by: str, image: str = "",
    flags: str = "", model_revision: str = "", note: str = "",
) -> Deployment:  # fmt: skip
    """Record what runs in production since a day and judge the case again.

    Raises InputError for a day ahead or no version, UnknownName for a candidate that the plan does not have.
    """
    state = case_state(ws, case)
    planned = {c.id: c for c in state.plan.candidates} if state.plan else {}
    if candidate not in planned:
        raise UnknownName.from_known("candidate", candidate, planned, where="deployment")
    at = datetime(since.year, since.month, since.day, tzinfo=UTC)
    if at > now():
        raise InputError(f"{since} lies ahead.", where="deployment", fix="Record it once it runs.")
    if not engine_version.strip():
        raise InputError("the engine's version is missing.", where="deployment", fix="Write what the server reports.")
    deployment = Deployment(
        candidate=candidate, since=at, engine=planned[candidate].engine, engine_version=engine_version.strip(),
        image=image.strip(), flags=tuple(flags.split()), model_revision=model_revision.strip(),
        by=signed_by(by, "deployment"), note=note.strip(),
    )  # fmt: skip
    with ws.store.transaction():
        ws.store.deployments.add(state.case.id, deployment)
        says = f"{candidate} {deployment.engine_version} went into production"
        rejudge(ws, state.case.id, Cause(kind="production", says=says))
    return deployment
