"""From a case to its plan file: candidates with launch commands from the sizing, contract, points, hypotheses."""

from __future__ import annotations

from typing import NamedTuple

from db.plans import StoredPlan
from db.verdicts import Cause
from planner.contract import FIELDS
from planner.contract_check import Contradiction, contradictions, refuse_contradictions
from planner.contract_edit import Edit, edits_of
from planner.engine_facts import server
from planner.errors import ConflictError, FliplineError, InputError, NotAllowed
from planner.hypothesis_edits import carried
from planner.launch import LaunchPlan
from planner.offered import offered_elsewhere, run_points, with_offered
from planner.plan_budget import PlanCost, ladder_up_to
from planner.plan_file import plan_from_yaml
from planner.plan_trim import Lost
from planner.planning import Roles, candidate_of, load_points, make_plan, with_expectations
from planner.poc import Plan
from planner.predictions import bound_tok_s, predict
from planner.proposals import propose, take_in, taken_in
from planner.requirements import Requirements
from planner.sample_size import requests_for
from planner.server_schema import RequestFields, Server
from services.cases import favourite_sizing, load_sizing
from services.launches import SERVER_OF, Weights, launch_of, run_form
from services.plan_candidates import candidate, started_engines
from services.plan_costs import cost_of, trimmed
from services.quality_set import shipped_quality_set
from services.rejudging import rejudge
from services.scores import case_score
from services.workspace import Workspace, now


class PlanChoices(NamedTuple):
    """What a person states before the plan is written; empty means not stated, and then it is not equal either.

    `requests_per_point` None: as many as the percentiles of the service levels need. `budget_min` trims the plan.
    `contract` is what reads otherwise than derived, `declared` differences besides those of the weight formats.
    """

    model_revision: str = ""
    gguf_file: str = ""
    load_generator: str = "same machine"
    starts: int = 3
    repeats: int = 1
    requests_per_point: int | None = None
    proposals: tuple[str, ...] = ()
    budget_min: float | None = None
    contract: tuple[Edit, ...] = ()
    declared: tuple[str, ...] = ()


def choices_of(plan: Plan) -> PlanChoices:
    """What a person had stated when a plan was written, read back from it."""
    files = (
        c.launch.command[i + 1]
        for c in plan.candidates
        for i, word in enumerate(c.launch.command[:-1])
        if word == "-m" and c.engine == "llama-server"
    )
    stated = plan.shared_contract
    # a closed loop gets twice its requests in flight on top: those that begin and end it are not counted
    asked = min((p.requests - 2 * (p.in_flight or 0) for p in run_points(plan) if not p.file), default=1)
    return PlanChoices(
        model_revision=stated.get("model_revision", ""),
        gguf_file=next(files, ""),
        load_generator=stated.get("load_generator", ""),
        starts=plan.starts,
        repeats=plan.repeats,
        requests_per_point=max(1, asked),
        proposals=taken_in(plan),
        budget_min=plan.budget_min,
        contract=edits_of(plan),
        declared=plan.declared_differences,
    )


def requests_asked(r: Requirements, choices: PlanChoices) -> int:
    """Requests per load point: what a person asked for, else what the service levels' percentiles need."""
    return choices.requests_per_point or requests_for(r.service_levels(), choices.starts, choices.repeats)


def unstated_fields(plan: Plan) -> tuple[str, ...]:
    """Fields of the shared contract that nobody stated: as long as one is open, no two runs compare."""
    return tuple(f.name for f in FIELDS if f.part == "shared" and not plan.shared_contract.get(f.name))


class Drafted(NamedTuple):
    """A plan that is not stored yet, with the launches that explain its commands and what it will cost.

    `everyday` is how an engine is started in daily use where it is measured through another server; `lost` what the
    budget cost; `contracts` and `declared` are as derived, before any edit.
    """

    plan: Plan
    launches: dict[str, LaunchPlan]
    cost: PlanCost
    unstated: tuple[str, ...]
    everyday: dict[str, LaunchPlan]
    lost: tuple[Lost, ...]
    contracts: dict[str, dict[str, str]]
    declared: tuple[str, ...]


AS_DERIVED = PlanChoices()


