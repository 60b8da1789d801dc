"""What people think of a decision, by name: approvals, objections, the answer to an objection, and what is taken back.

One opinion a person: a later one replaces the one before, which stays in the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from decisions.edit_base import OPEN, BaseEdit
from decisions.record import Adr, Name, Opinion
from planner.errors import NotAllowed


class Approved(BaseEdit):
    """Somebody is for it."""

    kind: Literal["approved"] = "approved"
    allowed_in = OPEN
    done = "approved"

    def changes(self, adr: Adr) -> dict[str, Any]:
        return _with(adr, Opinion(at=self.at, author=self.author, stance="approves", reason=self.reason))


class Objected(BaseEdit):
    """Somebody is against it; until it is answered or taken back the decision is not accepted."""

    kind: Literal["objected"] = "objected"
    allowed_in = OPEN
    done = "objected to"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        return _with(adr, Opinion(at=self.at, author=self.author, stance="objects", reason=self.reason))


class ObjectionAnswered(BaseEdit):
    """Why the decision goes on in spite of an objection; the objection stays beside it."""

    kind: Literal["objection_answered"] = "objection_answered"
    objector: Name
    allowed_in = OPEN
    done = "defended"
    needs_reason = True

    def changes(self, adr: Adr) -> dict[str, Any]:
        found = _of(adr, self.objector)
        if found is None or not found.stands_in_the_way:
            raise NotAllowed(f"{self.objector} has no objection that waits for an answer.", where=adr.name)
        return _with(adr, found.model_copy(update={"answer": self.reason, "answered_by": self.author}))


class OpinionWithdrawn(BaseEdit):
    """Somebody takes back what they said; nobody does it for another."""

    kind: Literal["opinion_withdrawn"] = "opinion_withdrawn"
    allowed_in = OPEN
    done = "relieved of an opinion"

    def changes(self, adr: Adr) -> dict[str, Any]:
        if _of(adr, self.author) is None:
            raise NotAllowed(f"{self.author} neither approved nor objected.", where=adr.name)
        return {"opinions": tuple(o for o in adr.opinions if o.author != self.author)}


def outdated(opinions: Iterable[Opinion]) -> tuple[Opinion, ...]:
    """The same after the text was amended: what was approved was another text; an objection is still to be answered."""
    return tuple(o.model_copy(update={"outdated": True}) if o.stance == "approves" else o for o in opinions)


def _of(adr: Adr, author: str) -> Opinion | None:
    return next((o for o in adr.opinions if o.author == author), None)


def _with(adr: Adr, opinion: Opinion) -> dict[str, Any]:
    others = tuple(o for o in adr.opinions if o.author != opinion.author)
    return {"opinions": (*others, opinion)}
