"""Decisions: a draft prefilled from the case, acceptance by a named person, what fires, and what supersedes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from db.adrs import Draft
from db.ids import new_id
from decisions.edits import Amended, Commented, FireConfirmed, Rejected
from decisions.flips import FlipVerdict, judge_flip
from decisions.lint import Check, Finding, definition_of_done, lint
from decisions.markdown import file_name, to_markdown
from decisions.record import (
    Adr,
    AdrText,
    FlipCondition,
    Status,
    draft,
)
from planner.conditions import STANDING
from planner.errors import InputError, NotAllowed
from planner.frozen import canonical_json
from services.evidence import counted_for
from services.prefill import prefill
from services.scores import case_score
from services.verdicts import (
    CaseState,
    case_state,
    judge_adr,
    rejudge,
)
from services.workspace import Workspace, now


def begin_draft(ws: Workspace, name: str, author: str, supersedes: str | None = None) -> Draft:
    """Begin a draft for a case, prefilled; with `supersedes` it replaces an accepted ADR once it is accepted itself."""
    state = case_state(ws, name)
    text = prefill(ws, state, author)
    if supersedes:
        old = ws.store.adrs.get(supersedes)
        fired = "; ".join(f.sentence for f in old.fires)
        since = f"{old.name} is re-opened. {fired}".strip()
        text = text.model_copy(update={
            "supersedes": (supersedes,), "context": f"{since}\n\n{text.context}", "conditions": old.active_conditions,
            "title": f"Revisit: {old.title}",
        })  # fmt: skip
    at = now()
    return ws.store.adrs.add_draft(draft(new_id(at), state.case.id, text), at=at, by=author)


def save_draft(ws: Workspace, adr: Adr, version: int, author: str) -> Draft:
    """Save a draft; raises ConflictError when somebody saved after `version` was opened."""
    return ws.store.adrs.save_draft(adr, version=version, at=now(), by=author)


def propose_draft(ws: Workspace, adr_id: str, version: int, author: str) -> Adr:
    """Put a draft forward; from here on its record only grows."""
    return ws.store.adrs.propose(adr_id, version=version, at=now(), author=author)


class Opened(NamedTuple):
    """An ADR as it was opened for editing: `version` goes back in with the save."""

    adr: Adr
    version: int


def open_adr(ws: Workspace, adr_id: str) -> Opened:
    """Open a draft or a proposal; the version counts saves of a draft, edits of a proposal."""
    adr = ws.store.adrs.get(adr_id)
    if adr.status is Status.DRAFT:
        stored = ws.store.adrs.draft(adr_id)
        return Opened(stored.adr, stored.version)
    return Opened(adr, len(ws.store.adrs.entries(adr_id)))


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
    ws.store.adrs.append(adr.id, Amended(at=now(), author=author, text=text), seen=version)
    return open_adr(ws, adr.id)


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
    adr = ws.store.adrs.get(adr_id)
    open_checks = [c.sentence for c in checklist(ws, adr) if not c.done] if adr.status is Status.PROPOSED else []
    if open_checks:
        raise NotAllowed(
            f"not everything is done: {open_checks[0]}", where=adr.name, fix="Complete the checklist first."
        )
    state = case_state(ws, adr.case)
    snapshots: dict[str, bytes] = {}
    if state.version:
        snapshots["requirements"] = state.version.body
    if state.requirements:
        score = case_score(ws, state.requirements)
        snapshots["score"] = canonical_json(score.model_dump(mode="json")).encode()
    if state.stored_plan:
        snapshots["plan"] = state.stored_plan.body
    known = [e.model_dump(mode="json") for e in state.evidence if e.kind in STANDING]
    snapshots["evidence"] = canonical_json(known).encode()
    accepted = ws.store.adrs.accept(
        adr_id, at=now(), author=author, reason=reason, seen=seen,
        snapshots=snapshots,  # type: ignore[arg-type]
    )  # fmt: skip
    rejudge(ws, adr.case)
    return accepted


def reject(ws: Workspace, adr_id: str, author: str, reason: str) -> Adr:
    """Reject a proposed ADR with a reason."""
    return ws.store.adrs.append(adr_id, Rejected(at=now(), author=author, reason=reason))


def comment(ws: Workspace, adr_id: str, author: str, text: str) -> Adr:
    """Add a comment to a record; raises InputError for an empty one."""
    if not text.strip():
        raise InputError("is empty.", where="comment", fix="Write what you want to say.")
    return ws.store.adrs.append(adr_id, Commented(at=now(), author=author, text=text))


def answer_fire(ws: Workspace, adr_id: str, condition: str, author: str, reason: str, *, reopen: bool) -> Draft | None:
    """A person answers a fired condition: it stands (with a reason), or the superseding draft begins at once."""
    with ws.store.transaction():
        adr = ws.store.adrs.get(adr_id)
        successor = begin_draft(ws, adr.case, author, supersedes=adr_id) if reopen else None
        edit = FireConfirmed(
            at=now(),
            author=author,
            reason=reason,
            condition=condition,
            answer="reopen" if reopen else "stands",
            successor=successor.adr.id if successor else None,
        )
        ws.store.adrs.append(adr_id, edit)
        return successor


def export_markdown(ws: Workspace, adr_id: str) -> tuple[str, str]:
    """File name and MADR 4 text of one ADR."""
    adr = ws.store.adrs.get(adr_id)
    state = case_state(ws, adr.case)
    related = {a.id: a for a in ws.store.adrs.all() if a.id in (*adr.supersedes, adr.superseded_by)}
    return file_name(adr), to_markdown(adr, judge_adr(state, adr), head=ws.store.adrs.head(adr_id), related=related)


def export_all(ws: Workspace, folder: Path, case: str | None = None) -> tuple[Path, ...]:
    """Write every ADR with a number into a folder.

    Raises NotAllowed when a file there was edited by hand: nothing is written then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [a for a in ws.store.adrs.all(case=case) if a.number]
    written = [(folder / name, text) for a in chosen for name, text in [export_markdown(ws, a.id)]]
    for path, _ in written:
        if path.exists() and "head:" not in path.read_text(encoding="utf-8"):
            raise NotAllowed("exists and was not written by Flipline.", where=str(path), fix="Move it away first.")
    for path, text in written:
        path.write_text(text, encoding="utf-8")
    return tuple(path for path, _ in written)


def flips(ws: Workspace, adr: Adr) -> tuple[FlipVerdict, ...]:
    """Every flip condition of an ADR, today."""
    return judge_adr(case_state(ws, adr.case), adr)
