"""Everything that is known about a case, and what it says: hypotheses, service levels, flip conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from db.cases import Case, RequirementsVersion
from db.plans import StoredPlan
from db.runs import Run
from decisions.flips import FlipVerdict, judge_flips
from decisions.record import Adr, Deployment, Status
from planner.capacity import Sizing
from planner.conditions import Condition, Context, Evidence, Kind, State, Verdict
from planner.errors import FliplineError
from planner.evaluate import combine, evaluate
from planner.hypothesis_case import ADDED_POINTS
from planner.known import Known
from planner.poc import Hypothesis, Plan, levels_hash
from planner.predictions import predict
from planner.requirements import Requirements
from planner.scoring import static_evidence
from services.cases import favourite_sizing, load_sizing
from services.decided import accepted_plan, in_production, of_plan
from services.quality_items import with_items
from services.recounts import Told, counted_for
from services.usage import newest
from services.workspace import Workspace, now

# The catalogue engine that a measured server belongs to, where they differ.
ENGINE_OF = {"llama-server": "ollama"}


class CaseState(NamedTuple):
    """A case as it stands: what was required, planned, predicted and seen."""

    case: Case
    version: RequirementsVersion | None
    requirements: Requirements | None
    stored_plan: StoredPlan | None
    plan: Plan | None
    sizing: Sizing | None
    runs: tuple[Run, ...]
    evidence: Known
    adrs: tuple[Adr, ...]
    context: Context
    accepted_plans: Mapping[str, Plan] = {}
    deployments: tuple[Deployment, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def plan_is_stale(self) -> bool:
        """The requirements changed after the plan was made."""
        return bool(self.plan and self.version and self.plan.requirements_sha256 != self.version.sha256)

    def context_of(self, adr: Adr) -> Context:
        """What an ADR's conditions are judged in: a later plan does not change what an accepted one was decided on.

        While it is accepted, a candidate's newest deployment comes before that. A draft is judged by the plan of today.
        """
        plan = self.accepted_plans.get(adr.id)
        decided = of_plan(plan or self.plan)
        if adr.status is Status.ACCEPTED:
            decided = in_production(decided, self.deployments, self.context.now)
        points = self.context.points
        if plan is not None:
            points = {**(points or {}), **plan.points()}
        return self.context.model_copy(update={"decided": decided, "points": points})


def case_state(ws: Workspace, name: str, told: Told | None = None) -> CaseState:
    """Read a case by id or slug; raises UnknownName. `told` hears of bundles that are counted again (counted_for)."""
    case = ws.store.cases.get(name)
    version = ws.store.cases.current_requirements(case.id)
    requirements = version.requirements() if version else None
    plans = ws.store.plans.of_case(case.id)
    stored_plan = plans[-1] if plans else None
    plan, unreadable = _read(stored_plan)
    sizing = _sizing(ws, requirements)
    runs = ws.store.runs.of_case(case.id)
    adrs = ws.store.adrs.all(case=case.id)
    evidence = newest(ws.store.evidence.of_case(case.id))
    asked = asked_conditions(plan, adrs)
    counted = counted_for(ws, runs, evidence, asked, plan.service_levels if plan else (), told)
    worked_out = Known((*_predictions(ws, plan, requirements), *_documented(ws, requirements, plan)))
    known = Known.joined(with_items(ws, runs, counted.evidence), worked_out)
    context = Context(
        now=now(),
        points=plan.points() if plan else None,
        contracts=ws.store.evidence.contracts(),
        decided=of_plan(plan),
        service_levels=levels_hash(plan.service_levels) if plan else None,
    )
    return CaseState(
        case, version, requirements, stored_plan, plan, sizing, runs, known, adrs, context,
        accepted_plans={a.id: p for a in adrs if (p := accepted_plan(ws, a))},
        deployments=ws.store.deployments.of_case(case.id), findings=unreadable + counted.findings,
    )  # fmt: skip


def _read(stored: StoredPlan | None) -> tuple[Plan | None, tuple[str, ...]]:
    """The plan of a case; one that an older Flipline let pass is a finding, not the end of the case."""
    try:
        return (stored.plan() if stored else None), ()
    except FliplineError as e:
        return None, (f"The stored plan can no longer be read: {e} Make it anew on the PoC plan page.",)


def asked_conditions(plan: Plan | None, adrs: Sequence[Adr]) -> tuple[Condition, ...]:
    """Every condition that is asked about: their thresholds are what a summary has to count."""
    of_plan = plan.all_conditions() if plan else ()
    of_adrs = tuple(f.condition for a in adrs for f in a.active_conditions if f.condition)
    return (*of_plan, *of_adrs)


def _sizing(ws: Workspace, requirements: Requirements | None) -> Sizing | None:
    try:
        return favourite_sizing(ws, requirements) if requirements else None
    except FliplineError:  # the Sizing page says why; verdicts only lose their expectation
        return None


def _predictions(ws: Workspace, plan: Plan | None, r: Requirements | None) -> tuple[Evidence, ...]:
    if plan is None or r is None:
        return ()
    try:
        sizing = load_sizing(ws, r, by_team=False)
    except FliplineError:
        return ()
    favourites = [c.id for c in plan.candidates if c.role == "favourite"]
    return tuple(e for c in favourites for e in predict(sizing, c, plan.load_points, now()))


def _documented(ws: Workspace, r: Requirements | None, plan: Plan | None) -> tuple[Evidence, ...]:
    """Catalogue facts about each candidate: whether it is maintained and reads the model's format on this GPU."""
    if r is None:
        return ()
    gpu = ws.catalog.gpu(r.hardware[0].gpu)
    candidates = {c.id: ENGINE_OF.get(c.engine, c.engine) for c in (plan.candidates if plan else ())}
    known = {c: e for c, e in candidates.items() if e in ws.catalog.engines}
    return tuple(
        static_evidence(
            ws.catalog.engines,
            r.favourite_plan,
            r.hardware[0],
            gpu.compute_capability,
            at=now(),
            candidates=known or None,
        )
    )


