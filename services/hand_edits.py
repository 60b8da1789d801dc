"""Exported files that somebody edited, in a pull request or at a desk: what they ask for, and taking it in."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from decisions.came_back import CameBack, came_back
from decisions.chain import GENESIS
from decisions.edits import Edit
from decisions.madr_reader import machine_block
from decisions.record import Adr
from decisions.view import current
from planner.errors import InputError
from services.git_tree import last_commit
from services.workspace import Workspace, now, signed_by


class HandEdit(NamedTuple):
    """An edited file, the ADR that it is of, and what it asks for; `author` from git, else who brings it."""

    adr: Adr
    seen: int
    author: str
    asked: CameBack


def read_hand_edit(
    ws: Workspace, text: str, where: str, *, author: str, reason: str = "", at: datetime | None = None
) -> HandEdit:  # fmt: skip
    """What an edited file asks for, against the ADR as it was when the file was written.

    Raises InputError for a file that is not ours, or of a record that is not here; nothing is stored.
    """
    block = machine_block(text.replace("\r\n", "\n")) or {}
    id, head = str(block.get("id", "")), str(block.get("head", ""))
    entries = ws.store.adrs.entries(id) if id else ()
    seen = next((e.seq for e in entries if e.hash == head), None)
    if seen is None:
        what = ("was written while it was a draft." if head == GENESIS and entries
                else "was written from a record that is not in this log.")  # fmt: skip
        raise InputError(what, where=where, fix="Export the decision again, and edit that file.")
    edits = ws.store.adrs.edits(id)
    standing = current(edits)
    asked = came_back(text, current(edits[:seen]), standing, at=at or now(), author=author or "nobody", reason=reason,
                      where=where)  # fmt: skip
    return HandEdit(standing, len(entries), author, asked)


def author_of(path: Path, by: str) -> tuple[str, str]:
    """Who edited a file and why: as git says where the edit is committed, else as it is given."""
    commit = last_commit(path)
    return (commit.author[:200], commit.subject) if commit else (by, "")


def take_hand_edit(ws: Workspace, edit: HandEdit) -> tuple[Edit, ...]:
    """Store what an edited file asks for, all or nothing; raises InputError where nobody is named as its author."""
    if not edit.asked.edits:
        return ()
    signed_by(edit.author, "hand edit")
    with ws.store.transaction():
        for n, one in enumerate(edit.asked.edits):
            ws.store.adrs.append(edit.adr.id, one, seen=edit.seen + n)
    return edit.asked.edits
