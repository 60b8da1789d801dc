"""Runs: bundles that were taken in, with all that they gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.evidence import EvidenceStore
from db.tables import RunRow
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.errors import ConflictError, UnknownName
from planner.frozen import Frozen


class Run(Frozen):
    """One engine start of one candidate, as its bundle tells it. sha256 is the bundle's, `id` its manifest's."""

    sha256: str
    id: str
    case: str
    plan_sha256: str
    candidate: str
    stage: str
    start: int
    kind: Kind
    status: str
    created_at: str
    findings: tuple[str, ...] = ()
    manifest: bytes
    path: str
    imported_at: datetime
    imported_by: str


class TakenIn(NamedTuple):
    """The run as it is stored; `new` is False when the same bundle had been there before."""

    run: Run
    new: bool


class RunStore:
    """Runs by the hash of their bundle."""

    def __init__(self, database: Database, evidence: EvidenceStore) -> None:
        self._database = database
        self._evidence = evidence

    def take_in(self, run: Run, evidence: Iterable[Evidence], contracts: Mapping[str, Contract]) -> TakenIn:
        """Store a run with its contracts and evidence, all or nothing; the same bundle twice stays once.

        Raises ConflictError when the bundle belongs to another case already, or a figure's id is taken.
        """
        with self._database.write() as session:
            there = session.get(RunRow, run.sha256)
            if there is not None:
                if there.case_id != run.case:
                    raise ConflictError(f"the bundle was taken in for another case on {there.imported_at[:10]}.",
                                        where=f"run {run.id}", fix="Open that case.")  # fmt: skip
                return TakenIn(_run(there), False)
            fields = run.model_dump(exclude={"case", "kind", "findings", "imported_at"})
            session.add(RunRow(**fields, case_id=run.case, kind=run.kind.value, findings=json.dumps(run.findings),
                               imported_at=to_text(run.imported_at)))  # fmt: skip
            session.flush()
            self._evidence.add(run.case, evidence, contracts, run_sha256=run.sha256)
        return TakenIn(run, True)

    def get(self, sha256: str) -> Run:
        """The run of that bundle; raises UnknownName."""
        with self._database.read() as session:
            row = session.get(RunRow, sha256)
            if row is None:
                raise UnknownName.from_known("run", sha256, session.exec(select(RunRow.sha256)))
            return _run(row)

    def of_case(self, case: str) -> tuple[Run, ...]:
        """Runs of a case by the time of the measurement."""
        with self._database.read() as session:
            query = select(RunRow).where(RunRow.case_id == case).order_by(col(RunRow.created_at), col(RunRow.sha256))
            return tuple(_run(r) for r in session.exec(query))


def _run(row: RunRow) -> Run:
    fields = row.model_dump(exclude={"case_id", "findings", "imported_at"})
    return Run(**fields, case=row.case_id, findings=tuple(json.loads(row.findings)),
               imported_at=to_time(row.imported_at))  # fmt: skip
