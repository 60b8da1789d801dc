"""An architecture decision record (ADR) as a value: what was decided, why, by whom, and what would change it.

The written part (AdrText) is edited freely while it is a draft; from "proposed" on only decisions/edits.py changes
what is seen, by adding to it.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from decisions.flip_condition import FlipCondition
from planner.conditions import Kind
from planner.derivation import Derivation
from planner.errors import UnknownName
from planner.frozen import Frozen

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
AdrId = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{3,63}$")]


class Status(StrEnum):
    """Where a decision stands."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    DEPRECATED = "deprecated"


class Option(Frozen):
    """One way that was considered; `candidate` is the id of the plan's candidate it stands for."""

    title: str = Field(min_length=1, max_length=300)
    candidate: str | None = None
    summary: str = ""
    pros: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()


class Consequences(Frozen):
    """What follows from the decision."""

    good: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


class EvidenceRef(Frozen):
    """A figure that the decision rests on: its id, the SHA-256 of its stored bytes, and the bundle it came from."""

    id: str
    sha256: Sha256
    run: Sha256 | None = None
    kind: Kind
    says: str = ""


SnapshotKind = Literal["requirements", "score", "plan", "evidence", "contracts", "verdicts", "catalogue", "made_with"]


class SnapshotRef(Frozen):
    """The exact bytes that a decision was made on, by hash; `made_with` names schemas, facts, rules and code."""

    kind: SnapshotKind
    sha256: Sha256


class People(Frozen):
    """Who decided, who was asked, who was told."""

    decided: tuple[Name, ...] = ()
    consulted: tuple[Name, ...] = ()
    informed: tuple[Name, ...] = ()


class Section(Frozen):
    """A part of an imported file that no field takes: its heading, and its Markdown as it stood there."""

    heading: str
    markdown: str


class AdrText(Frozen):
    """The written part of an ADR. `headline` is the one sentence for people; `outcome` says why `chosen` was chosen.

    `chosen` is the title of an option ("no candidate meets this" is an option too). `evidence_absent` states why
    there is no evidence, when there is none. `sizing` are computed figures, each with its formula, inputs and known
    error as they were when the text was written: they explain the choice and are never evidence. `kept` are parts of an
    imported file that no other field takes.
    """

    title: str = Field(min_length=1, max_length=300)
    headline: str = ""
    context: str = ""
    drivers: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    chosen: str = ""
    outcome: str = ""
    consequences: Consequences = Consequences()
    confirmation: str = ""
    conditions: tuple[FlipCondition, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()
    evidence_absent: str = ""
    sizing: tuple[Derivation, ...] = ()
    snapshots: tuple[SnapshotRef, ...] = ()
    people: People = People()
    review_on: date | None = None
    tags: tuple[str, ...] = ()
    supersedes: tuple[AdrId, ...] = ()
    # Left out where there is none, so that a text without keeps its bytes.
    kept: tuple[Section, ...] = Field(default=(), exclude_if=lambda kept: not kept)

    def snapshot(self, kind: SnapshotKind) -> str | None:
        """The hash of the bytes of that kind; None where none were kept."""
        return next((s.sha256 for s in self.snapshots if s.kind == kind), None)

    @model_validator(mode="after")
    def _names_are_unique(self) -> AdrText:
        for what, names in (
            ("options carry the title", [o.title for o in self.options]),
            ("flip conditions carry the id", [c.id for c in self.conditions]),
            ("evidence references carry the id", [e.id for e in self.evidence]),
        ):
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice is not None:
                raise ValueError(f"two {what} {twice!r}.")
        return self


class Comment(Frozen):
    """What somebody said about a decision."""

    at: AwareDatetime
    author: str
    text: str


class Opinion(Frozen):
    """Whether somebody approves of a decision or objects to it, and what was answered to an objection.

    `outdated` says that the text was amended after an approval: it was of another text.
    """

    at: AwareDatetime
    author: str
    stance: Literal["approves", "objects"]
    reason: str = ""
    answer: str = ""
    answered_by: str = ""
    outdated: bool = False

    @property
    def stands_in_the_way(self) -> bool:
        """An objection that nobody answered."""
        return self.stance == "objects" and not self.answer


class Fire(Frozen):
    """A flip condition that fired and waits for a person: what was seen, and how far beyond the threshold.

    `distance` is in the metric's unit: 0 or less once fired (how far beyond).
    """

    condition: str
    at: AwareDatetime
    sentence: str
    value: float | None = None
    distance: float | None = None
    unit: str = ""
    evidence: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Adr(AdrText):
    """A decision as it stands now: the text, and what the edits made of it.

    `id` is given once from outside and never changes; `number` is given at acceptance. `fires` are unconfirmed.
    """

    id: AdrId
    case: str
    number: int | None = Field(default=None, ge=1)
    status: Status = Status.DRAFT
    accepted_by: str = ""
    accepted_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    superseded_by: str | None = None
    comments: tuple[Comment, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    fires: tuple[Fire, ...] = ()

    @property
    def text(self) -> AdrText:
        """The written part alone."""
        return AdrText(**{name: getattr(self, name) for name in AdrText.model_fields})

    @property
    def active_conditions(self) -> tuple[FlipCondition, ...]:
        """Flip conditions that were not retired."""
        return tuple(c for c in self.conditions if not c.retired)

    @property
    def waits(self) -> bool:
        """Whether a condition fired that somebody still has to answer: only of a decision in force."""
        return bool(self.fires) and self.status is Status.ACCEPTED

    def condition(self, id: str) -> FlipCondition:
        """The flip condition of that id; raises UnknownName."""
        for c in self.conditions:
            if c.id == id:
                return c
        raise UnknownName.from_known("flip condition", id, (c.id for c in self.conditions), where=self.name)

    @property
    def name(self) -> str:
        """How people call it: ADR-0007 once it has a number, else its title in quotes."""
        return f"ADR-{self.number:04d}" if self.number else f"ADR '{self.title}'"


class Deployment(Frozen):
    """What runs in production since when; version tolerance is judged against the newest one."""

    candidate: str
    since: AwareDatetime
    engine: str
    engine_version: str = ""
    image: str = ""
    flags: tuple[str, ...] = ()
    model: str = ""
    model_revision: str = ""
    hardware: str = ""
    by: Name
    note: str = ""


def draft(id: str, case: str, text: AdrText) -> Adr:
    """A new draft from its text."""
    return Adr(id=id, case=case, **{name: getattr(text, name) for name in AdrText.model_fields})
