"""Differences between any two versions of a decision, of the requirements, of a score and of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from db.cases import RequirementsVersion
from db.plans import StoredPlan
from decisions.record import Adr, Status
from decisions.view import apply
from planner.differences import Difference, differences, field_in_words
from planner.errors import FliplineError, InputError, UnknownName
from planner.requirements import Requirements
from planner.scoring import Score
from services.cases import favourite_sizing
from services.scores import case_score
from services.workspace import Workspace

TODAY = "today"
_OTHERS = ("supersedes", "superseded by")  # fields that name other decisions by their id
# What an ADR is called by, what only repeats the point in time that is chosen, and hashes, which are shortened.
_NOT_COMPARED = ("id", "case", "updated_at", "snapshots")


class Version(NamedTuple):
    """A version that can be compared: `key` is what it is asked for by, `label` what it is shown as."""

    key: str
    label: str
    at: datetime | None = None
    author: str = ""

    @property
    def in_words(self) -> str:
        """Label, author and day."""
        return ", ".join(x for x in (self.label, self.author, f"{self.at:%Y-%m-%d %H:%M}" if self.at else "") if x)


class Diff(NamedTuple):
    """Two versions, the fields that differ, and what the change leaves behind, a sentence each."""

    before: Version
    after: Version
    rows: tuple[Difference, ...]
    follows: tuple[str, ...] = ()


def adr_versions(ws: Workspace, adr_id: str) -> tuple[Version, ...]:
    """The points of an ADR's history, oldest first; a draft has one, as it stands."""
    edits = ws.store.adrs.edits(adr_id)
    if not edits:
        stored = ws.store.adrs.draft(adr_id)
        return (Version("1", "draft", stored.at, stored.by),)
    return tuple(
        Version(str(n), f"{n} {e.kind.replace('_', ' ')}", e.at, e.author) for n, e in enumerate(edits, 1)
    )  # fmt: skip


def adr_diff(ws: Workspace, adr_id: str, before: str, after: str) -> Diff:
    """Two points of an ADR's history, such as "1" and "3"; raises UnknownName."""
    versions = adr_versions(ws, adr_id)
    sides = _chosen(versions, before, "edit"), _chosen(versions, after, "edit")
    a, b = (_adr_at(ws, adr_id, int(v.key)) for v in sides)
    stored = differences(_decided_on(ws, a), _decided_on(ws, b))
    return Diff(*sides, (*_named(ws, differences(a, b, without=_NOT_COMPARED)), *stored))


def adr_against(ws: Workspace, adr_id: str, older_id: str) -> Diff:
    """What an ADR says otherwise than another one, such as the one that it supersedes; both as they stand."""
    old, new = ws.store.adrs.get(older_id), ws.store.adrs.get(adr_id)
    sides = (Version(a.id, a.name, a.accepted_at, a.accepted_by) for a in (old, new))
    return Diff(*sides, differences(old.text, new.text, without=("snapshots", "supersedes")))


def requirements_versions(ws: Workspace, case: str) -> tuple[Version, ...]:
    """The versions of a case's requirements, oldest first."""
    stored = ws.store.cases.requirements(ws.store.cases.get(case).id)
    return tuple(Version(str(v.n), f"version {v.n}", v.at, v.author) for v in stored)


def requirements_diff(ws: Workspace, case: str, before: str, after: str) -> Diff:
    """Two versions of the requirements, and what the change invalidates; raises UnknownName."""
    id = ws.store.cases.get(case).id
    versions = requirements_versions(ws, id)
    sides = _chosen(versions, before, "version"), _chosen(versions, after, "version")
    stored = {str(v.n): v for v in ws.store.cases.requirements(id)}
    old, new = (stored[v.key] for v in sides)
    a, b = _requirements(old), _requirements(new)
    rows = differences(a, b)
    return Diff(*sides, rows, _invalidated(ws, old, new, a, b) if rows else ())


def score_versions(ws: Workspace, case: str) -> tuple[Version, ...]:
    """Scores that can be compared: as decided in each ADR, under each version of the requirements, and today."""
    id = ws.store.cases.get(case).id
    decided = tuple(
        Version(a.name, f"{a.name}, as decided", a.accepted_at, a.accepted_by)
        for a in ws.store.adrs.all(case=id)
        if a.snapshot("score")
    )
    return (*decided, *requirements_versions(ws, id), Version(TODAY, "today"))


