"""How conditions stood over time: a row whenever one changed, with what changed it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from sqlmodel import Session, col, func, select

from db.database import Database, to_text, to_time
from db.tables import VerdictRow
from planner.frozen import Frozen, canonical_json


class Cause(Frozen):
    """What changed a condition's state. `runs` are hashes of bundles, `says` is one sentence without its full stop."""

    kind: Literal["run", "figures", "usage", "catalogue", "date", "production", "plan", "decision", "unknown"]
    says: str = ""
    runs: tuple[str, ...] = ()


UNKNOWN = Cause(kind="unknown")  # of a row that was stored before causes were kept


class Judged(Frozen):
    """A condition at one moment: of an ADR (a flip condition's id), or of the case's plan (a hypothesis' id).

    `overdue` says that the day on which somebody was to look again had passed.
    """

    condition: str
    adr: str | None = None
    at: datetime
    state: str
    value: float | None = None
    distance: float | None = None
    sentence: str
    evidence: tuple[str, ...] = ()
    cause: Cause = UNKNOWN
    overdue: bool = False

    def same_as(self, other: Judged) -> bool:
        """Whether nothing but the moment, the wording and the cause differ."""
        return (self.state, self.value, self.distance, self.evidence, self.overdue) == (
            other.state, other.value, other.distance, other.evidence, other.overdue,
        )  # fmt: skip


class VerdictStore:
    """The history of verdicts of a case; only added to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, case: str, judged: Iterable[Judged]) -> tuple[Judged, ...]:
        """Store those that differ from the last one of the same condition; returns them."""
        with self._database.write() as session:
            last = _latest(session, case)
            changed = []
            for j in judged:
                before = last.get((j.adr, j.condition))
                if before is None or not before.same_as(j):
                    last[j.adr, j.condition] = j
                    changed.append(j)
                    session.add(_row(case, j))
                    session.flush()
        return tuple(changed)

    def history(self, case: str, *, adr: str | None = None) -> tuple[Judged, ...]:
        """All changes of a case, or of one ADR, in the order in which they were seen."""
        query = select(VerdictRow).where(VerdictRow.case_id == case)
        if adr is not None:
            query = query.where(VerdictRow.adr_id == adr)
        with self._database.read() as session:
            return tuple(_judged(r) for r in session.exec(query.order_by(col(VerdictRow.id))))

    def latest(self, case: str) -> dict[tuple[str | None, str], Judged]:
        """How every condition stood when it last changed, by the id of its ADR (None: a hypothesis) and its own."""
        with self._database.read() as session:
            return _latest(session, case)


def _latest(session: Session, case: str) -> dict[tuple[str | None, str], Judged]:
    newest = (
        select(func.max(VerdictRow.id))
        .where(VerdictRow.case_id == case)
        .group_by(col(VerdictRow.adr_id), col(VerdictRow.condition))
    )
    rows = session.exec(select(VerdictRow).where(col(VerdictRow.id).in_(newest)))
    return {(r.adr_id, r.condition): _judged(r) for r in rows}


def _row(case: str, j: Judged) -> VerdictRow:
    return VerdictRow(
        case_id=case, adr_id=j.adr, condition=j.condition, at=to_text(j.at), state=j.state, value=j.value,
        distance=j.distance, sentence=j.sentence, evidence=json.dumps(j.evidence),
        cause=canonical_json(j.cause.model_dump(mode="json")), overdue=int(j.overdue),
    )  # fmt: skip


def _judged(r: VerdictRow) -> Judged:
    return Judged(
        condition=r.condition, adr=r.adr_id, at=to_time(r.at), state=r.state, value=r.value, distance=r.distance,
        sentence=r.sentence, evidence=tuple(json.loads(r.evidence)),
        cause=Cause.model_validate_json(r.cause) if r.cause else UNKNOWN, overdue=bool(r.overdue),
    )  # fmt: skip
