"""Whether the stored log is what was written: the chain, and what the chain does not cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from sqlmodel import col, select

from db.collector import uncollected
from db.database import Database
from db.snapshots import SnapshotStore
from db.tables import AdrRow, DraftRow, EditRow
from decisions import chain
from decisions.edits import Edit, edit_from_json
from decisions.record import Adr
from decisions.view import apply
from planner.errors import FliplineError


class _Link(NamedTuple):
    entry: chain.Entry
    number: int | None


class Audit:
    """Reads everything as it is stored, nothing from memory."""

    def __init__(self, database: Database, snapshots: SnapshotStore) -> None:
        self._database = database
        self._snapshots = snapshots

    def broken(self, heads: Mapping[str, str], *, nothing_after: bool) -> tuple[chain.Broken, ...]:
        """The first thing that is wrong of every ADR that has one."""
        with uncollected():
            return self._broken(heads, nothing_after)

    def _broken(self, heads: Mapping[str, str], nothing_after: bool) -> tuple[chain.Broken, ...]:
        query = select(EditRow.adr_id, EditRow.seq, EditRow.body, EditRow.prev, EditRow.hash, EditRow.number)
        with self._database.read() as session:
            rows = session.exec(query.order_by(col(EditRow.adr_id), col(EditRow.seq))).all()
            cases = dict(session.exec(select(AdrRow.id, AdrRow.case_id)).all())
            drafts = set(session.exec(select(DraftRow.adr_id)))
            snapshots = self._snapshots.kinds()
        by_adr = groupby(rows, key=lambda row: str(row[0]))
        links = {id: [_Link(chain.Entry(*row[:5]), row[5]) for row in group] for id, group in by_adr}
        found = []
        for id in sorted((links.keys() | heads.keys() | cases.keys()) - (drafts - links.keys() - heads.keys())):
            of = links.get(id, [])
            known = heads.get(id, chain.GENESIS) if nothing_after else heads.get(id)
            broken = chain.verify((link.entry for link in of), known_head=known, nothing_after=nothing_after)
            found.append(broken._replace(adr=id) if broken else _uncovered(id, of, cases.get(id), snapshots))
        return tuple(b for b in found if b is not None)


def _uncovered(
    id: str, links: Iterable[_Link], case: str | None, snapshots: Mapping[str, str | None]
) -> chain.Broken | None:
    """That each body is an edit that follows, that the columns beside it say the same, that snapshots are whole."""
    view: Adr | None = None
    for entry, number in links:
        try:
            edit = edit_from_json(entry.body)
            after = apply(view, edit)
        except FliplineError as e:
            return chain.Broken(id, entry.seq, f"does not fit what stood before ({e}).")
        view = view if edit.kind == "comment" else after  # no later edit depends on one, and thousands take their time
        why = _beside(edit, number, case, snapshots)
        if why:
            return chain.Broken(id, entry.seq, why)
    return None if view else chain.Broken(id, 1, "is missing: the ADR has neither a draft nor a record.")


def _beside(edit: Edit, number: int | None, case: str | None, snapshots: Mapping[str, str | None]) -> str:
    if number != (edit.number if edit.kind == "accepted" else None):
        return "carries another number than its text says."
    if edit.kind == "created" and edit.case != case:
        return f"belongs to case {edit.case}, and the list of ADRs says {case or 'nothing of it'}."
    if edit.kind == "accepted":
        for ref in edit.snapshots:
            if ref.sha256 not in snapshots:
                return f"rests on the snapshot {ref.sha256[:12]} ({ref.kind}), which is missing."
            if snapshots[ref.sha256] != ref.kind:
                return f"rests on the snapshot {ref.sha256[:12]} ({ref.kind}), which was changed."
    return ""
