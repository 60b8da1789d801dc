"""The text of a new ADR from what is known: options from the score, the seed's flip conditions, evidence so far."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from decisions.flip_condition import FlipCondition
from decisions.flips import from_template
from decisions.record import AdrText, Consequences, EvidenceRef, Option
from planner.capacity import Sizing
from planner.conditions import STANDING, Evidence, Kind, Verdict
from planner.criterion_names import criterion_name, with_names
from planner.derivation import UNKNOWN, Derivation
from planner.errors import NotAllowed
from planner.frozen import sha256_of
from planner.metrics import METRICS, quantity
from planner.scoring import Score
from services.scores import case_score
from services.verdicts import KNOWN_BY, CaseState, HypothesisVerdict, judge_hypotheses, users_served
from services.workspace import Workspace, now

REVIEW_AFTER_DAYS = 180
RECHECK_AFTER_DAYS = 90


def prefill(ws: Workspace, state: CaseState, owner: str) -> AdrText:
    """An ADR from what is known of the case: options from the score, the seed's four flip conditions, evidence so far.

    Raises NotAllowed without requirements.
    """
    r = state.requirements
    if r is None:
        raise NotAllowed("the requirements are not written yet.", where=state.case.title, fix="Write them first.")
    score = case_score(ws, r)
    verdicts = judge_hypotheses(state)
    evidence = _evidence_refs(ws, state)
    choice = _choice(score, state, verdicts)
    users = users_served(state, choice.candidate)
    plan = r.favourite_plan
    context = (
        f"{state.case.title}: {r.peak_users_min} to {r.peak_users_max} people use it at once. Each is promised "
        f"{r.user_tok_s_promise:g} tok/s (p{r.user_tok_s_percentile}) and the first token within {r.ttft_s:g} s "
        f"(p{r.ttft_percentile}, queue included). The model is {plan.model} in {plan.quantization} "
        f"({plan.label}) on {state.sizing.gpu if state.sizing else r.hardware[0].gpu}."
    )
    return AdrText(
        title=f"{choice.name} serves {state.case.title}" if choice.name else f"No engine for {state.case.title}",
        headline=users.sentence,
        context=context,
        drivers=tuple(
            f"{criterion_name(w.criterion)}: {w.why[0].split(': ', 1)[-1]}"
            for w in sorted(score.weights, key=lambda w: -w.weight)[:6] if w.why
        ),
        options=_options(score),
        chosen=choice.name,
        outcome=choice.because,
        consequences=Consequences(bad=_doubts(verdicts)),
        confirmation=_confirmation(verdicts),
        conditions=_flip_conditions(choice.candidate, owner),
        evidence=evidence,
        sizing=cited(state.sizing, r.peak_users_max) if state.sizing else (),
        evidence_absent="" if evidence else "Nothing was measured on the machine yet; the choice rests on documents.",
        review_on=(now() + timedelta(days=REVIEW_AFTER_DAYS)).date(),
        tags=("inference-server",),
    )  # fmt: skip


def cited(sizing: Sizing, users: int) -> tuple[Derivation, ...]:
    """The figures of a sizing that a decision rests on, each with its explanation; what is not known is left out."""
    keys = ("units", f"{Kind.PLANNING.value}@{users}", "first_token", "weights", "requests_that_fit", "cost")
    found = (sizing.derivations[key] for key in keys if key in sizing.derivations)
    return tuple(d for d in found if d.value != UNKNOWN)


def _options(score: Score) -> tuple[Option, ...]:
    found = []
    for c in score.candidates:
        best = sorted(c.contributions, key=lambda p: -p.contribution)[:3]
        worst = sorted((p for p in c.contributions if p.rating in (0, 1) and p.weight > 0), key=lambda p: -p.weight)[:3]
        stops = [f"{g.gate}: {g.reason}" for g in c.gates if g.state == "fail"]
        opens = [f"{g.gate} not known: {g.reason}" for g in c.gates if g.state == "unknown"]
        found.append(Option(
            title=c.engine_name, candidate=c.engine,
            summary=f"{c.advice.role}: {with_names(c.advice.reason)}" + (f" {c.advice.when}" if c.advice.when else ""),
            pros=tuple(p.statement for p in best), neutral=tuple(opens),
            cons=(*stops, *(p.statement for p in worst)),
        ))  # fmt: skip
    return tuple(found)


class Choice(NamedTuple):
    """The option that a draft proposes; empty names when nothing passes the gates."""

    name: str
    candidate: str
    because: str


def _choice(score: Score, state: CaseState, verdicts: Sequence[HypothesisVerdict]) -> Choice:
    """The score's favourite, unless a measurement on this machine found the baseline faster."""
    if score.favourite is None:
        return Choice("", "", "no engine passes the gates: change the model plan, the hardware or the requirement")
    candidates = state.plan.candidates if state.plan else ()
    favourite = next((c.id for c in candidates if c.role == "favourite"), score.favourite)
    units = f" {state.sizing.sentence}" if state.sizing else ""
    first = score.of(score.favourite).engine_name
    for v in verdicts:
        for condition, part in zip(v.hypothesis.conditions, v.parts, strict=True):
            measured = part.kind is Kind.MEASURED and part.side == "fails"
            ratio = condition.over and not condition.of.paired
            if ratio and score.baseline and measured and (part.value or 0.0) < 1:
                why = f"{first} comes first on paper; measured, it does not. {part.sentence}"
                return Choice(score.of(score.baseline).engine_name, condition.over, f"{why}{units}")
    return Choice(first, favourite, f"{score.sentence}{units}")


