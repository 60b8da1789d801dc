"""What changed since a decision was accepted: what it rested on then, held against what stands today."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pydantic import ValidationError

from decisions.record import Adr, SnapshotKind
from planner.conditions import STANDING, Kind
from planner.differences import Difference, differences
from planner.errors import FliplineError, UnknownName
from planner.frozen import sha256_of
from planner.requirements import Requirements
from planner.scoring import Score
from services.scores import case_score
from services.verdicts import CaseState, judge_adr, judge_hypotheses
from services.workspace import Workspace

LISTED = 8  # of one kind; the rest is counted


def changed_since(ws: Workspace, state: CaseState, old: Adr) -> tuple[str, ...]:
    """One sentence for each thing that is not as it was when `old` was accepted; none for a draft."""
    if old.accepted_at is None:
        return ()
    return tuple(sentence for look in _LOOKS for sentence in look(ws, state, old))


def section(ws: Workspace, state: CaseState, old: Adr) -> str:
    """The same as a section of a successor's context."""
    if old.accepted_at is None:
        return ""
    found = changed_since(ws, state, old)
    when = f"since {old.name} was accepted on {old.accepted_at:%Y-%m-%d}"
    if not found:
        return f"Nothing that it rests on changed {when}."
    return "\n".join((f"What changed {when}:", "", *(f"- {sentence}" for sentence in found)))


def _requirements(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    body = _snapshot(ws, old, "requirements")
    if body is None or state.version is None or body == state.version.body:
        return
    by = f"version {state.version.n} by {state.version.author}"
    try:
        then = Requirements.model_validate_json(body)
    except (ValidationError, FliplineError):
        yield f"Requirements: {by}; those of then can no longer be read."
        return
    yield from _listed(f"Requirements ({by})", [_told(d) for d in differences(then, state.requirements)])


def _plan(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    if state.stored_plan and old.snapshot("plan") != hashlib.sha256(state.stored_plan.body).hexdigest():
        stored = state.stored_plan
        yield f"Plan: {stored.author} stored another one on {stored.at:%Y-%m-%d}."


def _score(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    body = _snapshot(ws, old, "score")
    if body is None or state.requirements is None:
        return
    try:
        then = Score.model_validate_json(body)
    except (ValidationError, FliplineError):
        yield "Score: the one of then can no longer be read."
        return
    today = case_score(ws, state.requirements)
    yield from _listed("Score", [_told(d) for d in differences(_ranking(then), _ranking(today))])
    facts = [_told(d) for d in differences(_facts(then), _facts(today))]
    yield from _listed("Catalogue", facts or _catalogue_alone(ws, old))


def _ranking(score: Score) -> dict[str, object]:
    names = {c.engine: c.engine_name for c in score.candidates}
    return {
        "first": names.get(score.favourite or "", "none"),
        "points of 100": {c.engine_name: f"{100 * c.score:.0f}" for c in score.ranking},
    }


def _facts(score: Score) -> dict[str, object]:
    """What the catalogue said of each engine, as far as the score rests on it."""
    return {
        c.engine_name: {
            "version": c.version, "gate": {g.gate: g.state for g in c.gates},
            "rating": {p.criterion.replace("_", " "): str(p.rating) for p in c.contributions},
        }
        for c in score.candidates
    }  # fmt: skip


def _catalogue_alone(ws: Workspace, old: Adr) -> list[str]:
    body = _snapshot(ws, old, "made_with")
    then = json.loads(body).get("catalogue_sha256") if body else None
    moved = then and then != sha256_of(ws.catalog.model_dump(mode="json"))
    return ["other facts than those that the score rests on"] if moved else []


def _evidence(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    body = _snapshot(ws, old, "evidence")
    runs = [r for r in state.runs if old.accepted_at and r.imported_at > old.accepted_at]
    if runs:
        named = [f"{r.candidate} stage {r.stage} start {r.start} ({r.sha256[:12]}, {r.kind.value})" for r in runs]
        yield from _listed("Runs that came in", named)
    if body is None:
        return
    known = {e["id"] for e in json.loads(body)}
    new = [e for e in ws.store.evidence.of_case(state.case.id) if e.kind in STANDING and e.id not in known]
    counted = Counter(e.kind for e in new if e.kind is not Kind.MEASURED)
    if counted:
        yield "Figures that came in: " + ", ".join(f"{n} {kind.value}" for kind, n in sorted(counted.items())) + "."


def _verdicts(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    history = ws.store.verdicts.history(state.case.id)
    of_adr: dict[str, str] = {}
    of_plan: dict[str, str] = {}
    for j in history:
        if j.adr == old.id:
            of_adr.setdefault(j.condition, j.state)  # judged first when it was accepted
        elif j.adr is None and old.accepted_at and j.at <= old.accepted_at:
            of_plan[j.condition] = j.state
    today = [(v.condition, of_adr.get(v.condition), v.state.value) for v in judge_adr(state, old)]
    today += [
        (h.hypothesis.id, of_plan.get(h.hypothesis.id), h.verdict.state.value) for h in judge_hypotheses(state)
    ]  # fmt: skip
    moved = [f"{id}: {then} → {now}" for id, then, now in today if then is not None and then != now]
    yield from _listed("Verdicts", moved)


def _deployments(ws: Workspace, state: CaseState, old: Adr) -> Iterator[str]:
    went = [d for d in state.deployments if old.accepted_at and d.since.date() >= old.accepted_at.date()]
    named = [f"{d.candidate} {d.engine_version} since {d.since:%Y-%m-%d}" for d in went]
    yield from _listed("Production", named)


_LOOKS: tuple[Callable[[Workspace, CaseState, Adr], Iterator[str]], ...] = (
    _requirements, _evidence, _verdicts, _score, _plan, _deployments,
)  # fmt: skip


def _snapshot(ws: Workspace, adr: Adr, kind: SnapshotKind) -> bytes | None:
    """The bytes of then; None where none were kept, or did not come with a decision that was imported."""
    sha256 = adr.snapshot(kind)
    try:
        return ws.store.snapshots.get(sha256) if sha256 else None
    except UnknownName:
        return None


def _told(d: Difference) -> str:
    return f"{d.where}: {d.before or 'not there'} → {d.after or 'not there'}"


def _listed(what: str, found: Sequence[str]) -> Iterator[str]:
    if found:
        more = f"; and {len(found) - LISTED} more" if len(found) > LISTED else ""
        yield f"{what}: {'; '.join(found[:LISTED])}{more}."
