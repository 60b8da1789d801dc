"""What bundles gave for thresholds that were asked after they were taken in: kept so that it is counted once."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import TypeAdapter
from sqlmodel import col, select

from db.database import Database
from db.tables import RecountRow
from planner.conditions import Evidence

_EVIDENCE = TypeAdapter(tuple[Evidence, ...])


class RecountStore:
    """Recounted figures by the hash of their bundle and of what was asked. They can always be counted anew."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, run_sha256: str, question: str, figures: Iterable[Evidence]) -> None:
        """Store the figures of one bundle for one question; those that are there already stay."""
        with self._database.write() as session:
            if session.get(RecountRow, (run_sha256, question)) is None:
                body = _EVIDENCE.dump_json(tuple(figures)).decode()
                session.add(RecountRow(run_sha256=run_sha256, question=question, body=body))

    def find(self, question: str, runs: Iterable[str]) -> dict[str, tuple[Evidence, ...]]:
        """Figures for one question by the hash of their bundle; a bundle that was not counted yet is left out."""
        query = select(RecountRow).where(RecountRow.question == question, col(RecountRow.run_sha256).in_(list(runs)))
        with self._database.read() as session:
            return {r.run_sha256: _EVIDENCE.validate_json(r.body) for r in session.exec(query)}
