"""What a decision file says: the text of an ADR with its status, numbers and links, from any template."""

from __future__ import annotations

from pydantic import ValidationError

from decisions.madr_foreign import Read, foreign_text
from decisions.madr_lists import day_of
from decisions.madr_own import accepted_of, comments_of, own_fields
from decisions.madr_reader import MadrFile
from decisions.record import AdrText, Status
from planner.errors import InputError
from planner.faults import first_fault


def text_of(file: MadrFile, where: str = "file") -> Read:
    """The text of a decision file; raises InputError for one whose fields cannot stand, such as a title too long."""
    return _own(file, where) if file.machine is not None else foreign_text(file, where)


def _own(file: MadrFile, where: str) -> Read:
    machine = file.machine or {}
    try:
        text = AdrText.model_validate(own_fields(file))
    except ValidationError as e:
        raise InputError(first_fault(e), where=where, fix="Compare with another exported file.") from None
    except InputError as e:
        raise InputError(e.what, where=f"{where}, {e.where}" if e.where else where, fix=e.fix) from None
    known, number, by = machine.get("status"), machine.get("number"), machine.get("superseded_by")
    return Read(
        text, Status(known) if known in set(Status) else Status.PROPOSED, str(file.front.get("status") or ""),
        number if isinstance(number, int) else None, day_of(file.front.get("date")),
        superseded_by=(str(by),) if by else (), accepted=accepted_of(file), comments=comments_of(file),
        opinions=tuple(machine.get("opinions") or ()),
    )  # fmt: skip
