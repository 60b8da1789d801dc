"""The whole log out as one JSON document, and into a log that lacks it: every chain and snapshot is checked again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from db.cases import Case
from db.records import Record
from decisions.chain import GENESIS
from decisions.edits import edit_from_json
from decisions.log_json import Log, LogCase, LogRecord, LogSnapshot, from_json, log_edits, to_json
from decisions.record import Status
from planner.errors import ConflictError, InputError
from services.rejudging import rejudge
from services.workspace import Workspace, now, signed_by


def export_log(ws: Workspace, case: str | None = None) -> str:
    """Every ADR with its edits, its case and the bytes it was decided on; the same log gives the same text."""
    kept = [a for a in ws.store.adrs.all() if case in (None, a.case)]
    cases = {c.id: c for c in ws.store.cases.all()}
    heads = ws.store.adrs.heads()
    records = tuple(
        LogRecord(id=a.id, case=a.case, head=heads.get(a.id, GENESIS), now=a,
                  edits=log_edits(ws.store.adrs.entries(a.id)))
        for a in kept
    )  # fmt: skip
    wanted = {s.sha256: s.kind for a in kept for s in a.snapshots}
    present = ws.store.snapshots.kinds()
    return to_json(Log(
        cases=tuple(LogCase(**cases[id].model_dump()) for id in dict.fromkeys(a.case for a in kept)),
        adrs=records,
        snapshots=tuple(LogSnapshot.of(kind, ws.store.snapshots.get(sha256))
                        for sha256, kind in sorted(wanted.items()) if sha256 in present),
    ))  # fmt: skip


class Joined(NamedTuple):
    """What an import did: ADRs that are new, ADRs that were here with the same or a longer record, and their cases.

    `renamed` are cases that came under another short name, since another case has theirs here.
    """

    new: tuple[str, ...]
    there: tuple[str, ...]
    renamed: tuple[str, ...]


def import_log(ws: Workspace, text: str, by: str, where: str = "log") -> Joined:
    """Take in a log, all or nothing; what is here already stays, and has to go on from what comes.

    Raises InputError for a document, chain or snapshot that is not as it was written, ConflictError where a record here
    and the one that comes went different ways.
    """
    signed_by(by, "import")
    log = from_json(text, where)
    here = {a.id for a in ws.store.adrs.all()}
    new = [r for r in log.adrs if r.id not in here]
    for record in log.adrs:
        last = record.edits[-1].hash if record.edits else GENESIS
        if record.head != last:
            raise InputError("ends before its head: edits were cut off.", where=f"{where}, {record.id}",
                             fix="Export the log again.")  # fmt: skip
        if record.id in here and last not in {GENESIS, *(e.hash for e in ws.store.adrs.entries(record.id))}:
            raise ConflictError("went another way here than in the file.", where=record.now.name,
                                fix="Keep one of the two logs, and write the other's edits by hand.")  # fmt: skip
    with ws.store.transaction():
        renamed = _cases(ws, log, {r.case for r in new})
        for snapshot in log.snapshots:
            ws.store.snapshots.put(snapshot.kind, snapshot.body())
        at = now()
        ws.store.adrs.take_in([_record(r) for r in new if r.edits])
        for record in new:
            if not record.edits and record.now.status is Status.DRAFT:
                ws.store.adrs.add_draft(record.now, at=at, by=by)
    for case in dict.fromkeys(r.case for r in new):
        rejudge(ws, case)
    return Joined(tuple(r.now.name for r in new), tuple(r.now.name for r in log.adrs if r.id in here), renamed)


def _cases(ws: Workspace, log: Log, wanted: set[str]) -> tuple[str, ...]:
    """Add the cases that new ADRs need and that are not here; says which came under another short name, and why."""
    present, taken, renamed = ws.store.cases.all(), {c.slug for c in ws.store.cases.all()}, []
    for case in log.cases:
        if case.id in wanted - {c.id for c in present}:
            slug = next(s for s in _names(case.slug) if s not in taken)
            taken.add(slug)
            ws.store.cases.add(Case(**case.model_dump() | {"slug": slug}))
            if slug != case.slug:
                renamed.append(f"{case.title}: came as {slug}, since another case here is called {case.slug}.")
    return tuple(renamed)


def _names(slug: str) -> Iterator[str]:
    yield slug
    yield from (f"{slug}-{n}" for n in count(2))


def _record(record: LogRecord) -> Record:
    first = edit_from_json(record.entries()[0].body, where=record.id)
    return Record(record.id, record.case, first.at, first.author, record.entries())
