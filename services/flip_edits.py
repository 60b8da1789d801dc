"""Flip conditions of a decision that stands: added and retired with a reason, looked at again, fired by hand."""

from __future__ import annotations

from datetime import date

from db.verdicts import Cause
from decisions.edits import ConditionAdded, ConditionFired, ConditionRetired, RecheckMoved, ReviewMoved
from decisions.flip_condition import FlipCondition
from decisions.lint import lint
from decisions.record import Adr, Fire
from planner.errors import InputError, NotAllowed
from services.recounts import counted_for
from services.rejudging import rejudge
from services.usage import newest
from services.verdicts import asked_conditions, case_state
from services.workspace import Workspace, now, signed_by


def add_condition(ws: Workspace, adr_id: str, flip: FlipCondition, author: str, reason: str) -> Adr:
    """Give a decision one more reason to re-open, and judge it at once.

    Raises NotAllowed without a reason, or for a condition that the lint finds an error in.
    """
    by = signed_by(author, "flip condition")
    _needs(reason, adr_id, "a condition that is added to a decision")
    _count_beforehand(ws, ws.store.adrs.get(adr_id).case, flip)
    with ws.store.transaction():
        edit = ConditionAdded(at=now(), author=by, reason=reason.strip(), condition=flip)
        adr = ws.store.adrs.append(adr_id, edit)
        state = case_state(ws, adr.case)
        wrong = [f for f in lint(adr, state.evidence, state.context_of(adr)) if f.condition == flip.id]
        for finding in wrong:
            if finding.severity == "error":
                raise NotAllowed(finding.sentence, where=f"{adr.name}, {finding.rule}", fix="Correct the condition.")
        rejudge(ws, adr.case, Cause(kind="decision", says=f"{by} added the condition"))
        return adr


def _count_beforehand(ws: Workspace, case: str, flip: FlipCondition) -> None:
    """Count a new limit in every bundle before the lock is taken: it can take long, and everybody else would wait."""
    state = case_state(ws, case)
    asked = (*asked_conditions(state.plan, state.adrs), *([flip.condition] if flip.condition else ()))
    levels = state.plan.service_levels if state.plan else ()
    counted_for(ws, state.runs, newest(ws.store.evidence.of_case(case)), asked, levels)


def retire_condition(ws: Workspace, adr_id: str, condition: str, author: str, reason: str) -> Adr:
    """Take a reason to re-open away; it stays readable. Raises NotAllowed without a reason."""
    by = signed_by(author, "flip condition")
    edit = ConditionRetired(at=now(), author=by, reason=reason.strip(), condition=condition)
    return ws.store.adrs.append(adr_id, edit)


def looked_at(ws: Workspace, adr_id: str, condition: str, again_on: date, author: str, reason: str) -> Adr:
    """Somebody re-checked a condition: what was found, and the day of the next look.

    Raises InputError for a day that is past, NotAllowed without a finding.
    """
    by = signed_by(author, "re-check")
    _ahead(again_on, "re-check")
    with ws.store.transaction():
        edit = RecheckMoved(at=now(), author=by, reason=reason.strip(), condition=condition, recheck_on=again_on)
        adr = ws.store.adrs.append(adr_id, edit)
        rejudge(ws, adr.case, Cause(kind="decision", says=f"{by} looked at the condition"))
        return adr


def reviewed(ws: Workspace, adr_id: str, again_on: date, author: str, reason: str) -> Adr:
    """Somebody reviewed the decision: what was found, and the day of the next review.

    Raises InputError for a day that is past, NotAllowed without a finding.
    """
    by = signed_by(author, "review")
    _ahead(again_on, "review")
    _needs(reason, adr_id, "a review")
    edit = ReviewMoved(at=now(), author=by, reason=reason.strip(), review_on=again_on)
    return ws.store.adrs.append(adr_id, edit)


def fire_by_hand(ws: Workspace, adr_id: str, condition: str, author: str, seen: str) -> Adr:
    """The owner of a statement says that it has come true; the decision waits for an answer from then on.

    Raises NotAllowed for a condition that is measured or waits already, InputError without what was seen.
    """
    by = signed_by(author, "event")
    if not seen.strip():
        raise InputError("what was seen is missing.", where=condition, fix="Write one sentence.")
    with ws.store.transaction():
        adr = ws.store.adrs.get(adr_id)
        if not adr.condition(condition).manual:
            raise NotAllowed("is measured: only evidence fires it.", where=condition, fix="Bring in the run.")
        if any(f.condition == condition for f in adr.fires):
            raise NotAllowed("has fired already and waits for an answer.", where=condition,
                             fix="Answer it, or write a comment.")  # fmt: skip
        fire = Fire(condition=condition, at=now(), sentence=f"{seen.strip()} ({by})")
        after = ws.store.adrs.append(adr_id, ConditionFired(at=now(), author=by, fire=fire))
        rejudge(ws, adr.case, Cause(kind="decision", says=f"{by} saw it happen"))
        return after


def _needs(reason: str, where: str, what: str) -> None:
    if not reason.strip():
        raise NotAllowed(f"{what} needs a reason.", where=where, fix="Write one sentence why.")


def _ahead(day: date, where: str) -> None:
    if day <= now().date():
        raise InputError(f"{day} does not lie ahead.", where=where, fix="Choose a later day.")
