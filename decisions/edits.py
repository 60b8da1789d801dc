"""What can happen to an ADR from "proposed" on: typed edits that only add; decisions/view.py computes what they give.

                  proposed ──> accepted ──> superseded | deprecated
    created ──>      │
                     └──────> rejected

Each edit class says in which statuses it is allowed and what it changes in the view.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from decisions.edit_base import ANY, OPEN, BaseEdit
from decisions.flip_condition import FlipCondition
from decisions.opinions import Approved, Objected, ObjectionAnswered, OpinionWithdrawn, outdated
from decisions.record import Adr, AdrId, AdrText, Comment, EvidenceRef, Fire, SnapshotRef, Status
from planner.errors import InputError, NotAllowed
from planner.faults import first_fault
from planner.frozen import canonical_json


class Created(BaseEdit):
    """The record begins: the text as it was put forward."""

    kind: Literal["created"] = "created"
    adr: AdrId
    case: str
    text: AdrText
    done = "created"


class Proposed(BaseEdit):
    """Put forward for a decision."""

    kind: Literal["proposed"] = "proposed"
    allowed_in = (Status.DRAFT,)
    done = "proposed"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"status": Status.PROPOSED}


class Amended(BaseEdit):
    """The whole text anew, while it is still under discussion."""

    kind: Literal["amended"] = "amended"
    text: AdrText
    allowed_in = (Status.PROPOSED,)
    done = "edited"

    def changes(self, adr: Adr) -> dict[str, Any]:
        text = {name: getattr(self.text, name) for name in AdrText.model_fields}
        return {**text, "opinions": outdated(adr.opinions)}


class Accepted(BaseEdit):
    """Decided by a named person; the number is given here, with the exact bytes it was decided on."""

    kind: Literal["accepted"] = "accepted"
    number: int = Field(ge=1)
    snapshots: tuple[SnapshotRef, ...] = ()
    allowed_in = (Status.PROPOSED,)
    done = "accepted"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {
            "status": Status.ACCEPTED, "number": self.number, "accepted_by": self.author, "accepted_at": self.at,
            "snapshots": _joined(adr.snapshots, self.snapshots),
        }  # fmt: skip


class Rejected(BaseEdit):
    """Turned down."""

    kind: Literal["rejected"] = "rejected"
    allowed_in = (Status.PROPOSED,)
    done = "rejected"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"status": Status.REJECTED}


class Deprecated(BaseEdit):
    """No longer followed, with nothing in its place."""

    kind: Literal["deprecated"] = "deprecated"
    allowed_in = (Status.ACCEPTED,)
    done = "deprecated"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"status": Status.DEPRECATED}


class Superseded(BaseEdit):
    """Replaced by another ADR."""

    kind: Literal["superseded"] = "superseded"
    by: AdrId
    allowed_in = (Status.ACCEPTED, Status.DEPRECATED)
    done = "superseded"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"status": Status.SUPERSEDED, "superseded_by": self.by}


class ConditionAdded(BaseEdit):
    """One more reason to re-open."""

    kind: Literal["condition_added"] = "condition_added"
    condition: FlipCondition
    allowed_in = OPEN
    done = "given another flip condition"

    def changes(self, adr: Adr) -> dict[str, Any]:
        if any(c.id == self.condition.id for c in adr.conditions):
            raise NotAllowed(f"a flip condition {self.condition.id!r} exists already.", where=adr.name,
                             fix="Give the new one another id.")  # fmt: skip
        return {"conditions": (*adr.conditions, self.condition)}


class ConditionRetired(BaseEdit):
    """A reason to re-open that no longer applies; it stays readable."""

    kind: Literal["condition_retired"] = "condition_retired"
    condition: str
    allowed_in = OPEN
    done = "relieved of a flip condition"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        if adr.condition(self.condition).retired:
            raise NotAllowed(f"flip condition {self.condition!r} is retired already.", where=adr.name)
        return {
            "conditions": _with_condition(adr, self.condition, retired=True),
            "fires": _other_fires(adr, self.condition),
        }


class RecheckMoved(BaseEdit):
    """Somebody looked at a flip condition and names the day on which somebody looks again."""

    kind: Literal["recheck_moved"] = "recheck_moved"
    condition: str
    recheck_on: date
    allowed_in = OPEN
    done = "re-checked"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        if adr.condition(self.condition).retired:
            raise NotAllowed(f"flip condition {self.condition!r} is retired.", where=adr.name)
        return {"conditions": _with_condition(adr, self.condition, recheck_on=self.recheck_on)}


class EvidenceAttached(BaseEdit):
    """More figures beside the decision."""

    kind: Literal["evidence_attached"] = "evidence_attached"
    evidence: tuple[EvidenceRef, ...] = Field(min_length=1)
    allowed_in = OPEN
    done = "given evidence"

    def changes(self, adr: Adr) -> dict[str, Any]:
        merged = {e.id: e for e in adr.evidence}
        for piece in self.evidence:
            merged.setdefault(piece.id, piece)
        return {"evidence": tuple(merged.values())}


class ConditionFired(BaseEdit):
    """An event, not a decision: evidence met a flip condition. It waits for a person."""

    kind: Literal["condition_fired"] = "condition_fired"
    fire: Fire
    allowed_in = (Status.ACCEPTED,)
    done = "marked as fired"

    def changes(self, adr: Adr) -> dict[str, Any]:
        if adr.condition(self.fire.condition).retired:
            raise NotAllowed(f"flip condition {self.fire.condition!r} is retired and cannot fire.", where=adr.name)
        return {"fires": (*_other_fires(adr, self.fire.condition), self.fire)}


class FireConfirmed(BaseEdit):
    """A person answers a fired condition: the decision is re-opened (by `successor`, if drafted), or it stands."""

    kind: Literal["fire_confirmed"] = "fire_confirmed"
    condition: str
    answer: Literal["reopen", "stands"]
    successor: AdrId | None = None
    allowed_in = (Status.ACCEPTED,)
    done = "confirmed"

    def changes(self, adr: Adr) -> dict[str, Any]:
        if not any(f.condition == self.condition for f in adr.fires):
            raise NotAllowed(f"flip condition {self.condition!r} has not fired, or was answered already.",
                             where=adr.name)  # fmt: skip
        if self.answer == "stands" and not self.reason.strip():
            raise NotAllowed("letting a decision stand against its fired condition needs a reason.", where=adr.name,
                             fix="Write why it stands.")  # fmt: skip
        return {"fires": _other_fires(adr, self.condition)}


class Commented(BaseEdit):
    """Somebody said something."""

    kind: Literal["comment"] = "comment"
    text: str = Field(min_length=1)
    allowed_in = ANY
    done = "commented"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"comments": (*adr.comments, Comment(at=self.at, author=self.author, text=self.text))}


class ReviewMoved(BaseEdit):
    """Another date on which somebody looks again."""

    kind: Literal["review_moved"] = "review_moved"
    review_on: date
    allowed_in = OPEN
    done = "given another review date"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return {"review_on": self.review_on}


Edit = Annotated[
    Created | Proposed | Amended | Accepted | Rejected | Deprecated | Superseded | ConditionAdded | ConditionRetired
    | RecheckMoved | EvidenceAttached | ConditionFired | FireConfirmed | Commented | ReviewMoved
    | Approved | Objected | ObjectionAnswered | OpinionWithdrawn,
    Field(discriminator="kind"),
]  # fmt: skip
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def edit_to_json(edit: Edit) -> str:
    """The canonical JSON of an edit: the text that the hash chain covers."""
    return canonical_json(edit.model_dump(mode="json"))


def edit_from_json(text: str, *, where: str = "edit") -> Edit:
    """Read an edit back.

    Raises InputError for text that is no edit of this Flipline.
    """
    try:
        return _EDIT.validate_json(text)
    except ValidationError as e:
        raise InputError(first_fault(e), where=where) from None


def _with_condition(adr: Adr, id: str, **fields: object) -> tuple[FlipCondition, ...]:
    return tuple(c.model_copy(update=fields) if c.id == id else c for c in adr.conditions)


def _other_fires(adr: Adr, condition: str) -> tuple[Fire, ...]:
    return tuple(f for f in adr.fires if f.condition != condition)


def _joined(old: tuple[SnapshotRef, ...], new: tuple[SnapshotRef, ...]) -> tuple[SnapshotRef, ...]:
    return (*(s for s in old if s.kind not in {n.kind for n in new}), *new)
