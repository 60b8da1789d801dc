"""Which measured points a team takes out of its calibration, and back in: who, why, when."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.tables import CalibrationChoiceRow
from planner.frozen import Frozen


class CalibrationChoice(Frozen):
    """One decision about one figure; `evidence` is its id."""

    evidence: str
    used: bool
    reason: str
    author: str
    at: datetime


class CalibrationStore:
    """Decisions about points; only added to, the last one about a point stands."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, choice: CalibrationChoice) -> None:
        """Record a decision; raises InputError for a figure that is not stored."""
        with self._database.write() as session:
            session.add(CalibrationChoiceRow(
                evidence_id=choice.evidence, used=choice.used, reason=choice.reason, author=choice.author,
                at=to_text(choice.at),
            ))  # fmt: skip

    def all(self) -> tuple[CalibrationChoice, ...]:
        """Every decision in the order in which they were made."""
        with self._database.read() as session:
            rows = session.exec(select(CalibrationChoiceRow).order_by(col(CalibrationChoiceRow.id)))
            return tuple(
                CalibrationChoice(evidence=r.evidence_id, used=r.used, reason=r.reason, author=r.author,
                                  at=to_time(r.at))
                for r in rows
            )  # fmt: skip

    def excluded(self) -> dict[str, CalibrationChoice]:
        """What is taken out now, by id of the figure."""
        last = {c.evidence: c for c in self.all()}
        return {id: c for id, c in last.items() if not c.used}
