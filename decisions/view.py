"""The present view of an ADR, computed from its edits, and why an edit may not follow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import reduce

from decisions.edits import Created, Edit, Proposed
from decisions.record import Adr, Status
from decisions.record import draft as new_draft
from planner.errors import NotAllowed

_WAY_OUT = {
    Status.DRAFT: "Propose it first.",
    Status.PROPOSED: "Accept or reject it first.",
    Status.ACCEPTED: "An accepted ADR does not change: write a draft that supersedes it.",
    Status.REJECTED: "Write a new draft.",
    Status.SUPERSEDED: "Open the ADR that superseded it.",
    Status.DEPRECATED: "Write a new draft.",
}


def apply(adr: Adr | None, edit: Edit) -> Adr:
    """The view after one more edit.

    Raises NotAllowed when the status does not permit it, or a needed reason is missing.
    """
    if edit.kind == "created":
        if adr is not None:
            raise NotAllowed("exists already and cannot be created again.", where=adr.name, fix=_WAY_OUT[adr.status])
        return new_draft(edit.adr, edit.case, edit.text).model_copy(update={"updated_at": edit.at})
    if adr is None:
        raise NotAllowed(f"an ADR that was never created cannot be {edit.done}.", fix="Create it first.")
    if adr.status not in edit.allowed_in:
        raise NotAllowed(f"cannot be {edit.done}: it is {_standing(adr)}.", where=adr.name, fix=_WAY_OUT[adr.status])
    if edit.needs_reason and not edit.reason.strip():
        raise NotAllowed(f"cannot be {edit.done} without a reason.", where=adr.name, fix="Write one sentence why.")
    return adr.model_copy(update={**edit.changes(adr), "updated_at": edit.at})


def current(edits: Iterable[Edit]) -> Adr:
    """The ADR as it stands after all edits, in their order.

    Raises NotAllowed when an edit does not fit what stood before, or when there is none.
    """
    view: Adr | None = reduce(apply, edits, None)
    if view is None:
        raise NotAllowed("an ADR without edits is not a record.", fix="Propose the draft first.")
    return view


def propose(draft: Adr, *, at: datetime, author: str, reason: str = "") -> tuple[Created, Proposed]:
    """The two edits that begin the record of a draft.

    Raises NotAllowed when it is not a draft.
    """
    if draft.status != Status.DRAFT:
        raise NotAllowed(f"cannot be proposed: it is {_standing(draft)}.", where=draft.name, fix=_WAY_OUT[draft.status])
    created = Created(at=at, author=author, adr=draft.id, case=draft.case, text=draft.text)
    return created, Proposed(at=at, author=author, reason=reason)


def _standing(adr: Adr) -> str:
    if adr.status == Status.ACCEPTED and adr.accepted_at is not None:
        return f"accepted already, by {adr.accepted_by} on {adr.accepted_at:%Y-%m-%d}"
    return str(adr.status)
