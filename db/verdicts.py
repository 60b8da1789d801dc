"""How conditions stood over time: a row whenever one changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.tables import VerdictRow
from planner.frozen import Frozen


class Judged(Frozen):
    """A condition at one moment: of an ADR (a flip condition's id), or of the case's plan (a hypothesis' id)."""

    condition: str
    adr: str | None = None
    at: datetime
    state: str
    value: float | None = None
    distance: float | None = None
    sentence: str
    evidence: tuple[str, ...] = ()

    def same_as(self, other: Judged) -> bool:
        """Whether nothing but the moment and the wording differ."""
        return (self.state, self.value, self.distance, self.evidence) == (
            other.state, other.value, other.distance, other.evidence,
        )  # fmt: skip


class VerdictStore:
    """The history of verdicts of a case; only added to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, case: str, judged: Iterable[Judged]) -> tuple[Judged, ...]:
        """Store those that differ from the last one of the same condition; returns them."""
        with self._database.write() as session:
            last = {(j.adr, j.condition): j for j in self.history(case)}
            changed = []
            for j in judged:
                before = last.get((j.adr, j.condition))
                if before is None or not before.same_as(j):
                    last[j.adr, j.condition] = j
                    changed.append(j)
                    fields = j.model_dump(exclude={"adr", "at", "evidence"})
                    session.add(VerdictRow(**fields, case_id=case, adr_id=j.adr, at=to_text(j.at),
                                           evidence=json.dumps(j.evidence)))  # fmt: skip
                    session.flush()
        return tuple(changed)

    def history(self, case: str, *, adr: str | None = None) -> tuple[Judged, ...]:
        """All changes of a case, or of one ADR, in the order in which they were seen."""
        query = select(VerdictRow).where(VerdictRow.case_id == case)
        if adr is not None:
            query = query.where(VerdictRow.adr_id == adr)
        with self._database.read() as session:
            return tuple(
                Judged(
                    condition=r.condition, adr=r.adr_id, at=to_time(r.at), state=r.state, value=r.value,
                    distance=r.distance, sentence=r.sentence, evidence=tuple(json.loads(r.evidence)),
                )
                for r in session.exec(query.order_by(col(VerdictRow.id)))
            )  # fmt: skip

    def last_states(self, case: str, adr: str) -> dict[str, str]:
        """State by condition id of one ADR as last seen: what decisions.flips.new_events compares with."""
        return {j.condition: j.state for j in self.history(case, adr=adr)}