def _doubts(verdicts: Sequence[HypothesisVerdict]) -> tuple[str, ...]:
    failed = [f"{v.hypothesis.id} fails: {v.verdict.sentence}" for v in verdicts if v.verdict.side == "fails"]
    warned = [
        f"{v.hypothesis.id}: {v.hypothesis.warning}" for v in verdicts if v.hypothesis.warning and not v.verdict.decided
    ]
    crossed = dict.fromkeys(v.verdict.warning for v in verdicts if v.verdict.warning)
    return (*failed, *warned, *(w for w in crossed if not any(w in f for f in failed)))


def _confirmation(verdicts: Sequence[HypothesisVerdict]) -> str:
    if not verdicts:
        return "A PoC plan with typed hypotheses has still to be made."
    return "\n".join(f"{v.hypothesis.id} {v.hypothesis.statement} Today: {_today(v.verdict)}." for v in verdicts)


def _today(verdict: Verdict) -> str:
    known = f"{verdict.state.value}, {KNOWN_BY[verdict.kind]}" if verdict.kind else verdict.state.value
    return f"{known}. {verdict.warning.rstrip('.')}" if verdict.warning else known


def _flip_conditions(candidate: str, owner: str) -> tuple[FlipCondition, ...]:
    """The seed's four, for the candidate that is chosen."""
    if not candidate:
        return ()
    recheck = (now() + timedelta(days=RECHECK_AFTER_DAYS)).date()
    names = ("engine-does-not-start", "few-users", "shared-prefix-dominates", "format-not-supported")
    return tuple(from_template(n, candidate=candidate, owner=owner, recheck_on=recheck) for n in names)


def _evidence_refs(ws: Workspace, state: CaseState) -> tuple[EvidenceRef, ...]:
    """What the hypotheses were decided with, by the hash of the stored figure."""
    used = {i for v in judge_hypotheses(state) for i in v.verdict.used}
    stored = {s.evidence.id: s for s in ws.store.evidence.stored(state.case.id)}
    runs = {r.sha256[:12]: r.sha256 for r in state.runs}
    return tuple(
        _ref(e, stored[e.id].sha256 if e.id in stored else sha256_of(e.model_dump(mode="json")), runs.get(e.source))
        for e in state.evidence
        if e.id in used and e.kind in STANDING
    )


def _ref(e: Evidence, sha256: str, run: str | None) -> EvidenceRef:
    where = f" at {e.load_point}" if e.load_point else ""
    statistic = "" if e.statistic == "value" else f" {e.statistic}"
    figure = f"{METRICS[e.metric].name}{statistic}{where} = {quantity(e.value, e.unit)}"
    says = f"{e.candidate + ': ' if e.candidate else ''}{figure}"
    if e.note:
        says += f" ({e.note})"
    return EvidenceRef(id=e.id, sha256=sha256, run=run, kind=e.kind, says=says)
