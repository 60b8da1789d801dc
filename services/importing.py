"""A folder of decisions comes in: new ones become records, our own edited ones typed edits, what is here stays.

Each file comes in whole or not at all, and a broken one is named with its line and keeps no other out. The same folder
again brings nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from db.records import Record
from decisions import chain
from decisions.adopted import Found, Links, edits_of, linked, numbers
from decisions.edits import Edit, Superseded, edit_to_json
from decisions.exports import foreign_id, other_foreign_ids, read_export, same_decision
from decisions.madr_reader import MadrFile, read_madr
from decisions.madr_text import text_of
from decisions.madr_words import part_of
from decisions.record import Adr, Status
from decisions.view import current
from planner.errors import FliplineError
from planner.faults import first_fault
from services.hand_edits import HandEdit, author_of, read_hand_edit, take_hand_edit
from services.import_files import Brought, brought
from services.rejudging import rejudge
from services.workspace import Workspace, now, signed_by


class Broken(NamedTuple):
    """A file that did not come in, and why, with its line where one is to blame."""

    file: str
    error: FliplineError


class CameIn(NamedTuple):
    """An edited file of ours and what it asked for; refused ones asked for what cannot be."""

    file: str
    edit: HandEdit


class Imported(NamedTuple):
    """What an import did. `there` were known and unchanged, `passed_over` are no decisions: an index, a template."""

    new: tuple[Adr, ...]
    edited: tuple[CameIn, ...]
    refused: tuple[CameIn, ...]
    there: tuple[str, ...]
    passed_over: tuple[str, ...]
    broken: tuple[Broken, ...]

    @property
    def sentence(self) -> str:
        """All of it counted."""
        counted = ((len(self.new), "new"), (len(self.edited), "edited by hand"), (len(self.there), "known"),
                   (len(self.refused), "refused"), (len(self.broken), "broken"),
                   (len(self.passed_over), "no decision"))  # fmt: skip
        return f"{', '.join(f'{n} {what}' for n, what in counted if n) or 'nothing'}."


class _Sorted:
    """Files by what is to be done with them."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.known: list[Found] = []
        self.edited: list[CameIn] = []
        self.there: list[str] = []
        self.passed_over: list[str] = []
        self.broken: list[Broken] = []


def import_path(ws: Workspace, case: str, path: Path, by: str) -> Imported:
    """Import a folder, a .zip or one file into a case; the author of a hand edit is git's where it is committed.

    Raises InputError where there is no Markdown at all.
    """
    return import_files(ws, case, brought(path), by)


def import_files(ws: Workspace, case: str, files: Sequence[Brought], by: str) -> Imported:
    """The same for files that were brought otherwise."""
    signed_by(by, "import")
    into = ws.store.cases.get(case).id
    here = {a.id: a for a in ws.store.adrs.all()}
    sorted_ = _Sorted()
    for file in files:
        try:
            _sort(ws, into, file, here, by, sorted_)
        except FliplineError as e:
            sorted_.broken.append(Broken(file.name, e))
    new = _store_new(ws, into, sorted_, here, by)
    edited, refused = _store_edited(ws, sorted_.edited, sorted_.broken)
    if edited or any(a.active_conditions for a in new):
        rejudge(ws, into)
    return Imported(new, edited, refused, tuple(sorted_.there), tuple(sorted_.passed_over), tuple(sorted_.broken))


