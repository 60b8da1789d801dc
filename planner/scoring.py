"""The explained score: engine x model plan x hardware against weighted criteria on fixed anchors.

score = sum of weight x rating / 3. A rating stands against fixed anchors (0 none, 1 limited, 2 good, 3 excellent) and
never against the other candidates, so adding or removing one cannot reverse two others. An unknown rating counts as the
middle of the scale, neither for nor against, and lowers the confidence by its weight. The score narrows the field; only
a measurement names a winner.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal

from planner.conditions import Evidence, Kind
from planner.engine_schema import Confidence, Engine, EvidenceKind
from planner.errors import InputError
from planner.frozen import Frozen, sha256_of
from planner.gates import LICENCES_ALLOWED, Gate, RunForm, format_gate, gates, run_form
from planner.ratings import engine_ratings, rated
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.roles import Advice, advise, failed
from planner.sensitivity import (
    TOP_RATING,
    FlipWeight,
    RatingFlip,
    flip_weights,
    level,
    near_tie_margin,
    rating_flips,
    total,
    winner,
)
from planner.weighting import RULES_VERSION, Weight, weights

Basis = EvidenceKind | Literal["unknown"]
Sureness = Confidence | Literal["unknown"]


class Contribution(Frozen):
    """What one criterion adds to one candidate's score, and what the rating rests on; rating None is unknown."""

    criterion: str
    weight: float
    rating: int | None
    contribution: float
    statement: str
    reason: str
    evidence_kind: EvidenceKind
    confidence: Confidence
    versions: str
    read_on: date
    source: tuple[str, ...]

    @property
    def basis(self) -> Basis:
        """The kind of evidence, or that there is none."""
        return "unknown" if self.rating is None else self.evidence_kind

    @property
    def sureness(self) -> Sureness:
        """The confidence in the rating, or that nobody knows it."""
        return "unknown" if self.rating is None else self.confidence


class ScoredCandidate(Frozen):
    """Engine x model plan x hardware with gates, score from 0 to 1, its parts, and its role.

    `by_evidence` is the share of the score per kind of evidence; `unmeasured_share` all but the measured.
    `by_confidence` is the share of the weights whose rating is known with that confidence, or unknown.
    """

    id: str
    engine: str
    engine_name: str
    version: str
    plan: str
    gpu: str
    form: RunForm | None
    gates: tuple[Gate, ...]
    score: float
    contributions: tuple[Contribution, ...]
    by_evidence: dict[Basis, float]
    by_confidence: dict[Sureness, float]
    unmeasured_share: float
    advice: Advice

    @property
    def ranked(self) -> bool:
        """Whether no gate stops it."""
        return not failed(self.gates)

    @property
    def confidence(self) -> float:
        """Share of the weights whose rating is held with high confidence; an unknown rating has none."""
        return self.by_confidence.get("high", 0.0)

    @property
    def confidence_sentence(self) -> str:
        """On what the score rests, in one sentence."""
        parts = sorted(self.by_evidence.items(), key=lambda item: -item[1])
        named = ", ".join(f"{share:.0%} {kind}" for kind, share in parts)
        unknown = self.by_confidence.get("unknown", 0.0)
        nobody = f"; {unknown:.0%} of the weights fall on ratings that nobody knows" if unknown else ""
        return (
            f"{self.unmeasured_share:.0%} of this score rests on claims that nobody measured here ({named}); "
            f"{self.confidence:.0%} of the weights fall on ratings of high confidence{nobody}."
        )


class OpenGate(Frozen):
    """A gate that only a test can settle, and the hypothesis that does it."""

    candidate: str
    engine: str
    gate: Gate


class Score(Frozen):
    """The whole comparison for one model plan on one kind of hardware; candidates with the ranked ones first."""

    rules_version: int
    plan: str
    gpu: str
    weights: tuple[Weight, ...]
    candidates: tuple[ScoredCandidate, ...]
    favourite: str | None
    near_tie_margin: float
    near_ties: tuple[str, ...]
    flip_weights: tuple[FlipWeight, ...]
    rating_flips: tuple[RatingFlip, ...]
    first_hypotheses: tuple[OpenGate, ...]

    @property
    def ranking(self) -> tuple[ScoredCandidate, ...]:
        """Candidates that no gate stops, best first."""
        return tuple(c for c in self.candidates if c.ranked)

    @property
    def baseline(self) -> str | None:
        """The engine that a gain is stated against."""
        return next((c.engine for c in self.candidates if c.advice.role == "baseline"), None)

    def of(self, engine: str) -> ScoredCandidate:
        """The candidate of one engine. Raises InputError when it was not scored."""
        for c in self.candidates:
            if c.engine == engine:
                return c
        raise InputError(f"{engine!r} was not scored.", fix=f"Scored: {', '.join(c.engine for c in self.candidates)}.")

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if self.favourite is None:
            return "No engine passes the gates: change the model plan, the hardware or the requirement."
        first = self.of(self.favourite)
        names = " and ".join(self.of(e).engine_name for e in self.near_ties)
        tie = f", in a near tie with {names}" if names else ""
        points = f"{100 * first.score:.0f} of 100"
        return f"{first.engine_name} comes first with {points}{tie}; only a measurement names a winner."


