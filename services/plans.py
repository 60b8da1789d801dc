"""From a case to its plan file: candidates with launch commands from the sizing, contract, points, hypotheses."""

from __future__ import annotations

from typing import NamedTuple

from db.plans import StoredPlan
from planner.capacity import Sizing
from planner.catalog import facts_to_carry
from planner.conditions import Kind
from planner.contract import FIELDS
from planner.errors import ConflictError, InputError, NotAllowed
from planner.launch import LaunchPlan
from planner.planning import Roles, candidate_of, estimate_minutes, load_points, make_plan
from planner.poc import Plan, PlanCandidate, plan_from_yaml
from planner.predictions import bound_tok_s, predict
from planner.proposals import propose, take_in, taken_in
from planner.requirements import Requirements
from planner.scoring import Score
from planner.throughput import total_tok_s
from services.cases import favourite_sizing, load_sizing
from services.launches import SERVER_OF, Weights, launch_of, run_form
from services.scores import case_score
from services.verdicts import rejudge
from services.workspace import Workspace, now


class PlanChoices(NamedTuple):
    """What a person states before the plan is written; empty means not stated, and then it is not equal either."""

    model_revision: str = ""
    gguf_file: str = ""
    load_generator: str = "same machine"
    starts: int = 3
    repeats: int = 1
    requests_per_point: int = 24
    proposals: tuple[str, ...] = ()


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
    asked = min(p.requests - 2 * (p.in_flight or 0) for p in plan.load_points)
    return PlanChoices(
        model_revision=stated.get("model_revision", ""),
        gguf_file=next(files, ""),
        load_generator=stated.get("load_generator", ""),
        starts=plan.starts,
        repeats=plan.repeats,
        requests_per_point=max(1, asked),
        proposals=taken_in(plan),
    )


def unstated_fields(plan: Plan) -> tuple[str, ...]:
    """Fields of the shared contract that nobody stated: as long as one is open, no two runs compare."""
    return tuple(f.name for f in FIELDS if f.part == "shared" and not plan.shared_contract.get(f.name))


class Drafted(NamedTuple):
    """A plan that is not stored yet, with the launches that explain its commands and the time it will take.

    `everyday` is how an engine is started in daily use where it is measured through another server.
    """

    plan: Plan
    launches: dict[str, LaunchPlan]
    minutes: float
    unstated: tuple[str, ...]
    everyday: dict[str, LaunchPlan]


AS_DERIVED = PlanChoices()


def draft_plan(ws: Workspace, case_slug: str, r: Requirements, choices: PlanChoices = AS_DERIVED) -> Drafted:
    """Derive the plan of a case.

    Raises NotAllowed when no engine passes the gates or the model does not fit.
    """
    score = case_score(ws, r)
    sizing = favourite_sizing(ws, r)
    if score.favourite is None:
        raise NotAllowed(score.sentence, where="PoC plan")
    if sizing.inputs is None:
        raise NotAllowed(sizing.sentence, where="PoC plan", fix="Change the model plan or the hardware first.")
    expected = load_sizing(ws, r, by_team=True)
    roles = Roles(candidate_of(score.favourite), candidate_of(score.baseline) if score.baseline else None)
    points = load_points(r, sizing.launch.max_num_seqs_expected or 1, choices.requests_per_point)
    taken = [p for p in propose(r, score) if p.id in choices.proposals]
    asked = (e for e in (score.favourite, score.baseline, *(e for p in taken for e in p.engines)) if e)
    engines = list(dict.fromkeys(asked))
    weights, known = Weights(choices.model_revision, choices.gguf_file), ws.catalog.engines
    launches = {e: launch_of(known, score, r, sizing, SERVER_OF.get(e, e), weights) for e in engines}
    candidates = tuple(
        PlanCandidate(
            id=candidate_of(e),
            role="favourite" if e == score.favourite else "baseline" if e == score.baseline else "challenger",
            engine=launches[e].engine,
            model_name=r.favourite_plan.model,
            launch=launches[e].for_plan(),
            contract=_contract(score, r, sizing, e, launches[e]),
            facts=facts_to_carry(ws.catalog.engines, launches[e].engine),
            bound_tok_s=bound_tok_s(expected, points) if e == score.favourite else {},
        )
        for e in engines
    )
    shared = {
        "model": r.favourite_plan.model,
        "model_revision": choices.model_revision,
        "tokenizer": r.favourite_plan.model,
        "sampling": "temperature 0",
        "load_generator": choices.load_generator,
    }
    plan = make_plan(
        case=case_slug,
        title=f"{ws.store.cases.get(case_slug).title}: {score.sentence}",
        requirements=r,
        roles=roles,
        candidates=candidates,
        points=points,
        shared_contract={k: v for k, v in shared.items() if v},
        declared_differences=tuple(dict.fromkeys(d for e in engines for d in run_form(score, e).declared)),
        expectations=predict(expected, roles.favourite, points, now()),
        now=now(),
    ).model_copy(update={"starts": choices.starts, "repeats": choices.repeats})
    plan = take_in(plan, taken)
    return Drafted(
        plan,
        launches,
        estimate_minutes(plan, _speeds(plan, expected)),
        unstated_fields(plan),
        {e: launch_of(known, score, r, sizing, e, weights) for e in engines if e in SERVER_OF},
    )


def _speeds(plan: Plan, sizing: Sizing) -> dict[str, float]:
    """Planning value of the total speed per closed point, in tok/s."""
    if sizing.inputs is None:
        return {}
    return {p.name: total_tok_s(sizing.inputs, Kind.PLANNING, p.in_flight) for p in plan.load_points if p.in_flight}


def _contract(score: Score, r: Requirements, sizing: Sizing, engine: str, started: LaunchPlan) -> dict[str, str]:
    form = run_form(score, engine)
    return {
        "engine": started.engine,
        "engine_version": started.version,
        "weight_format": form.weight_format,
        "quantization": form.quantization,
        "kv_cache_dtype": r.favourite_plan.kv_cache_dtype,
        "output_length": "fixed",
        "max_model_len": str(sizing.launch.max_model_len),
        "max_num_seqs": str(sizing.launch.max_num_seqs),
        "prefix_caching": "on",
        "tensor_parallel": str(sizing.launch.tensor_parallel),
    }


def save_plan(ws: Workspace, case: str, plan: Plan, author: str) -> StoredPlan:
    """Store a plan and judge the case again under it.

    Raises ConflictError when the very same plan was stored before a later one, which would go on to stand.
    """
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
        rejudge(ws, case)
    return stored


def upload_plan(ws: Workspace, case: str, name: str, text: str, author: str) -> StoredPlan:
    """Store an edited plan file; raises InputError with the field that is wrong, SchemaTooNew, ConflictError."""
    plan = plan_from_yaml(text, where=name)
    slug = ws.store.cases.get(case).slug
    if plan.case != slug:
        raise InputError(f"case: the plan belongs to {plan.case!r}, this is {slug!r}.", where=name,
                         fix="Open that case, or correct the field.")  # fmt: skip
    return _store(ws, case, plan, author, text.encode())
