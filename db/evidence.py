"""Evidence and the contracts it was taken under."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlmodel import col, select

from db.database import Database, to_text
from db.tables import ContractRow, EvidenceRow
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.frozen import canonical_json


class StoredEvidence(NamedTuple):
    """A figure with its stored text, the SHA-256 of that, and of the bundle it came from."""

    evidence: Evidence
    body: str
    sha256: str
    run_sha256: str | None


class EvidenceStore:
    """Figures of a case, from bundles, imports, entries and observation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, case: str, evidence: Iterable[Evidence], contracts: Mapping[str, Contract] | None = None, *,
        run_sha256: str | None = None,
    ) -> None:  # fmt: skip
        """Store figures and their contracts by hash, all or none.

        Raises ConflictError when a figure of the same id is there, InputError when case or run is not.
        """
        with self._database.write() as session:
            for key, contract in (contracts or {}).items():
                if session.get(ContractRow, key) is None:
                    session.add(ContractRow(hash=key, body=canonical_json(contract.model_dump(mode="json"))))
            for piece in evidence:
                session.add(_row(case, piece, run_sha256))
            session.flush()

    def of_case(
        self, case: str, *, metric: str | None = None, candidate: str | None = None, run_sha256: str | None = None,
        kinds: Iterable[Kind] | None = None,
    ) -> tuple[Evidence, ...]:  # fmt: skip
        """Figures of a case by time, narrowed by what is given."""
        return tuple(
            s.evidence
            for s in self.stored(case, metric=metric, candidate=candidate, run_sha256=run_sha256, kinds=kinds)
        )

    def stored(
        self, case: str, *, metric: str | None = None, candidate: str | None = None, run_sha256: str | None = None,
        kinds: Iterable[Kind] | None = None,
    ) -> tuple[StoredEvidence, ...]:  # fmt: skip
        """As of_case, with hashes."""
        query = select(EvidenceRow).where(EvidenceRow.case_id == case)
        for column, wanted in (
            (EvidenceRow.metric, metric),
            (EvidenceRow.candidate, candidate),
            (EvidenceRow.run_sha256, run_sha256),
        ):
            if wanted is not None:
                query = query.where(col(column) == wanted)
        if kinds is not None:
            query = query.where(col(EvidenceRow.kind).in_([k.value for k in kinds]))
        with self._database.read() as session:
            rows = session.exec(query.order_by(col(EvidenceRow.at), col(EvidenceRow.id)))
            return tuple(
                StoredEvidence(Evidence.model_validate_json(r.body), r.body, r.sha256, r.run_sha256) for r in rows
            )

    def contracts(self, hashes: Iterable[str] | None = None) -> dict[str, Contract]:
        """Contracts by hash: the given ones that are there, or all."""
        query = select(ContractRow)
        if hashes is not None:
            query = query.where(col(ContractRow.hash).in_(list(hashes)))
        with self._database.read() as session:
            return {r.hash: Contract.model_validate_json(r.body) for r in session.exec(query)}


def _row(case: str, piece: Evidence, run_sha256: str | None) -> EvidenceRow:
    body = canonical_json(piece.model_dump(mode="json"))
    return EvidenceRow(
        id=piece.id, case_id=case, run_sha256=run_sha256, metric=piece.metric, statistic=piece.statistic,
        candidate=piece.candidate, load_point=piece.load_point, kind=piece.kind.value, at=to_text(piece.at), body=body,
        sha256=hashlib.sha256(body.encode()).hexdigest(),
    )  # fmt: skip
