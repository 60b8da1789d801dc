"""What people say to a decision, by name: approve, object, answer an objection, take it back."""

from __future__ import annotations

from decisions.opinions import Approved, Objected, ObjectionAnswered, OpinionWithdrawn
from decisions.record import Adr
from services.workspace import Workspace, now, signed_by


def approve(ws: Workspace, adr_id: str, author: str, reason: str = "") -> Adr:
    """Say that one is for it."""
    return ws.store.adrs.append(adr_id, Approved(at=now(), author=signed_by(author, "approval"), reason=reason.strip()))


def object_to(ws: Workspace, adr_id: str, author: str, reason: str) -> Adr:
    """Say why one is against it; raises NotAllowed without a reason."""
    return ws.store.adrs.append(
        adr_id, Objected(at=now(), author=signed_by(author, "objection"), reason=reason.strip())
    )


def answer_objection(ws: Workspace, adr_id: str, objector: str, author: str, reason: str) -> Adr:
    """Say why it goes on in spite of an objection; raises NotAllowed without a reason, or when none waits."""
    by = signed_by(author, "answer")
    return ws.store.adrs.append(
        adr_id, ObjectionAnswered(at=now(), author=by, objector=objector, reason=reason.strip())
    )  # fmt: skip


def withdraw(ws: Workspace, adr_id: str, author: str, reason: str = "") -> Adr:
    """Take back what one said oneself; raises NotAllowed when one said nothing."""
    edit = OpinionWithdrawn(at=now(), author=signed_by(author, "withdrawal"), reason=reason.strip())
    return ws.store.adrs.append(adr_id, edit)
