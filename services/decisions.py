"""Decisions: a draft prefilled from the case, acceptance by a named person, what fires, and what supersedes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bundle.manifest import BUNDLE_SCHEMA
from db.adrs import Draft
from db.ids import new_id
from db.migrations import MIGRATIONS
from db.verdicts import Cause
from decisions.edits import Amended, Commented, FireConfirmed, Rejected
from decisions.flip_condition import FlipCondition
from decisions.flips import FlipState, FlipVerdict, judge_flip
from decisions.lint import Check, Finding, definition_of_done, lint
from decisions.merge import Merged, Side, merge
from decisions.record import Adr, AdrText, SnapshotKind, Status, draft
from planner.catalog_rows import CATALOG_SCHEMA
from planner.conditions import STANDING, Evidence, Kind
from planner.errors import InputError, NotAllowed
from planner.frozen import canonical_json, sha256_of
from planner.plan_file import PLAN_SCHEMA
from planner.weighting import RULES_VERSION
from services.prefill import prefill
from services.recounts import counted_for
from services.rejudging import rejudge
from services.replay import verdicts_as_given
from services.scores import case_score
from services.since import section
from services.verdicts import CaseState, case_state, judge_adr
from services.workspace import VERSION, Workspace, now, signed_by

_AGAIN = "Revisit: "


def begin_draft(ws: Workspace, name: str, author: str, supersedes: str | None = None) -> Draft:
    """Begin a draft for a case, prefilled; with `supersedes` it replaces an accepted ADR once it is accepted itself.

    Raises NotAllowed when that ADR is not in force, belongs to another case, or has a successor under way.
    """
    by = signed_by(author, "draft")
    with ws.store.transaction():
        state = case_state(ws, name)
        text = prefill(ws, state, by)
        if supersedes:
            old = ws.store.adrs.get(supersedes)
            _may_be_superseded(state, old)
            text = _revisiting(text, old, judge_adr(state, old), section(ws, state, old))
        at = now()
        return ws.store.adrs.add_draft(draft(new_id(at), state.case.id, text), at=at, by=by)


def successor_of(state: CaseState, adr: Adr) -> Adr | None:
    """The draft or proposal that would supersede an ADR."""
    open_ones = (a for a in state.adrs if a.status in (Status.DRAFT, Status.PROPOSED))
    return next((a for a in open_ones if adr.id in a.supersedes), None)


def _may_be_superseded(state: CaseState, old: Adr) -> None:
    if old.case != state.case.id:
        raise NotAllowed("belongs to another case.", where=old.name, fix="Begin the draft there.")
    if old.status not in (Status.ACCEPTED, Status.DEPRECATED):
        raise NotAllowed(f"is {old.status} and cannot be superseded.", where=old.name,
                         fix="Only what is in force is superseded: edit this draft, or begin another.")  # fmt: skip
    under_way = successor_of(state, old)
    if under_way:
        kind, fix = ("draft", "Go on with that one.") if under_way.status is Status.DRAFT else (
            "proposal", "Accept or reject that one first.")  # fmt: skip
        raise NotAllowed(f"a {kind} that would supersede it is under way: {under_way.title}.", where=old.name, fix=fix)


def _revisiting(text: AdrText, old: Adr, judged: Sequence[FlipVerdict], since: str) -> AdrText:
    """The text of a successor: why it is opened, what changed, and the old conditions, those that fired retired."""
    fired = {v.condition for v in judged if v.state is FlipState.FIRED} | {f.condition for f in old.fires}
    kept = tuple(c.model_copy(update={"retired": True}) if c.id in fired else c for c in old.active_conditions)
    why = [f"{old.name} is re-opened.", *(f.sentence for f in old.fires)]
    if fired:
        names = ", ".join(c.id for c in kept if c.retired)
        why.append(f"What fired is carried over as retired, since it would fire again at once: {names}. Arm it again "
                   "with another limit if it should count for this decision too.")  # fmt: skip
    context = "\n\n".join(x for x in (" ".join(why), since, text.context) if x)
    return text.model_copy(update={
        "supersedes": (old.id,), "context": context, "conditions": kept,
        "title": f"{_AGAIN}{old.title.removeprefix(_AGAIN)}"[:300],
    })  # fmt: skip


def save_draft(ws: Workspace, adr: Adr, version: int, author: str) -> Draft:
    """Save a draft; raises ConflictError when somebody saved after `version` was opened."""
    return ws.store.adrs.save_draft(adr, version=version, at=now(), by=signed_by(author, "draft"))


def propose_draft(ws: Workspace, adr_id: str, version: int, author: str) -> Adr:
    """Put a draft forward; from here on its record only grows."""
    return ws.store.adrs.propose(adr_id, version=version, at=now(), author=signed_by(author, "proposal"))


class Opened(NamedTuple):
    """An ADR as it was opened for editing: `version` goes back in with the save."""

    adr: Adr
    version: int


def open_adr(ws: Workspace, adr_id: str) -> Opened:
    """Open a draft or a proposal; the version counts saves of a draft, edits of a proposal."""
    version = len(ws.store.adrs.entries(adr_id))  # first: what is added after it is then found at the save
    adr = ws.store.adrs.get(adr_id)
    if adr.status is Status.DRAFT:
        stored = ws.store.adrs.draft(adr_id)
        return Opened(stored.adr, stored.version)
    return Opened(adr, version)


def save(ws: Workspace, opened: Opened, text: AdrText, author: str) -> Opened:
    """Save the text of a draft, or amend a proposal.

    Raises ConflictError when somebody saved after it was opened; nothing is stored then.
    """
    adr, version = opened
    if adr.status is Status.DRAFT:
        stored = save_draft(ws, draft(adr.id, adr.case, text), version, author)
        return Opened(stored.adr, stored.version)
    if text == adr.text:
        return opened
    ws.store.adrs.append(adr.id, Amended(at=now(), author=signed_by(author, "proposal"), text=text), seen=version)
    return open_adr(ws, adr.id)


class Merging(NamedTuple):
    """Both people's changes: `stored` is what the other one saved, `by` whom, and goes back in with the save."""

    stored: Opened
    by: str
    merged: Merged