def draft_plan(ws: Workspace, case_slug: str, r: Requirements, choices: PlanChoices = AS_DERIVED) -> Drafted:
    """Derive the plan of a case.

    Raises NotAllowed when no engine passes the gates or the model does not fit, InputError for an edit that its field
    cannot have and for a budget below the least possible.
    """
    score = case_score(ws, r)
    sizing = favourite_sizing(ws, r)
    if score.favourite is None:
        raise NotAllowed(score.sentence, where="PoC plan")
    if sizing.inputs is None:
        raise NotAllowed(sizing.sentence, where="PoC plan", fix="Change the model plan or the hardware first.")
    expected = load_sizing(ws, r, by_team=True)
    roles = Roles(candidate_of(score.favourite), candidate_of(score.baseline) if score.baseline else None)
    points = load_points(r, sizing.launch.max_num_seqs_expected or 1, requests_asked(r, choices))
    taken = [p for p in propose(r, score) if p.id in choices.proposals]
    asked = (e for e in (score.favourite, score.baseline, *(e for p in taken for e in p.engines)) if e)
    engines = list(dict.fromkeys(asked))
    bounds = bound_tok_s(expected, points)
    weights = Weights(choices.model_revision, choices.gguf_file)
    started = started_engines(ws, score, r, sizing, engines, weights, choices.contract)
    declared = tuple(dict.fromkeys(d for e in engines for d in run_form(score, e).declared))
    plan = make_plan(
        case=case_slug,
        title=f"{ws.store.cases.get(case_slug).title}: {score.sentence}",
        requirements=r,
        roles=roles,
        candidates=tuple(candidate(ws, score, r, x, choices.contract, bounds) for x in started),
        points=points,
        shared_contract=_shared(r, choices),
        declared_differences=tuple(dict.fromkeys((*declared, *choices.declared))),
        now=now(),
        quality=shipped_quality_set(),
    ).model_copy(update={"starts": choices.starts, "repeats": choices.repeats})
    plan, lost = _with_own_hypotheses(ws, case_slug, take_in(plan, taken)), tuple[Lost, ...]()
    plan = with_expectations(plan, predict(expected, roles.favourite, plan.load_points, now()), now())
    plan = ladder_up_to(plan, sizing.launch.max_num_seqs)
    if choices.budget_min is not None:
        cut = trimmed(ws, r, plan, choices.budget_min)
        plan, lost = cut.plan, cut.lost
    everyday = {e: launch_of(ws.catalog.engines, score, r, sizing, e, weights) for e in engines if e in SERVER_OF}
    return Drafted(
        plan, {x.engine: x.launch for x in started}, cost_of(ws, r, plan), unstated_fields(plan), everyday, lost,
        {candidate_of(x.engine): x.contract for x in started}, declared,
    )  # fmt: skip


def _with_own_hypotheses(ws: Workspace, case_slug: str, plan: Plan) -> Plan:
    """What people wrote, changed or took out of the plan that stands comes along into one that is derived anew.

    So do the loads that no stage runs: figures from elsewhere were taken under them.
    """
    plans = ws.store.plans.of_case(ws.store.cases.get(case_slug).id)
    try:
        if not plans:
            return plan
        stood = plans[-1].plan()
        return with_offered(carried(plan, stood)[0], offered_elsewhere(stood))
    except FliplineError:  # a plan that is no longer read is a finding of the case
        return plan


def _shared(r: Requirements, choices: PlanChoices) -> dict[str, str]:
    stated = {
        "model": r.favourite_plan.model,
        "model_revision": choices.model_revision,
        "tokenizer": r.favourite_plan.model,
        "sampling": "temperature 0",
        "load_generator": choices.load_generator,
    }
    return {k: v for k, v in stated.items() if v}


def request_fields(ws: Workspace, plan: Plan) -> dict[str, RequestFields]:
    """What each candidate's server takes in a request: by the plan's own facts, else by the catalogue."""
    found: dict[str, RequestFields] = {}
    for c in plan.candidates:
        facts: Server | None = c.facts
        if facts is None and c.engine in SERVERS_OF_OTHERS:
            continue
        found[c.id] = (facts or server(ws.catalog.engines, c.engine)).request
    return found


SERVERS_OF_OTHERS = ("openai",)  # an endpoint of which nothing else is known


def plan_contradictions(ws: Workspace, plan: Plan) -> tuple[Contradiction, ...]:
    """Where a plan's contract contradicts its load points."""
    return contradictions(plan, request_fields(ws, plan))


def save_plan(ws: Workspace, case: str, plan: Plan, author: str) -> StoredPlan:
    """Store a plan and judge the case again under it.

    Raises InputError when its load points contradict its contract, ConflictError when the very same plan was stored
    before a later one, which would go on to stand.
    """
    refuse_contradictions(plan, request_fields(ws, plan), where="plan")
    return _store(ws, case, plan, author)


def _store(ws: Workspace, case: str, plan: Plan, author: str, body: bytes | None = None) -> StoredPlan:
    with ws.store.transaction():
        stored = ws.store.plans.add(case, plan, at=now(), author=author, body=body)
        last = ws.store.plans.of_case(case)[-1]
        if last.sha256 != stored.sha256:
            raise ConflictError(
                f"this very plan was stored on {stored.at:%Y-%m-%d} and a later one replaced it.", where="plan",
                fix="Give it another seed or title to make it a plan of its own.",
            )  # fmt: skip
        rejudge(ws, case, Cause(kind="plan", says=f"{author} stored another plan"))
    return stored


def upload_plan(ws: Workspace, case: str, name: str, text: str, author: str) -> StoredPlan:
    """Store an edited plan file.

    Raises InputError with the field that is wrong or that its load points contradict, SchemaTooNew, ConflictError.
    """
    plan = plan_from_yaml(text, where=name)
    slug = ws.store.cases.get(case).slug
    if plan.case != slug:
        raise InputError(f"case: the plan belongs to {plan.case!r}, this is {slug!r}.", where=name,
                         fix="Open that case, or correct the field.")  # fmt: skip
    refuse_contradictions(plan, request_fields(ws, plan), where=name)
    return _store(ws, case, plan, author, text.encode())
