"""Heads that were kept outside the database, against which the log is verified."""

from __future__ import annotations

import json
import re
from pathlib import Path

from db.store import Store
from decisions.chain import GENESIS, Broken
from decisions.madr_reader import machine_block
from planner.errors import InputError

# A line of `adr verify` or `db check`.
_LINE = re.compile(r"^([0-9a-f]{64})  (\S+)", re.MULTILINE)


def heads_kept_in(path: Path) -> dict[str, str]:
    """Heads by ADR id in what `adr verify` or `db check` printed, in the JSON of a log, or in a folder of exports.

    Raises InputError for what cannot be read, or holds none.
    """
    try:
        files = sorted(path.glob("*.md")) if path.is_dir() else [path]
        found = {id: head for file in files for id, head in _heads_of(file).items() if head != GENESIS}
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path), fix="Check the path.") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text.", where=str(path), fix="Name what was exported or printed.") from None
    if not found:
        raise InputError("holds no head of a decision.", where=str(path),
                         fix="Name what adr verify printed, an exported log, or a folder of exports.")  # fmt: skip
    return found


def verified(store: Store, kept: Path | None = None, *, nothing_after: bool = False) -> tuple[Broken, ...]:
    """What is broken in the log by itself, or against heads that were kept; raises InputError."""
    if kept is None and nothing_after:
        raise InputError("there is nothing to come after.", where="--nothing-after", fix="Name the heads with --heads.")
    return store.adrs.verify(heads_kept_in(kept) if kept else None, nothing_after=nothing_after)


def _heads_of(file: Path) -> dict[str, str]:
    if file.suffix == ".md":  # others may write to that folder in any encoding; a head is ASCII
        text = file.read_text(encoding="utf-8", errors="replace")
        block = machine_block(text) or {}
        return {str(block["id"]): str(block["head"])} if {"id", "head"} <= block.keys() else {}
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        return _heads_of_json(text, str(file))
    return {id: head for head, id in _LINE.findall(text)}


def _heads_of_json(text: str, where: str) -> dict[str, str]:
    """Of an exported log (`adrs`), or of what `db check --json` printed (`heads`)."""
    try:
        data = json.loads(text)
        return {**{a["id"]: a["head"] for a in data.get("adrs", [])}, **data.get("heads", {})}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("is no exported log.", where=where, fix="Name what adr export --json wrote.") from None