def score_diff(ws: Workspace, case: str, before: str, after: str) -> Diff:
    """Two scores of a case: a version's by the catalogue of today, an ADR's by the bytes it was decided on.

    Raises UnknownName, InputError for a score that an older Flipline stored in another form.
    """
    id = ws.store.cases.get(case).id
    versions = score_versions(ws, id)
    sides = _chosen(versions, before, "score"), _chosen(versions, after, "score")
    a, b = (_facts(_score(ws, id, v.key)) for v in sides)
    return Diff(*sides, differences(a, b))


def plan_versions(ws: Workspace, case: str) -> tuple[Version, ...]:
    """The stored plans of a case, oldest first; a plan is asked for by the beginning of its hash."""
    stored = ws.store.plans.of_case(ws.store.cases.get(case).id)
    return tuple(Version(p.sha256[:12], p.sha256[:12], p.at, p.author) for p in stored)


def plan_diff(ws: Workspace, case: str, before: str, after: str) -> Diff:
    """Two stored plans: points, candidates with their commands, hypotheses, contract.

    Raises UnknownName, InputError for a plan that this Flipline no longer reads.
    """
    id = ws.store.cases.get(case).id
    versions = plan_versions(ws, id)
    sides = _chosen(versions, before, "plan"), _chosen(versions, after, "plan")
    stored = {p.sha256[:12]: p for p in ws.store.plans.of_case(id)}
    old, new = (stored[v.key] for v in sides)
    numbers = {v.sha256: f"version {v.n}" for v in ws.store.cases.requirements(id)}
    made_for = [numbers.get(p.plan().requirements_sha256) for p in (old, new)]
    rows = differences(old.plan(), new.plan(), without=("schema_version", "requirements_sha256"))
    moved = (Difference(("made for requirements",), *made_for),) if made_for[0] != made_for[1] else ()
    return Diff(*sides, (*moved, *rows), _measured_under(ws, old, new))


def newest_two(versions: Sequence[Version]) -> tuple[str, str] | None:
    """Keys of the last version and the one before it; None where there are not two."""
    return (versions[-2].key, versions[-1].key) if len(versions) > 1 else None


def _chosen(versions: Sequence[Version], key: str, what: str) -> Version:
    """The version of that key, or the only one that begins with it."""
    begins = [v for v in versions if v.key.startswith(key) and len(key) >= 4]
    found = next((v for v in versions if v.key.casefold() == key.casefold()), None)
    if found is None and len(begins) == 1:
        return begins[0]
    if found is None:
        raise UnknownName.from_known(what, key, [v.key for v in versions])
    return found


def _adr_at(ws: Workspace, adr_id: str, n: int) -> Adr:
    """An ADR after its first n edits; a draft as it stands."""
    view: Adr | None = None
    for edit in ws.store.adrs.edits(adr_id)[:n]:
        view = apply(view, edit)
    return view or ws.store.adrs.get(adr_id)


