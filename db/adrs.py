"""ADRs: drafts under an optimistic lock, then a hash chain of edits that only grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session, col, func, select

from db.audit import Audit
from db.database import Database, to_text, to_time
from db.records import Record, insert_records
from db.snapshots import SnapshotStore
from db.tables import AdrRow, DraftRow, EditRow
from db.views import Views, entries_of, tips
from decisions import chain
from decisions.edits import Accepted, Edit, Superseded, edit_from_json, edit_to_json
from decisions.record import Adr, SnapshotKind, Status
from decisions.view import apply, propose
from planner.errors import ConflictError, InputError, NotAllowed, UnknownName
from planner.frozen import canonical_json


class Draft(NamedTuple):
    """A draft as it is stored; `version` goes back in with the next save."""

    adr: Adr
    version: int
    at: datetime
    by: str


class AdrStore:
    """ADRs by id. Who saves or accepts second gets a ConflictError that says who was first and when."""

    def __init__(self, database: Database, snapshots: SnapshotStore) -> None:
        self._database = database
        self._snapshots = snapshots
        self._views = Views()

    def add_draft(self, adr: Adr, *, at: datetime, by: str) -> Draft:
        """Begin a draft; raises ConflictError when its id is taken, InputError for an unknown case."""
        _must_be_draft(adr)
        with self._database.write() as session:
            session.add(AdrRow(id=adr.id, case_id=adr.case, created_at=to_text(at), created_by=by))
            session.flush()
            session.add(DraftRow(adr_id=adr.id, version=1, body=_body(adr), updated_at=to_text(at), updated_by=by))
        return Draft(adr, 1, at, by)

    def draft(self, id: str) -> Draft:
        """The draft of that id; raises UnknownName when there is none, NotAllowed when it was proposed."""
        with self._database.read() as session:
            return self._draft(session, id)

    def save_draft(self, adr: Adr, *, version: int, at: datetime, by: str) -> Draft:
        """Replace a draft's text; `version` is the one that was opened.

        Raises ConflictError when somebody saved in between.
        """
        _must_be_draft(adr)
        with self._database.write() as session:
            stored = self._draft(session, adr.id)
            _same_version(stored, version)
            if stored.adr.case != adr.case:
                raise NotAllowed(f"belongs to case {stored.adr.case}.", where=adr.name, fix="Start a draft there.")
            row = session.get_one(DraftRow, adr.id)
            row.version, row.body, row.updated_at, row.updated_by = version + 1, _body(adr), to_text(at), by
            session.add(row)
        return Draft(adr, version + 1, at, by)

    def propose(self, id: str, *, version: int, at: datetime, author: str, reason: str = "") -> Adr:
        """Put a draft forward: from here on its record only grows.

        Raises ConflictError when somebody saved in between.
        """
        with self._database.write() as session:
            stored = self._draft(session, id)
            _same_version(stored, version)
            view: Adr | None = None
            for edit in propose(stored.adr, at=at, author=author, reason=reason):
                view = self._write(session, id, view, edit)
            session.delete(session.get_one(DraftRow, id))
            assert view is not None
            return view

    def append(self, id: str, edit: Edit, *, seen: int | None = None) -> Adr:
        """Add one edit; `seen` is how many edits the author had before them.

        Raises NotAllowed when the status does not permit it, ConflictError when there are more than `seen`.
        """
        with self._database.write() as session:
            view = self._current(session, id)
            self._nothing_since(session, id, view, seen)
            return self._write(session, id, view, edit)

    def accept(
        self, id: str, *, at: datetime, author: str, reason: str = "",
        snapshots: Mapping[SnapshotKind, bytes] | None = None, seen: int | None = None,
    ) -> Adr:  # fmt: skip
        """Accept with the next free number, store what it was decided on, and mark what it supersedes: all or nothing.

        Raises ConflictError when somebody else accepted it, NotAllowed when it, or what it supersedes, does not stand
        as it must.
        """
        with self._database.write() as session:
            view = self._current(session, id)
            if view.status == Status.ACCEPTED and view.accepted_at:
                raise ConflictError(
                    f"{view.accepted_by} accepted it on {view.accepted_at:%Y-%m-%d at %H:%M} UTC.", where=view.name,
                    fix="Reload the page; nothing of yours was stored.",
                )  # fmt: skip
            self._nothing_since(session, id, view, seen)
            number = (session.exec(select(func.max(EditRow.number))).one() or 0) + 1
            refs = tuple(self._snapshots.put(kind, body) for kind, body in (snapshots or {}).items())
            edit = Accepted(at=at, author=author, reason=reason, number=number, snapshots=refs)
            accepted = self._write(session, id, view, edit)
            for old in accepted.supersedes:
                why = f"Superseded by {accepted.name}: {accepted.title}"
                by = Superseded(at=at, author=author, reason=why, by=id)
                self._write(session, old, self._current(session, old), by)
            return accepted

    def take_in(self, records: Sequence[Record]) -> None:
        """Store whole records from elsewhere, all or nothing, their chains checked again.

        Raises ConflictError when an id or a number is taken, InputError for a chain that is broken.
        """
        with self._database.write() as session:
            insert_records(session, records)

    def get(self, id: str) -> Adr:
        """The ADR as it stands now, draft or record; raises UnknownName."""
        with self._database.read() as session:
            return self._current(session, id)

    def all(self, *, case: str | None = None, status: Status | None = None) -> tuple[Adr, ...]:
        """All ADRs as they stand, in the order in which they were begun."""
        with self._database.read() as session:
            query = select(AdrRow.id, AdrRow.case_id).order_by(col(AdrRow.created_at), col(AdrRow.id))
            begun = session.exec(query).all()
            drafts = session.exec(select(DraftRow.adr_id, DraftRow.body))
            views = {**{id: self._views.draft(id, body) for id, body in drafts}, **self._views.all(session)}
        found = (views[id] for id, of in begun if id in views and (case is None or of == case))
        return tuple(v for v in found if status is None or v.status == status)

    def edits(self, id: str) -> tuple[Edit, ...]:
        """The history of an ADR, oldest first; empty for a draft."""
        return tuple(edit_from_json(e.body, where=f"{id}, edit {e.seq}") for e in self.entries(id))

    def entries(self, id: str) -> tuple[chain.Entry, ...]:
        """The links of an ADR's chain as stored."""
        with self._database.read() as session:
            return entries_of(session, id)

    def head(self, id: str) -> str:
        """The hash of the last edit, to be kept elsewhere."""
        return chain.head(self.entries(id))

    def heads(self) -> dict[str, str]:
        """The hash of the last edit of every record, by ADR id, in their order."""
        with self._database.read() as session:
            return {id: tip.hash for id, tip in sorted(tips(session).items())}

    def verify(
        self, known_heads: Mapping[str, str] | None = None, *, nothing_after: bool = False
    ) -> tuple[chain.Broken, ...]:
        """The first broken link of every ADR that has one; `known_heads` are exported heads by ADR id.

        With `nothing_after` every edit after those heads is named too, and every ADR that has none.
        """
        return Audit(self._database, self._snapshots).broken(known_heads or {}, nothing_after=nothing_after)

    def _current(self, session: Session, id: str) -> Adr:
        return self._views.of(session, id) or self._draft(session, id).adr

    def _draft(self, session: Session, id: str) -> Draft:
        row = session.get(DraftRow, id)
        if row is None:
            if session.get(AdrRow, id) is None:
                raise UnknownName.from_known("ADR", id, session.exec(select(AdrRow.id)))
            record = self._views.of(session, id)
            if record is None:
                raise InputError("its record is missing.", where=id, fix="Run python cli.py adr verify.")
            raise NotAllowed("was proposed and is no draft any more.", where=record.name,
                             fix="Amend the proposal, or write a draft that supersedes it.")  # fmt: skip
        return Draft(Adr.model_validate_json(row.body), row.version, to_time(row.updated_at), row.updated_by)

    def _write(self, session: Session, id: str, view: Adr | None, edit: Edit) -> Adr:
        after = apply(view, edit)
        last = _last(session, id)
        entry = chain.link(id, edit_to_json(edit), last)
        session.add(EditRow(adr_id=id, seq=entry.seq, number=_number(edit), body=entry.body, prev=entry.prev,
                            hash=entry.hash))  # fmt: skip
        session.flush()
        self._views.keep(entry, after)
        return after

    def _nothing_since(self, session: Session, id: str, view: Adr, seen: int | None) -> None:
        last = _last(session, id)
        if seen is None or last is None or last.seq == seen:
            return
        edit = edit_from_json(last.body, where=f"{id}, edit {last.seq}")
        raise ConflictError(
            f"{edit.author} added '{edit.kind}' on {edit.at:%Y-%m-%d at %H:%M} UTC, after you opened it.",
            where=view.name, fix="Reload the page and look at it first.",
        )  # fmt: skip


def _last(session: Session, id: str) -> chain.Entry | None:
    row = session.exec(select(EditRow).where(EditRow.adr_id == id).order_by(col(EditRow.seq).desc())).first()
    return _entry(row) if row else None


def _entry(row: EditRow) -> chain.Entry:
    return chain.Entry(row.adr_id, row.seq, row.body, row.prev, row.hash)


def _number(edit: Edit) -> int | None:
    return edit.number if edit.kind == "accepted" else None


def _must_be_draft(adr: Adr) -> None:
    if adr.status != Status.DRAFT:
        raise InputError(f"is {adr.status}, not a draft.", where=adr.name, fix="Add an edit to its record instead.")


def _same_version(stored: Draft, version: int) -> None:
    if stored.version != version:
        raise ConflictError(
            f"{stored.by} saved the draft on {stored.at:%Y-%m-%d at %H:%M} UTC, after you opened it.",
            where=stored.adr.name, fix="Reload to see the difference; nothing of yours was stored.",
        )  # fmt: skip


def _body(adr: Adr) -> str:
    return canonical_json(adr.model_dump(mode="json"))
