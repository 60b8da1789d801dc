"""Snapshots: the exact bytes that something was decided on, by their hash."""

from __future__ import annotations

import hashlib

from sqlmodel import select

from db.database import Database
from db.tables import SnapshotRow
from decisions.record import SnapshotKind, SnapshotRef
from planner.errors import UnknownName


class SnapshotStore:
    """Bytes by SHA-256; what is stored stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, kind: SnapshotKind, body: bytes) -> SnapshotRef:
        """Store bytes once and return their reference."""
        sha256 = hashlib.sha256(body).hexdigest()
        with self._database.write() as session:
            if session.get(SnapshotRow, sha256) is None:
                session.add(SnapshotRow(sha256=sha256, kind=kind, body=body))
        return SnapshotRef(kind=kind, sha256=sha256)

    def kinds(self) -> dict[str, str | None]:
        """The kind of every snapshot by its hash; None for one whose bytes are no longer those that were hashed."""
        with self._database.read() as session:
            rows = session.exec(select(SnapshotRow.sha256, SnapshotRow.kind, SnapshotRow.body))
            return {key: kind if hashlib.sha256(body).hexdigest() == key else None for key, kind, body in rows}

    def get(self, sha256: str) -> bytes:
        """The bytes of that hash; raises UnknownName."""
        with self._database.read() as session:
            row = session.get(SnapshotRow, sha256)
            if row is None:
                raise UnknownName(f"the bytes {sha256[:12]} are not in this log.", where="snapshot",
                                  fix="They come with a log as JSON, not with Markdown.")  # fmt: skip
            return row.body