def _sort(ws: Workspace, case: str, file: Brought, here: dict[str, Adr], by: str, into: _Sorted) -> None:
    text = file.text()
    export = read_export(text.replace("\r\n", "\n"))
    if export is not None and export.adr in here:
        if export.untouched:
            into.there.append(file.name)
            return
        author, why = author_of(file.path, by) if file.path else (by, "")
        edit = read_hand_edit(ws, text, file.name, author=author, reason=why)
        if edit.asked.edits or edit.asked.refused:
            into.edited.append(CameIn(file.name, edit))
        else:
            into.there.append(file.name)
        return
    if export is not None and not export.adr:
        into.passed_over.append(file.name)  # an index page of ours
        return
    parts = read_madr(text, file.name) if _may_decide(file.name, text) else None
    if parts is None or (export is None and not _decides(file.name, parts)):
        into.passed_over.append(file.name)
        return
    id = export.adr if export is not None else foreign_id(case, file.name)
    read = text_of(parts, file.name)
    if export is None:
        others = other_foreign_ids(case, file.name, file.path.absolute() if file.path else None)
        id = next((i for i in (id, *others) if i in here and same_decision(here[i], read.text)), id)
    found = Found(id, file.name, read)
    if id in here:
        into.known.append(found)
        into.there.append(file.name)
    else:
        into.found.append(found)


def _may_decide(name: str, text: str) -> bool:
    """Whether a file may be a decision by its name: no index, no template, nothing empty without a number."""
    stem = name.rsplit("/", 1)[-1].lower().removesuffix(".md")
    other = stem in ("readme", "index", "changelog", "contributing") or "template" in stem
    return not other and (stem[:1].isdigit() or bool(text.strip()))


def _decides(name: str, parts: MadrFile) -> bool:
    """Whether it has a number, a status, or a part that only a decision has."""
    named = {part_of(p.heading, ours=False) for p in parts.parts}
    numbered = re.match(r"\d+[-_ ]", name.rsplit("/", 1)[-1]) is not None
    return numbered or "status" in parts.front or bool(named & {"status", "outcome"})


def _store_new(ws: Workspace, case: str, files: _Sorted, here: dict[str, Adr], by: str) -> tuple[Adr, ...]:
    """Records for what is new; what is here already and is superseded by one of them is marked so."""
    at = now()
    links = linked((*files.found, *files.known))
    given = numbers(files.found, {a.number for a in here.values() if a.number})
    records, new = [], []
    for found in files.found:
        try:
            edits = edits_of(found, links, given[found.id], case=case, by=by, at=at)
            new.append(current(edits))
        except (FliplineError, ValueError) as e:
            said = first_fault(e) if isinstance(e, ValidationError) else str(e).split("\n")[0]
            error = e if isinstance(e, FliplineError) else FliplineError(said, where=found.file)
            files.broken.append(Broken(found.file, error))
            continue
        records.append(Record(found.id, case, at, by, _chained(found.id, edits)))
    with ws.store.transaction():
        ws.store.adrs.take_in(records)
        for old, edit in _newly_superseded(links, files.known, {a.id: a for a in new}, here, by):
            ws.store.adrs.append(old, edit)
    return tuple(new)


def _newly_superseded(
    links: Links, known: Iterable[Found], new: dict[str, Adr], here: dict[str, Adr], by: str
) -> Iterable[tuple[str, Edit]]:  # fmt: skip
    for found in known:
        successor = new.get(links.by.get(found.id, ""))
        if successor and here[found.id].status in (Status.ACCEPTED, Status.DEPRECATED):
            why = f"superseded by {successor.name}, imported"
            yield found.id, Superseded(at=now(), author=by, reason=why, by=successor.id)


def _chained(id: str, edits: Iterable[Edit]) -> tuple[chain.Entry, ...]:
    entries: list[chain.Entry] = []
    for edit in edits:
        entries.append(chain.link(id, edit_to_json(edit), entries[-1] if entries else None))
    return tuple(entries)


def _store_edited(
    ws: Workspace, asked: Iterable[CameIn], broken: list[Broken]
) -> tuple[tuple[CameIn, ...], tuple[CameIn, ...]]:  # fmt: skip
    """Hand edits that were stored, and those that cannot be."""
    edited, refused = [], []
    for came in asked:
        if came.edit.asked.refused:
            refused.append(came)
            continue
        try:
            take_hand_edit(ws, came.edit)
            edited.append(came)
        except FliplineError as e:
            broken.append(Broken(came.file, e))
    return tuple(edited), tuple(refused)
