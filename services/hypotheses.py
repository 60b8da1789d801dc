"""The hypotheses of a plan as people work with them: in order with what they cost, changed, added, taken out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from db.plans import StoredPlan
from planner.conditions import Context, Kind, Verdict
from planner.errors import FliplineError, InputError
from planner.evaluate import combine, evaluate
from planner.hypotheses import TEMPLATES, Written, written
from planner.hypothesis_case import Case
from planner.hypothesis_cost import Effort
from planner.hypothesis_edits import OWN, add, conditions_of, dependents, remove, replace
from planner.hypothesis_order import Ordered, Prior, order, prior_of
from planner.hypothesis_schema import Stakes
from planner.plan_budget import PlanCost, SpeedOf, plan_cost
from planner.planning import Roles, case_of, with_expectations
from planner.poc import Hypothesis, Plan
from planner.predictions import predict
from planner.requirements import Requirements
from services.cases import load_sizing
from services.plan_costs import predicted_speed
from services.plans import save_plan
from services.quality_set import shipped_quality_set
from services.verdicts import KNOWN_BY, CaseState
from services.workspace import Workspace, now, signed_by

DECIDING = (Kind.MEASURED, Kind.OBSERVED)


class Offer(NamedTuple):
    """A template that the plan does not hold yet, what it would ask here, and what that adds to the plan."""

    id: str
    title: str
    when: str
    hinted: bool
    asks: tuple[Hypothesis, ...]
    adds: Effort


class View(NamedTuple):
    """A plan's hypotheses in order, what is known of each beforehand (by id), and what can be added.

    `left_behind` are hypotheses of the stored plan, written by hand, that this one cannot hold.
    """

    order: Ordered
    known: dict[str, str]
    offers: tuple[Offer, ...]
    left_behind: tuple[str, ...]


def view(ws: Workspace, state: CaseState, r: Requirements, plan: Plan) -> View:
    """All that a page or a terminal shows of a plan's hypotheses."""
    speed_of = predicted_speed(ws, r)
    cost = plan_cost(plan, speed_of)
    context = state.context.model_copy(update={"points": plan.points()})
    verdicts = {h.id: _verdict(state, h, context) for h in plan.hypotheses}
    priors = {h.id: _prior(h, verdicts[h.id]) for h in plan.hypotheses}
    known = {
        id: f"{KNOWN_BY[v.kind].capitalize()}: {v.sentence}" for id, v in verdicts.items() if v.side and v.kind
    }  # fmt: skip
    mine = {h.id for h in plan.hypotheses}
    before = state.plan.hypotheses if state.plan else ()
    return View(
        order(plan, cost, priors), known, _offers(r, plan, cost, speed_of),
        tuple(h.id for h in before if h.author and h.id not in mine),
    )  # fmt: skip


def _verdict(state: CaseState, h: Hypothesis, context: Context) -> Verdict:
    return combine("all of", [evaluate(c, state.evidence, context) for c in h.conditions])


def _prior(h: Hypothesis, v: Verdict) -> Prior:
    """What was measured decides; what others published or typed in speaks before a prediction does."""
    if v.side and v.kind in DECIDING:
        return "decided"
    if v.side:
        return "expected to fail" if v.side == "fails" else "expected to hold"
    return prior_of(h)


def _offers(r: Requirements, plan: Plan, cost: PlanCost, speed_of: SpeedOf) -> tuple[Offer, ...]:
    found = []
    here = {h.origin for h in plan.hypotheses} | {h.id for h in plan.hypotheses}
    case = _case(r, plan)
    for t in TEMPLATES if case else ():
        if t.id in here or case is None:
            continue
        try:
            asked = written(t.id, case)
            larger = plan_cost(_with(plan, asked), speed_of)
        except FliplineError:  # the plan lacks a baseline or a point that this one speaks of
            continue
        adds = Effort(larger.minutes - cost.minutes, larger.prompt_tokens - cost.prompt_tokens,
                      larger.output_tokens - cost.output_tokens)  # fmt: skip
        hinted = any(w.use != "not asked" for w in asked)
        found.append(Offer(t.id, t.title, t.when, hinted, tuple(w.hypothesis for w in asked), adds))
    return tuple(sorted(found, key=lambda o: not o.hinted))


