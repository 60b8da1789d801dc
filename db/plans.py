"""Plan files as they were downloaded: exact bytes."""

from __future__ import annotations

import hashlib
from datetime import datetime

from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.tables import PlanRow
from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Plan


class StoredPlan(Frozen):
    """A plan file. sha256 is the plan's identity (Plan.sha256), body_sha256 the hash of the exact bytes."""

    sha256: str
    case: str
    title: str
    body: bytes
    body_sha256: str
    author: str
    at: datetime

    def plan(self) -> Plan:
        """The plan that the bytes say."""
        return plan_from_yaml(self.body.decode(), where=f"plan {self.sha256[:12]}")


class PlanStore:
    """Plans by hash."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, case: str, plan: Plan, *, at: datetime, author: str, body: bytes | None = None) -> StoredPlan:
        """Store a plan with the file it came in as, or as we write it; a plan that is there stays as it is."""
        written = body if body is not None else plan_to_yaml(plan).encode()
        stored = StoredPlan(
            sha256=plan.sha256(), case=case, title=plan.title, body=written,
            body_sha256=hashlib.sha256(written).hexdigest(), author=author, at=at,
        )  # fmt: skip
        with self._database.write() as session:
            there = session.get(PlanRow, stored.sha256)
            if there:
                return _plan(there)
            fields = stored.model_dump(exclude={"case", "at"})
            session.add(PlanRow(**fields, case_id=case, at=to_text(at)))
        return stored

    def get(self, sha256: str) -> StoredPlan:
        """The plan of that hash; raises UnknownName."""
        with self._database.read() as session:
            row = session.get(PlanRow, sha256)
            if row is None:
                raise UnknownName.from_known("plan", sha256, session.exec(select(PlanRow.sha256)))
            return _plan(row)

    def of_case(self, case: str) -> tuple[StoredPlan, ...]:
        """All plans of a case, oldest first."""
        with self._database.read() as session:
            query = select(PlanRow).where(PlanRow.case_id == case).order_by(col(PlanRow.at), col(PlanRow.sha256))
            return tuple(_plan(r) for r in session.exec(query))


def _plan(row: PlanRow) -> StoredPlan:
    return StoredPlan(sha256=row.sha256, case=row.case_id, title=row.title, body=row.body,
                      body_sha256=row.body_sha256, author=row.author, at=to_time(row.at))  # fmt: skip
