"""The whole log as one JSON document with a published schema (docs/adr-log.schema.json).

Edits stand as values, and the hash of each covers their canonical JSON: who reads the document can check every chain
with nothing but SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any, Literal

from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter, ValidationError

from decisions import chain
from decisions.edits import Edit
from decisions.record import Adr, AdrId, Sha256, SnapshotKind
from planner.errors import InputError, SchemaTooNew
from planner.faults import first_fault
from planner.frozen import Frozen, canonical_json

LOG_SCHEMA = 1  # of the document as a whole; edits carry what they need themselves


class LogCase(Frozen):
    """The case that decisions belong to; its id is the name of folders, its slug of pages."""

    id: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")
    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    title: str = Field(min_length=1, max_length=200)
    created_at: AwareDatetime
    created_by: str


class LogEdit(Frozen):
    """One link of a chain: `hash` is SHA-256 of `prev`, ADR id, `seq` and the edit's canonical JSON, a line each."""

    seq: int = Field(ge=1)
    prev: Sha256
    hash: Sha256
    edit: dict[str, JsonValue]


class LogRecord(Frozen):
    """One ADR: all its edits, or its draft; `now` is how it stands, computed from them."""

    id: AdrId
    case: str
    head: Sha256
    edits: tuple[LogEdit, ...] = ()
    now: Adr

    def entries(self) -> tuple[chain.Entry, ...]:
        """The links as they are stored."""
        return tuple(chain.Entry(self.id, e.seq, canonical_json(e.edit), e.prev, e.hash) for e in self.edits)


class LogSnapshot(Frozen):
    """Exact bytes that something was decided on: as text where they are UTF-8, else as base64."""

    sha256: Sha256
    kind: SnapshotKind
    text: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, kind: SnapshotKind, body: bytes) -> LogSnapshot:
        """The bytes with their hash."""
        sha256 = hashlib.sha256(body).hexdigest()
        try:
            return cls(sha256=sha256, kind=kind, text=body.decode())
        except UnicodeDecodeError:
            return cls(sha256=sha256, kind=kind, base64=base64.b64encode(body).decode())

    def body(self) -> bytes:
        """The bytes; raises InputError where they are not those that were hashed."""
        try:
            found = self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "")
        except ValueError:  # lone surrogates, or no base64
            found = b""
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise InputError("was changed after it was written.", where=f"snapshot {self.sha256[:12]}",
                             fix="Export the log again.")  # fmt: skip
        return found


class Log(Frozen):
    """The document."""

    flipline_log: Literal[1] = 1
    cases: tuple[LogCase, ...]
    adrs: tuple[LogRecord, ...]
    snapshots: tuple[LogSnapshot, ...] = ()


def log_edits(entries: tuple[chain.Entry, ...]) -> tuple[LogEdit, ...]:
    """Stored links as they stand in the document, letter by letter, also those of an older Flipline.

    Raises InputError for a body that is not canonical JSON: its hash could not be computed from the document.
    """
    edits = []
    for e in entries:
        value = json.loads(e.body)
        if canonical_json(value) != e.body:
            raise InputError("is not in canonical form.", where=f"{e.adr}, edit {e.seq}", fix="Run adr verify.")
        edits.append(LogEdit(seq=e.seq, prev=e.prev, hash=e.hash, edit=value))
    return tuple(edits)


def to_json(log: Log) -> str:
    """The document as text; the same log gives the same bytes."""
    return json.dumps(log.model_dump(mode="json"), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def from_json(text: str, where: str = "log") -> Log:
    """Read the document; raises InputError with the first fault, SchemaTooNew for one of a newer Flipline."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as e:
        line = f", line {e.lineno}" if isinstance(e, json.JSONDecodeError) else ""
        raise InputError("is no JSON.", where=f"{where}{line}", fix="Export the log again.") from None
    version = data.get("flipline_log") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise InputError("is no log of Flipline.", where=where, fix="Choose a file of 'adr export --json'.")
    if version > LOG_SCHEMA:
        raise SchemaTooNew(f"is a log of schema {version}; this Flipline reads {LOG_SCHEMA}.", where=where,
                           fix="Update Flipline.")  # fmt: skip
    try:
        return Log.model_validate(data)
    except ValidationError as e:
        raise InputError(first_fault(e), where=where, fix="Export the log again.") from None


def schema() -> dict[str, Any]:
    """The JSON schema of the document, with that of every edit."""
    log = Log.model_json_schema(mode="validation")
    edits: dict[str, Any] = TypeAdapter(Edit).json_schema(mode="validation")
    log["$defs"] |= edits.pop("$defs")
    log["$defs"]["LogEdit"]["properties"]["edit"] = edits
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **log, "title": "Decision log of Flipline"}