def _named(ws: Workspace, rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """The same with other decisions by their name instead of their id."""
    names = {a.id: a.name for a in ws.store.adrs.all()} if any(r.path[0] in _OTHERS for r in rows) else {}

    def said(text: str | None) -> str | None:
        return text and "\n".join(names.get(line, line) for line in text.splitlines())

    return tuple(
        r._replace(before=said(r.before), after=said(r.after)) if r.path[0] in _OTHERS else r for r in rows
    )  # fmt: skip


def _decided_on(ws: Workspace, adr: Adr) -> dict[str, dict[str, str]]:
    """What an ADR was decided on, called as everywhere: a plan by its hash, not by that of its bytes."""
    names = {v.sha256: f"version {v.n}" for v in ws.store.cases.requirements(adr.case)}
    names |= {p.body_sha256: p.sha256[:12] for p in ws.store.plans.of_case(adr.case)}
    return {"decided on": {s.kind.replace("_", " "): names.get(s.sha256, s.sha256[:12]) for s in adr.snapshots}}


def _requirements(version: RequirementsVersion) -> Requirements:
    try:
        return version.requirements()
    except ValidationError:
        raise InputError("was stored by a Flipline that this one cannot read.", where=f"version {version.n}") from None


def _invalidated(
    ws: Workspace, old: RequirementsVersion, new: RequirementsVersion, a: Requirements, b: Requirements
) -> tuple[str, ...]:
    """What was made for one version of the requirements and does not stand under the other."""
    found = [_plan_sentence(ws, old, new), _stays(ws, "Requests that fit at once", a, b, _room)]
    found.append(_stays(ws, "The score", a, b, lambda w, r: case_score(w, r).sentence.rstrip(".")))
    found += [
        f"{adr.name} was decided on version {old.n}."
        for adr in ws.store.adrs.all(case=old.case, status=Status.ACCEPTED)
        if adr.snapshot("requirements") == old.sha256
    ]
    return tuple(s for s in found if s)


def _plan_sentence(ws: Workspace, old: RequirementsVersion, new: RequirementsVersion) -> str:
    plans = ws.store.plans.of_case(old.case)
    try:
        made_for = plans[-1].plan().requirements_sha256 if plans else None
    except FliplineError:  # the PoC plan page says that it is no longer read
        return ""
    if made_for != old.sha256:
        return ""
    return (
        f"The plan {plans[-1].sha256[:12]} was made for version {old.n}: under version {new.n} its hypotheses and "
        "launch commands may not fit."
    )


def _stays(
    ws: Workspace, what: str, a: Requirements, b: Requirements, of: Callable[[Workspace, Requirements], str]
) -> str:
    """How something computed changes between two versions, or that it stays; empty where it cannot be computed."""
    try:
        before, after = of(ws, a), of(ws, b)
    except FliplineError as e:
        return f"{what} cannot be computed: {e}"
    return f"{what} stays: {after}." if before == after else f"{what} changes: {before} → {after}."


def _room(ws: Workspace, r: Requirements) -> str:
    return str(favourite_sizing(ws, r).requests_that_fit)


def _measured_under(ws: Workspace, old: StoredPlan, new: StoredPlan) -> tuple[str, ...]:
    """Runs that were measured under the older plan: they stay evidence as far as contracts and loads agree."""
    runs = [r for r in ws.store.runs.of_case(old.case) if r.plan_sha256 == old.sha256 != new.sha256]
    said = f"{len(runs)} runs were measured under {old.sha256[:12]}: they count as far as contract and load agree."
    return (said,) if runs else ()


def _score(ws: Workspace, case: str, key: str) -> Score:
    versions = {str(v.n): v for v in ws.store.cases.requirements(case)}
    if key == TODAY:
        if not versions:
            raise InputError("there are no requirements to score by.", where="score")
        return case_score(ws, _requirements(list(versions.values())[-1]))
    if key in versions:
        return case_score(ws, _requirements(versions[key]))
    adr = next(a for a in ws.store.adrs.all(case=case) if a.name == key)
    try:
        return Score.model_validate_json(ws.store.snapshots.get(adr.snapshot("score") or ""))
    except ValidationError:
        raise InputError("its score was stored by a Flipline that this one cannot read.", where=key) from None


def _facts(s: Score) -> dict[str, object]:
    """A score as what people compare: who leads, gates, weights, what each criterion adds, and what would flip it."""
    names = {c.engine: c.engine_name for c in s.candidates}
    return {
        "favourite": names.get(s.favourite or "", "none"),
        "near ties": ", ".join(names[e] for e in s.near_ties),
        "ranking": {c.engine_name: f"{n}. with {100 * c.score:.0f} of 100" for n, c in enumerate(s.ranking, 1)},
        "role": {c.engine_name: c.advice.role for c in s.candidates},
        "gates": {c.engine_name: {g.gate: f"{g.state}: {g.reason}" for g in c.gates} for c in s.candidates},
        "winner changes": {
            field_in_words(f.criterion): ", ".join(
                f"{side} {crossing.at:.2f}: {names.get(crossing.to, crossing.to)}"
                for side, crossing in (("below", f.below), ("above", f.above)) if crossing
            )
            for f in s.flip_weights
        },
        "weight": {field_in_words(w.criterion): f"{w.weight:.3f}" for w in s.weights},
        "contribution": {
            c.engine_name: {
                field_in_words(p.criterion): f"{100 * p.contribution:.1f} of 100, " + (
                    "rating unknown" if p.rating is None else f"rated {p.rating}"
                )
                for p in c.contributions
            }
            for c in s.candidates
        },
        "scored for": {"plan": s.plan, "gpu": s.gpu, "rules version": str(s.rules_version)},
    }  # fmt: skip