def merge_with_stored(
    ws: Workspace, opened: Opened, mine: AdrText, choices: Mapping[str, Side] | None = None
) -> Merging:  # fmt: skip
    """What I typed since I opened it, joined with what was saved meanwhile; nothing is stored."""
    stored = open_adr(ws, opened.adr.id)
    merged = merge(opened.adr.text, mine, stored.adr.text, choices)
    if stored.adr.status is Status.DRAFT:
        return Merging(stored, ws.store.adrs.draft(stored.adr.id).by, merged)
    return Merging(stored, ws.store.adrs.edits(stored.adr.id)[-1].author, merged)


def preview(ws: Workspace, state: CaseState, adr: Adr, flip: FlipCondition) -> FlipVerdict:
    """What today's evidence says about a flip condition that is not in the ADR yet."""
    asked = (flip.condition,) if flip.condition else ()
    evidence = counted_for(ws, state.runs, state.evidence, asked).evidence
    return judge_flip(flip, adr, evidence, state.context_of(adr))


def checklist(ws: Workspace, adr: Adr) -> tuple[Check, ...]:
    """The definition of done, today."""
    state = case_state(ws, adr.case)
    return definition_of_done(adr, state.evidence, state.context_of(adr))


def findings(ws: Workspace, adr: Adr) -> tuple[Finding, ...]:
    """What is wrong with the flip conditions, today."""
    state = case_state(ws, adr.case)
    return lint(adr, state.evidence, state.context_of(adr))


def accept(ws: Workspace, adr_id: str, author: str, seen: int | None = None, reason: str = "") -> Adr:
    """Accept a proposed ADR with all that it was decided on.

    Raises NotAllowed while the definition of done is not met, ConflictError when somebody else accepted it.
    """
    by = signed_by(author, "acceptance")
    with ws.store.transaction():
        adr = ws.store.adrs.get(adr_id)
        state = case_state(ws, adr.case)
        if adr.status is Status.PROPOSED:
            done = definition_of_done(adr, state.evidence, state.context_of(adr))
            open_checks = [c.sentence for c in done if not c.done]
            if open_checks:
                raise NotAllowed(f"not everything is done: {open_checks[0]}", where=adr.name,
                                 fix="Complete the checklist first.")  # fmt: skip
        accepted = ws.store.adrs.accept(
            adr_id, at=now(), author=by, reason=reason, seen=seen, snapshots=_decided_on(ws, state, adr)
        )
        rejudge(ws, adr.case, Cause(kind="decision", says=f"{by} accepted the decision"))
        return accepted