def _case(r: Requirements, plan: Plan) -> Case | None:
    """The case as the plan has it; None when the plan lacks the regular load point or a favourite."""
    of_role = {c.role: c.id for c in reversed(plan.candidates)}
    roles = Roles(of_role.get("favourite", plan.candidates[0].id), of_role.get("baseline"))
    case = case_of(r, roles, plan.candidates, plan.load_points, plan.stages[0].points, shipped_quality_set())
    return case if {case.regular, case.top} <= {p.name for p in plan.load_points} else None


def _with(plan: Plan, asked: Sequence[Written]) -> Plan:
    for w in asked:
        plan = add(plan, w.hypothesis, w.points)
    return plan


class Words(NamedTuple):
    """A hypothesis as it is typed: one condition a line."""

    statement: str
    lines: str
    method: str
    if_rejected: str
    stakes: Stakes
    depends_on: tuple[str, ...] = ()


def change(ws: Workspace, case: str, r: Requirements, plan: Plan, id: str, words: Words, author: str) -> StoredPlan:
    """Store the plan with one hypothesis changed.

    Raises InputError with the line or field that is wrong, UnknownName for a name that the plan does not know.
    """
    by = signed_by(author, "hypothesis")
    was = next((h for h in plan.hypotheses if h.id == id), None)
    changed = _hypothesis(id, words, by, was.origin if was else OWN)
    return _save(ws, case, r, replace(plan, changed), by)


def add_own(ws: Workspace, case: str, r: Requirements, plan: Plan, words: Words, author: str) -> StoredPlan:
    """Store the plan with a hypothesis of one's own; raises as `change` does."""
    by = signed_by(author, "hypothesis")
    id = _next_id(plan)
    return _save(ws, case, r, add(plan, _hypothesis(id, words, by, OWN)), by)


def add_template(ws: Workspace, case: str, r: Requirements, plan: Plan, template: str, author: str) -> StoredPlan:
    """Store the plan with the hypotheses of a template; raises UnknownName, ConflictError, InputError."""
    by = signed_by(author, "hypothesis")
    found = _case(r, plan)
    if found is None:
        raise InputError("the plan lacks the load point at which the speed is promised.", where="hypothesis",
                         fix="Write a condition line of your own, or draft the plan anew.")  # fmt: skip
    asked = [w._replace(hypothesis=w.hypothesis.model_copy(update={"author": by})) for w in written(template, found)]
    return _save(ws, case, r, _with(plan, asked), by)


def take_out(ws: Workspace, case: str, plan: Plan, id: str, author: str) -> StoredPlan:
    """Store the plan without a hypothesis; raises UnknownName."""
    return save_plan(ws, case, remove(plan, id), signed_by(author, "hypothesis"))


def waiting_for(plan: Plan, id: str) -> tuple[str, ...]:
    """Hypotheses that a removal would leave without what they wait for."""
    return dependents(plan, id)


def _hypothesis(id: str, words: Words, by: str, origin: str) -> Hypothesis:
    for field, text in (("statement", words.statement), ("consequence", words.if_rejected)):
        if not text.strip():
            raise InputError(f"the {field} is empty.", where=f"hypothesis {id}", fix="Write one sentence.")
    return Hypothesis(
        id=id, statement=words.statement.strip(), conditions=conditions_of(words.lines, id),
        method=words.method.strip(), if_rejected=words.if_rejected.strip(), depends_on=words.depends_on,
        origin=origin, stakes=words.stakes, author=by,
    )  # fmt: skip


def _next_id(plan: Plan) -> str:
    taken = [int(m[1]) for h in plan.hypotheses if (m := re.fullmatch(r"OWN-(\d+)", h.id))]
    return f"OWN-{max(taken, default=0) + 1}"


def _save(ws: Workspace, case: str, r: Requirements, plan: Plan, by: str) -> StoredPlan:
    """Store a plan after what is predicted today was written into its hypotheses."""
    favourite = next((c.id for c in plan.candidates if c.role == "favourite"), plan.candidates[0].id)
    expected = predict(load_sizing(ws, r, by_team=True), favourite, plan.load_points, now())
    return save_plan(ws, case, with_expectations(plan, expected, now()), by)