class HypothesisVerdict(NamedTuple):
    """A hypothesis and what is known about it; the parts are its conditions."""

    hypothesis: Hypothesis
    verdict: Verdict
    parts: tuple[Verdict, ...]


def judge_hypotheses(state: CaseState) -> tuple[HypothesisVerdict, ...]:
    """Every hypothesis of the plan, in its order."""
    if state.plan is None:
        return ()
    found = []
    for h in state.plan.hypotheses:
        parts = tuple(evaluate(c, state.evidence, state.context) for c in h.conditions)
        found.append(HypothesisVerdict(h, combine("all of", parts), parts))
    return tuple(found)


def judge_adr(state: CaseState, adr: Adr) -> tuple[FlipVerdict, ...]:
    """Every flip condition of one ADR today."""
    return judge_flips(adr, state.evidence, state.context_of(adr))


def judge_levels(state: CaseState) -> dict[tuple[str, str], Verdict]:
    """All service levels together, per candidate and load point of the plan."""
    if state.plan is None:
        return {}
    found = {}
    for c in state.plan.candidates:
        for point in state.plan.load_points:
            asked = [level.at(point.name).model_copy(update={"candidate": c.id}) for level in state.plan.service_levels]
            if asked:
                found[c.id, point.name] = combine("all of", [evaluate(a, state.evidence, state.context) for a in asked])
    return found


KNOWN_BY = {
    Kind.MEASURED: "measured", Kind.OBSERVED: "observed", Kind.IMPORTED: "as imported", Kind.ENTERED: "as entered",
    Kind.DOCUMENTED: "as documented",
}  # fmt: skip


class Users(NamedTuple):
    """How many simultaneous users get the promise on one unit, and how that is known; None: no point decides it."""

    users: int | None
    kind: str
    sentence: str


