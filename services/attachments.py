"""The raw file behind figures that were entered by hand: its exact bytes, who brought it and when.

An attachment is a folder of the workspace that is only added to: attachments/CASE/ENTRY with record.json and raw.
ENTRY is that of the figures, whose source is entered/ENTRY.
"""

from __future__ import annotations

import hashlib
import shutil
from datetime import datetime
from pathlib import Path, PureWindowsPath

from pydantic import ValidationError

from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from services.workspace import UNFINISHED, Workspace, now

RECORD, RAW = "record.json", "raw"
MOST_BYTES = 20 * 2**20
File = tuple[str, bytes]  # name and content


class Attachment(Frozen):
    """A file that was brought with an entry of figures; the hash is of its exact bytes."""

    entry: str
    name: str
    sha256: str
    size: int
    by: str
    at: datetime


def attach(ws: Workspace, case: str, entry: str, file: File, by: str) -> Attachment:
    """Keep a file with an entry of a case (by its id); it goes again when the open transaction is undone.

    Raises InputError for an empty file, one above MOST_BYTES, and where there is no room for it.
    """
    name, content = PureWindowsPath(file[0]).name or "file", file[1]
    if not 0 < len(content) <= MOST_BYTES:
        what = f"is larger than {MOST_BYTES // 2**20} MiB." if content else "is empty."
        raise InputError(what, where=name, fix="Attach the log or sheet that the figures come from.")
    record = Attachment(entry=entry, name=name, sha256=hashlib.sha256(content).hexdigest(), size=len(content), by=by,
                        at=now())  # fmt: skip
    folder = _folder(ws, case) / entry
    part = folder.with_name(f"{UNFINISHED}{entry}")
    ws.store.when_undone(lambda: shutil.rmtree(folder, ignore_errors=True))
    try:
        part.mkdir(parents=True)
        (part / RAW).write_bytes(content)
        (part / RECORD).write_text(record.model_dump_json(), encoding="utf-8")
        part.rename(folder)  # whole or not at all
    except OSError as e:
        shutil.rmtree(part, ignore_errors=True)
        raise InputError(f"cannot be kept: {e.strerror}.", where=name,
                         fix=f"Make room in {ws.home}, or make it writable.") from None  # fmt: skip
    return record


def attachments(ws: Workspace, case: str) -> tuple[Attachment, ...]:
    """The files of a case by time; raises InputError for a record that was damaged."""
    found = []
    for path in sorted(_folder(ws, case).glob(f"*/{RECORD}")):
        if path.parent.name.startswith(UNFINISHED):
            continue
        try:
            found.append(Attachment.model_validate_json(path.read_bytes()))
        except ValidationError:
            raise InputError("is not as it was written.", where=str(path),
                             fix="Restore the file, or move its folder out of the workspace.") from None  # fmt: skip
    return tuple(found)


def attached_bytes(ws: Workspace, case: str, entry: str) -> bytes:
    """The exact bytes that were attached; raises UnknownName, InputError when they are not the same any more."""
    records = {a.entry: a for a in attachments(ws, case)}
    if entry not in records:
        raise UnknownName.from_known("attachment", entry, records)
    path = _folder(ws, case) / entry / RAW
    body = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(body).hexdigest() != records[entry].sha256:
        raise InputError("is not the file that was attached.", where=str(path), fix="Restore it from a backup.")
    return body


def _folder(ws: Workspace, case: str) -> Path:
    return ws.home / "attachments" / ws.store.cases.get(case).id