def _decided_on(ws: Workspace, state: CaseState, adr: Adr) -> dict[SnapshotKind, bytes]:
    """The exact bytes that a decision rests on, and what they were made with."""
    snapshots: dict[SnapshotKind, bytes] = {}
    if state.version:
        snapshots["requirements"] = state.version.body
    if state.requirements:
        score = case_score(ws, state.requirements)
        snapshots["score"] = canonical_json(score.model_dump(mode="json")).encode()
    if state.stored_plan:
        snapshots["plan"] = state.stored_plan.body
    stored = ws.store.evidence.stored(state.case.id, kinds=STANDING)
    then = {s.evidence.id: s.evidence for s in stored}
    judged_by = (*STANDING, Kind.DOCUMENTED)
    not_stored = [e for e in state.evidence if e.kind in judged_by and then.get(e.id) != e]  # read last, so they count
    bodies = [*(s.body for s in stored), *(canonical_json(e.model_dump(mode="json")) for e in not_stored)]
    snapshots["evidence"] = f"[{','.join(bodies)}]".encode()
    snapshots["contracts"] = _contracts(state, *(s.evidence for s in stored), *not_stored)
    snapshots["verdicts"] = canonical_json(verdicts_as_given(state, adr)).encode()
    snapshots["catalogue"] = canonical_json(ws.catalog.model_dump(mode="json")).encode()
    made_with = {
        "schemas": {
            "database": MIGRATIONS[-1].__name__, "plan": PLAN_SCHEMA, "bundle": BUNDLE_SCHEMA,
            "catalogue": CATALOG_SCHEMA,
        },
        "catalogue_sha256": sha256_of(ws.catalog.model_dump(mode="json")),
        "rules_version": RULES_VERSION,
        "code_version": VERSION,
    }  # fmt: skip
    snapshots["made_with"] = canonical_json(made_with).encode()
    return snapshots


def _contracts(state: CaseState, *evidence: Evidence) -> bytes:
    """The contracts that figures were taken under, by hash."""
    known = state.context.contracts
    named = sorted({e.contract for e in evidence if e.contract in known})
    return canonical_json({key: known[key].model_dump(mode="json") for key in named}).encode()


def reject(ws: Workspace, adr_id: str, author: str, reason: str) -> Adr:
    """Reject a proposed ADR with a reason."""
    return ws.store.adrs.append(adr_id, Rejected(at=now(), author=signed_by(author, "rejection"), reason=reason))


def comment(ws: Workspace, adr_id: str, author: str, text: str) -> Adr:
    """Add a comment to a record; raises InputError for an empty one."""
    if not text.strip():
        raise InputError("is empty.", where="comment", fix="Write what you want to say.")
    return ws.store.adrs.append(adr_id, Commented(at=now(), author=signed_by(author, "comment"), text=text))


def answer_fire(ws: Workspace, adr_id: str, condition: str, author: str, reason: str, *, reopen: bool) -> Adr | None:
    """A person answers a fired condition: it stands (with a reason), or the superseding draft begins at once.

    Returns that draft; one that is under way already is the answer to a second condition too.
    """
    by = signed_by(author, "answer")
    with ws.store.transaction():
        adr = ws.store.adrs.get(adr_id)
        successor = None
        if reopen:
            under_way = successor_of(case_state(ws, adr.case), adr)
            successor = under_way or begin_draft(ws, adr.case, by, supersedes=adr_id).adr
        edit = FireConfirmed(
            at=now(),
            author=by,
            reason=reason,
            condition=condition,
            answer="reopen" if reopen else "stands",
            successor=successor.id if successor else None,
        )
        ws.store.adrs.append(adr_id, edit)
        return successor


def flips(ws: Workspace, adr: Adr) -> tuple[FlipVerdict, ...]:
    """Every flip condition of an ADR, today."""
    return judge_adr(case_state(ws, adr.case), adr)
