"""Evidence and the contracts it was taken under."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pydantic import TypeAdapter
from sqlmodel import col, func, select

from db.collector import uncollected
from db.database import Database, to_text
from db.tables import ContractRow, EvidenceRevisionRow, EvidenceRow
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.frozen import canonical_json
from planner.known import Fact, Known

HELD_CASES = 4  # whose figures stay in memory
_EVIDENCE = TypeAdapter(tuple[Evidence, ...])


class StoredEvidence(NamedTuple):
    """A figure with its stored text, the SHA-256 of that, and of the bundle it came from."""

    evidence: Evidence
    body: str
    sha256: str
    run_sha256: str | None


class _Held(NamedTuple):
    """The figures of a case as they were read at a revision of it."""

    revision: int
    known: Known


class EvidenceStore:
    """Figures of a case, from bundles, imports, entries and observation."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: dict[str, _Held] = {}

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
    ) -> Collection[Evidence]:  # fmt: skip
        """Figures of a case by time, narrowed by what is given. All of them are parsed when they are looked at."""
        if metric is candidate is run_sha256 is kinds is None:
            return self._known(case)
        return tuple(
            s.evidence
            for s in self.stored(case, metric=metric, candidate=candidate, run_sha256=run_sha256, kinds=kinds)
        )

    def revision(self, case: str) -> int:
        """A number that grows whenever a figure of the case is added, changed or removed."""
        with self._database.read() as session:
            row = session.get(EvidenceRevisionRow, case)
            return row.n if row else 0

    def _known(self, case: str) -> Known:
        """All figures of a case: read once, and again when one was added, changed or removed.

        Inside an open transaction they are always read, since it may be undone.
        """
        with self._database.read() as session:
            row = session.get(EvidenceRevisionRow, case)
            revision = row.n if row and not self._database.in_transaction else None
            held = self._held.get(case)
            if held and held.revision == revision:
                return held.known
            # one text a metric, in the order of the index: SQL would carry every body through its sorter, and a row of
            # each costs more than the text
            joined = func.aggregate_strings(EvidenceRow.body, ",")
            of_case, metric = EvidenceRow.case_id == case, col(EvidenceRow.metric)
            bodies = session.exec(select(metric, joined).where(of_case).group_by(metric)).all()
            facts = session.exec(
                select(metric, col(EvidenceRow.kind), col(EvidenceRow.candidate), col(EvidenceRow.load_point))
                .where(of_case).distinct()
            ).all()  # fmt: skip
        known = Known.read_later(
            {m: partial(_all_of, [body]) for m, body in bodies},
            (Fact(m, Kind(kind), candidate, point) for m, kind, candidate, point in facts),
        )
        if revision is not None:
            self._held.pop(case, None)
            self._held[case] = _Held(revision, known)
            for oldest in list(self._held)[:-HELD_CASES]:
                self._held.pop(oldest, None)
        return known

    def stored(
        self, case: str, *, metric: str | None = None, candidate: str | None = None, run_sha256: str | None = None,
        kinds: Iterable[Kind] | None = None,
    ) -> tuple[StoredEvidence, ...]:  # fmt: skip
        """As of_case, with hashes."""
        query = select(EvidenceRow.body, EvidenceRow.sha256, EvidenceRow.run_sha256).where(EvidenceRow.case_id == case)
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
            rows = session.exec(query.order_by(col(EvidenceRow.at), col(EvidenceRow.id))).all()
        evidence = _all_of([body for body, _, _ in rows])
        return tuple(StoredEvidence(e, *row) for e, row in zip(evidence, rows, strict=True))

    def contracts(self, hashes: Iterable[str] | None = None) -> dict[str, Contract]:
        """Contracts by hash: the given ones that are there, or all."""
        query = select(ContractRow)
        if hashes is not None:
            query = query.where(col(ContractRow.hash).in_(list(hashes)))
        with self._database.read() as session:
            return {r.hash: Contract.model_validate_json(r.body) for r in session.exec(query)}


def _all_of(bodies: Sequence[str]) -> tuple[Evidence, ...]:
    """Parse many at once; they go to the collector's oldest generation, by freezing and unfreezing without a walk."""
    with uncollected():
        found = _EVIDENCE.validate_json(f"[{','.join(bodies)}]")
        gc.freeze()
        gc.unfreeze()
    return found


def _row(case: str, piece: Evidence, run_sha256: str | None) -> EvidenceRow:
    body = canonical_json(piece.model_dump(mode="json"))
    return EvidenceRow(
        id=piece.id, case_id=case, run_sha256=run_sha256, metric=piece.metric, statistic=piece.statistic,
        candidate=piece.candidate, load_point=piece.load_point, kind=piece.kind.value, at=to_text(piece.at), body=body,
        sha256=hashlib.sha256(body.encode()).hexdigest(),
    )  # fmt: skip
