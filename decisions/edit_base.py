"""What every edit of an ADR is made of, and the statuses that edits are allowed in."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import AwareDatetime

from decisions.record import Adr, Name, Status
from planner.frozen import Frozen

OPEN = (Status.PROPOSED, Status.ACCEPTED)
ANY = tuple(s for s in Status if s is not Status.DRAFT)


class BaseEdit(Frozen):
    """What every edit carries: when, by whom, why."""

    at: AwareDatetime
    author: Name
    reason: str = ""

    allowed_in: ClassVar[tuple[Status, ...]] = ()
    done: ClassVar[str] = ""
    needs_reason: ClassVar[bool] = False

    def changes(self, adr: Adr) -> dict[str, Any]:
        """Fields of the view that this edit sets."""
        return {}
