"""What to measure next in a case: its hypotheses, the conditions of its decisions, what its score still asks."""

from __future__ import annotations

from collections.abc import Iterator

from decisions.flip_condition import Action
from decisions.record import Adr, Status
from planner.errors import FliplineError
from planner.evaluate import combine, evaluate
from planner.measure_next import Asked, Could, Next, could_change, measure_next
from planner.plan_budget import PlanCost
from planner.poc import Plan
from planner.proposals import Proposal
from planner.requirements import Requirements
from services.plan_costs import cost_of
from services.scores import case_proposals, case_score
from services.verdicts import CaseState, judge_adr, judge_hypotheses
from services.workspace import Workspace

IN_FORCE = (Status.ACCEPTED, Status.PROPOSED, Status.DRAFT)
OF_ACTION: dict[Action, Could] = {
    Action.BACK_TO_HARDWARE: "end the plan", Action.CHANGE_MODEL_PLAN: "end the plan",
}  # fmt: skip


def next_runs(ws: Workspace, state: CaseState) -> tuple[Next, ...]:
    """The runs that could still change the decision, most telling first; none without a plan."""
    plan, r = state.plan, state.requirements
    if plan is None or r is None:
        return ()
    asked = [*_hypotheses(state), *_flips(state), *_proposals(ws, state, plan, r)]
    return measure_next(plan, asked, state.evidence, _cost(ws, r, plan))


def _hypotheses(state: CaseState) -> Iterator[Asked]:
    for v in judge_hypotheses(state):
        h = v.hypothesis
        yield Asked(h.id, "hypothesis", could_change(h), h.conditions, v.verdict, v.parts, h.if_rejected)


def _flips(state: CaseState) -> Iterator[Asked]:
    """The measurable conditions of each decision that is in force or under way."""
    for adr in state.adrs:
        for f in judge_adr(state, adr) if adr.status in IN_FORCE else ():
            flip = adr.condition(f.condition)
            if flip.condition and f.verdict:
                could = OF_ACTION.get(flip.action, "change the favourite")
                then = flip.consequence or f"{_name(adr)} is re-opened"
                yield Asked(f.condition, "flip condition", could, (flip.condition,), f.verdict, (f.verdict,), then)


def _name(adr: Adr) -> str:
    return adr.name if adr.number else "the decision"


def _proposals(ws: Workspace, state: CaseState, plan: Plan, r: Requirements) -> Iterator[Asked]:
    """What the score asks that no hypothesis of the plan tests yet."""
    for p in case_proposals(r, case_score(ws, r)):
        if p.covered_by(plan) is None:
            yield _proposed(state, plan, p)


def _proposed(state: CaseState, plan: Plan, p: Proposal) -> Asked:
    points = {**plan.points(), **{point.name: point for point in p.points}}
    context = state.context.model_copy(update={"points": points})
    h = p.hypothesis
    parts = tuple(evaluate(c, state.evidence, context) for c in h.conditions)
    could: Could = "change the favourite" if len(p.engines) > 1 or p.origin == "unknown gate" else "change the plan"
    return Asked(h.id, "proposal", could, h.conditions, combine("all of", parts), parts, h.if_rejected)


def _cost(ws: Workspace, r: Requirements, plan: Plan) -> PlanCost | None:
    try:
        return cost_of(ws, r, plan)
    except FliplineError:  # the plan page says why; the list only loses its minutes
        return None
