"""Whole records of ADRs that come from elsewhere, many at once, each with the chain that it has there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import insert, inspect
from sqlmodel import Session

from db.database import to_text
from db.tables import AdrRow, EditRow
from decisions import chain
from decisions.edits import edit_from_json
from decisions.view import current
from planner.errors import InputError


class Record(NamedTuple):
    """An ADR with all its links; `at` and `by` say when and by whom it came to be known here."""

    id: str
    case: str
    at: datetime
    by: str
    entries: tuple[chain.Entry, ...]


def insert_records(session: Session, records: Sequence[Record]) -> None:
    """Write them down after checking every chain again.

    Raises InputError for a chain that is broken, NotAllowed for edits that do not follow one another.
    """
    edits = []
    for record in records:
        broken = chain.verify(record.entries)
        if broken or not record.entries:
            raise InputError(str(broken) if broken else "holds no edit.", where=record.id,
                             fix="Export the log again where it is whole.")  # fmt: skip
        read = [edit_from_json(e.body, where=f"{record.id}, edit {e.seq}") for e in record.entries]
        view = current(read)
        if view.id != record.id or view.case != record.case or any(e.adr != record.id for e in record.entries):
            raise InputError("tells of another ADR or case than its record.", where=record.id,
                             fix="Export the log again where it is whole.")  # fmt: skip
        edits += [
            {"adr_id": e.adr, "seq": e.seq, "number": edit.number if edit.kind == "accepted" else None, "body": e.body,
             "prev": e.prev, "hash": e.hash}
            for e, edit in zip(record.entries, read, strict=True)
        ]  # fmt: skip
    if not records:
        return
    session.execute(insert(inspect(AdrRow).local_table), [
        {"id": r.id, "case_id": r.case, "created_at": to_text(r.at), "created_by": r.by} for r in records
    ])  # fmt: skip
    session.execute(insert(inspect(EditRow).local_table), edits)  # not by the ORM, which inserts rows one by one