def decision_of(state: CaseState) -> Adr | None:
    """The decision that a case stands on: an accepted one before a proposal before a draft, the newest of them."""
    order = (Status.ACCEPTED, Status.PROPOSED, Status.DRAFT)
    return next((a for status in order for a in reversed(state.adrs) if a.status is status), None)


def candidate_of(state: CaseState, adr: Adr) -> str:
    """The candidate that an ADR chose, where the plan has it; else the plan's favourite; none without a plan."""
    if state.plan is None:
        return ""
    candidates = state.plan.candidates
    planned = {c.id: c.id for c in reversed(candidates)}
    engines = {ENGINE_OF.get(c.engine, c.engine): c.id for c in reversed(candidates)}
    named = next((o.candidate for o in adr.options if o.title == adr.chosen), None) or ""
    return (engines | planned).get(named) or _favourite(state.plan)


def _favourite(plan: Plan) -> str:
    return next((c.id for c in plan.candidates if c.role == "favourite"), plan.candidates[0].id)


def headline(state: CaseState) -> Users:
    """How many users the candidate serves that the decision chose; the plan's favourite where nothing is drafted."""
    decision = decision_of(state)
    return users_served(state, candidate_of(state, decision) if decision else "")


def users_served(state: CaseState, candidate: str = "") -> Users:
    """The largest closed load at which a candidate (default: the favourite) keeps every service level.

    What holds above a load that fails counts no more than in planner/knee.py: nobody is safe there.
    """
    r, plan = state.requirements, state.plan
    if r is None or plan is None:
        return Users(None, "", "No plan says yet what is measured.")
    need = f"you need {r.peak_users_min} to {r.peak_users_max}"
    one = candidate if any(c.id == candidate for c in plan.candidates) else _favourite(plan)
    levels = judge_levels(state)
    closed = sorted((p.in_flight, p.name) for p in plan.load_points if p.in_flight and p.name not in ADDED_POINTS)
    judged = [(n, levels[one, name]) for n, name in closed if (one, name) in levels]
    breaks = min((n for n, v in judged if v.side == "fails"), default=math.inf)
    holding = [(n, v) for n, v in judged if v.side == "holds"]
    kept = [(n, v) for n, v in holding if n < breaks]
    if kept:
        n, v = kept[-1]
        kind = v.kind.value if v.kind else ""
        known = KNOWN_BY[v.kind] if v.kind else "not stated how"
        who = f"{n} simultaneous users get" if n > 1 else "1 user at a time gets"
        return Users(n, kind, f"{who} the promise on one unit ({one}, {known}); {need}.")
    if judged and all(v.side == "fails" for _, v in judged):
        kinds = list(dict.fromkeys(v.kind for _, v in judged if v.kind))
        known = " and ".join(KNOWN_BY[k] for k in kinds)
        return Users(0, kinds[0].value, f"No load of the plan keeps the promise on one unit ({one}, {known}); {need}.")
    known = f"contradictory ({one}: {breaks:g} in flight fails, {holding[0][0]} holds)" if holding else "not measured"
    return Users(None, "", f"How many users get the promise on one unit is {known}; {need}.")


def missing(state: CaseState) -> tuple[tuple[str, str], ...]:
    """What is missing before the next meeting: sentence and the page that mends it."""
    found: list[tuple[str, str]] = []
    if state.requirements is None:
        return (("The requirements are not written yet.", "requirements"),)
    if state.plan is None:
        found.append(("There is no PoC plan yet.", "poc-plan"))
    elif state.plan_is_stale:
        found.append(("The requirements changed after the plan was made.", "poc-plan"))
    verdicts = judge_hypotheses(state)
    open_ones = [v.hypothesis.id for v in verdicts if v.verdict.state in (State.UNMEASURED, State.UNDECIDED)]
    if open_ones:
        found.append((f"{', '.join(open_ones)}: not measured, or not enough.", "measure"))
    if not state.adrs:
        found.append(("No decision is drafted.", "decision"))
    elif not any(a.status is Status.ACCEPTED for a in state.adrs):
        found.append(("The decision is not accepted.", "decision"))
    return tuple(found)