def score(
    requirements: Requirements,
    engines: Mapping[str, Engine],
    *,
    compute_capability: str | None,
    adjust: Mapping[str, float] | None = None,
    licences: tuple[str, ...] = LICENCES_ALLOWED,
) -> Score:
    """Score every engine for the favourite model plan on the first hardware.

    `compute_capability` is the GPU's, as in "9.0", None when unknown; `adjust` replaces points of criteria. Raises
    UnknownName for an unknown criterion or current engine, InputError for weights that cannot be.
    """
    plan, hardware = requirements.favourite_plan, requirements.hardware[0]
    ws = weights(requirements, adjust)
    shares = {w.criterion: w.weight for w in ws}
    passed = {
        id: gates(e, requirements, plan, hardware, compute_capability, licences) for id, e in engines.items()
    }  # fmt: skip
    advice = {a.engine: a for a in advise(requirements, engines, passed, adjust, ws)}
    found = [_candidate(e, plan, hardware, passed[id], ws, advice[id]) for id, e in engines.items()]
    found.sort(key=lambda c: (not c.ranked, -round(c.score, 12), c.engine))
    ranked = engine_ratings({id: e for id, e in engines.items() if not failed(passed[id])})
    best, margin = winner(ranked, shares), near_tie_margin(shares)
    top = total(ranked[best], shares) if best else 0.0
    return Score(
        rules_version=RULES_VERSION, plan=plan.id, gpu=hardware.gpu, weights=ws, candidates=tuple(found),
        favourite=best, near_tie_margin=margin,
        near_ties=tuple(c.engine for c in found if c.ranked and c.engine != best and top - c.score < margin),
        flip_weights=flip_weights(ranked, shares), rating_flips=rating_flips(ranked, shares),
        first_hypotheses=tuple(
            OpenGate(candidate=c.id, engine=c.engine, gate=g) for c in found if c.ranked for g in c.gates
            if g.state == "unknown"
        ),
    )  # fmt: skip


def _candidate(
    engine: Engine,
    plan: ModelPlan,
    hardware: Hardware,
    passed: tuple[Gate, ...],
    ws: tuple[Weight, ...],
    advice: Advice,
) -> ScoredCandidate:
    parts = []
    for w in ws:
        axis = rated(engine, w.criterion)
        parts.append(Contribution(
            criterion=w.criterion, weight=w.weight, rating=axis.rating,
            contribution=w.weight * level(axis.rating) / TOP_RATING,
            statement=axis.statement, reason=axis.reason, evidence_kind=axis.evidence_kind, confidence=axis.confidence,
            versions=axis.versions, read_on=axis.read_on, source=axis.source,
        ))  # fmt: skip
    value = sum(p.contribution for p in parts)
    by_evidence: dict[Basis, float] = {}
    by_confidence: dict[Sureness, float] = {}
    for p in parts:
        if p.contribution > 0:
            by_evidence[p.basis] = by_evidence.get(p.basis, 0.0) + p.contribution / value
        if p.weight > 0:
            by_confidence[p.sureness] = by_confidence.get(p.sureness, 0.0) + p.weight
    return ScoredCandidate(
        id=candidate_id(engine.id, plan.id, hardware.gpu), engine=engine.id, engine_name=engine.name,
        version=engine.version, plan=plan.id, gpu=hardware.gpu, form=run_form(engine, plan), gates=passed, score=value,
        contributions=tuple(parts), by_evidence=by_evidence, by_confidence=by_confidence,
        unmeasured_share=sum(share for kind, share in by_evidence.items() if kind != "measured"), advice=advice,
    )  # fmt: skip


def candidate_id(engine: str, plan: str, gpu: str) -> str:
    """Engine, model plan and GPU as one name that plan files accept: vllm.b.nvidia-gb10-dgx-spark."""
    return ".".join(part.lower().replace("_", "-") for part in (engine, plan, gpu))[:60]


def pugh(scored: Score, against: str) -> dict[str, dict[str, int | None]]:
    """Per engine and weighted criterion: 1 better, 0 same, -1 worse than the engine `against`, None where not known.

    Raises InputError for an engine that was not scored.
    """
    datum = {p.criterion: p.rating for p in scored.of(against).contributions}
    return {
        c.engine: {p.criterion: _better(p.rating, datum[p.criterion]) for p in c.contributions if p.weight > 0}
        for c in scored.candidates
    }


def _better(rating: int | None, datum: int | None) -> int | None:
    return None if rating is None or datum is None else (rating > datum) - (rating < datum)


def static_evidence(
    engines: Mapping[str, Engine],
    plan: ModelPlan,
    hardware: Hardware,
    compute_capability: str | None,
    *,
    at: datetime,
    candidates: Mapping[str, str] | None = None,
) -> list[Evidence]:
    """`maintained` and `format_supported` as documented evidence at a time.

    `candidates` maps candidate ids to engine ids (default: engine ids stand for themselves). A format that is not known
    to work on this GPU gives no evidence: it stays unmeasured.
    """
    found = []
    for candidate, engine_id in (candidates or {id: id for id in engines}).items():
        engine = engines[engine_id]
        active = engine.maintenance.status == "active"
        found.append(_fact(candidate, "maintained", active, at, engine.maintenance.sources, engine.maintenance.note))
        gate = format_gate(engine, plan, hardware, compute_capability)
        if gate.state != "unknown":
            found.append(_fact(candidate, "format_supported", gate.state == "pass", at, gate.sources, gate.reason))
    return found


def _fact(
    candidate: str, metric: str, value: bool, at: datetime, sources: tuple[str, ...], note: str
) -> Evidence:  # fmt: skip
    told = sha256_of([value, sources, note])[:12]  # the same fact is the same evidence on every day
    return Evidence(
        id=f"fact.{candidate}.{metric}.{told}", metric=metric, value=float(value), unit="bool",
        kind=Kind.DOCUMENTED, source="; ".join(sources), at=at, candidate=candidate, note=note,
    )  # fmt: skip
