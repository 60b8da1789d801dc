"""ADRs as they stand, each kept in memory with the head hash that it was computed from, so that it cannot be stale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from sqlmodel import Session, col, func, select

from db.collector import uncollected
from db.tables import EditRow
from decisions import chain
from decisions.edits import edit_from_json
from decisions.record import Adr
from decisions.view import apply

AT_ONCE = 5_000  # ids in one query


class Tip(NamedTuple):
    """The last link of a record: its place and its hash, which covers all before it."""

    seq: int
    hash: str


class _Held(NamedTuple):
    tip: Tip
    adr: Adr


class Views:
    """Views by ADR. What came after a view is applied to it; what does not follow it is computed from the beginning."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._drafts: dict[str, tuple[str, Adr]] = {}

    def keep(self, entry: chain.Entry, adr: Adr) -> None:
        """Remember the view after an edit that was written just now."""
        self._held[entry.adr] = _Held(Tip(entry.seq, entry.hash), adr)

    def draft(self, id: str, body: str) -> Adr:
        """The draft that a stored text says."""
        held = self._drafts.get(id)
        if held is None or held[0] != body:
            held = self._drafts[id] = (body, Adr.model_validate_json(body))
        return held[1]

    def of(self, session: Session, id: str) -> Adr | None:
        """The view of one record, or None where there is none."""
        query = select(EditRow.seq, EditRow.hash).where(EditRow.adr_id == id).order_by(col(EditRow.seq).desc())
        last = session.exec(query.limit(1)).first()
        return self._grown(session, id, Tip(*last)) if last else None

    def all(self, session: Session) -> Mapping[str, Adr]:
        """The views of all records by id."""
        present = tips(session)
        self._begin(session, [id for id in present if id not in self._held])
        return {id: self._grown(session, id, tip) for id, tip in present.items()}

    def _grown(self, session: Session, id: str, tip: Tip) -> Adr:
        held = self._held.get(id)
        if held and held.tip == tip:
            return held.adr
        later = entries_of(session, id, after=held.tip.seq) if held else ()
        if held and later and later[0].prev == held.tip.hash:
            adr = replayed(later, held.adr)
        else:
            later = entries_of(session, id)
            adr = replayed(later)
        self.keep(later[-1], adr)
        return adr

    def _begin(self, session: Session, ids: list[str]) -> None:
        """Compute many records that were never seen, each from all of its edits."""
        with uncollected():
            for some in (ids[n : n + AT_ONCE] for n in range(0, len(ids), AT_ONCE)):
                query = _columns().where(col(EditRow.adr_id).in_(some)).order_by(col(EditRow.adr_id), col(EditRow.seq))
                for _, group in groupby(session.exec(query), key=lambda row: row[0]):
                    entries = [chain.Entry(*row) for row in group]
                    self.keep(entries[-1], replayed(entries))


def tips(session: Session) -> dict[str, Tip]:
    """The last link of every record by the id of its ADR."""
    newest = select(EditRow.adr_id, func.max(EditRow.seq).label("seq")).group_by(col(EditRow.adr_id)).subquery()
    query = select(EditRow.adr_id, EditRow.seq, EditRow.hash).join(
        newest, (col(EditRow.adr_id) == newest.c.adr_id) & (col(EditRow.seq) == newest.c.seq)
    )
    return {id: Tip(seq, hash) for id, seq, hash in session.exec(query)}


def entries_of(session: Session, id: str, *, after: int = 0) -> tuple[chain.Entry, ...]:
    """The links of one chain as stored, from the one after `after`."""
    query = _columns().where(EditRow.adr_id == id, EditRow.seq > after).order_by(col(EditRow.seq))
    return tuple(chain.Entry(*row) for row in session.exec(query))


def replayed(entries: Iterable[chain.Entry], view: Adr | None = None) -> Adr:
    """The view after these links; raises InputError or NotAllowed for what is no edit, or does not follow."""
    for e in entries:
        view = apply(view, edit_from_json(e.body, where=f"{e.adr}, edit {e.seq}"))
    assert view is not None
    return view


def _columns():  # type: ignore[no-untyped-def]
    # columns, not rows: making an object of each takes longer than reading it
    return select(EditRow.adr_id, EditRow.seq, EditRow.body, EditRow.prev, EditRow.hash)
