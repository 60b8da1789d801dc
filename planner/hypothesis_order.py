"""In which order hypotheses are worth testing: what could end the plan cheapest comes first, after what it waits for.

The rule: of those whose dependencies stand before them, the one with the largest doubt x stakes per minute that it adds
comes next. Runs that an earlier one needs anyway add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from planner.hypothesis_cost import Effort, Run, effort, every_run, runs_of
from planner.hypothesis_edits import needs
from planner.hypothesis_schema import Stakes
from planner.plan_budget import PlanCost
from planner.poc import Hypothesis, Plan
from planner.units import format_duration

Prior = Literal["expected to fail", "open", "expected to hold", "decided"]
# How likely a no is taken to be; a prediction is off by a third often enough to leave room on both sides.
DOUBT: dict[Prior, float] = {"expected to fail": 0.8, "open": 0.5, "expected to hold": 0.2, "decided": 0.0}
WEIGHT: dict[Stakes, float] = {"ends the plan": 4.0, "changes the plan": 2.0, "changes a setting": 1.0}
DEFAULT_STAKES: Stakes = "changes the plan"
LOOK_MIN = 1.0  # reading a figure that another run gave anyway


class Ranked(NamedTuple):
    """A hypothesis in its place: what testing it alone costs, what it adds to those before it, and why it stands here.

    `waits_for` are the hypotheses that must hold first; `needed_by` those that wait for this one.
    """

    hypothesis: Hypothesis
    prior: Prior
    stakes: Stakes
    alone: Effort
    adds: Effort
    waits_for: tuple[str, ...]
    needed_by: tuple[str, ...]
    reason: str


class Ordered(NamedTuple):
    """All hypotheses in order; `total` is what they cost together, `unasked` what the plan runs besides them."""

    ranked: tuple[Ranked, ...]
    total: Effort
    unasked: Effort


def prior_of(h: Hypothesis) -> Prior:
    """What the planning value says, as the hypothesis carries it."""
    return "expected to fail" if h.warning else "expected to hold" if h.expectation else "open"


def order(plan: Plan, cost: PlanCost, priors: Mapping[str, Prior] = {}) -> Ordered:
    """Put the hypotheses of a plan in order; `cost` is the plan's, `priors` replace what hypotheses carry, by id."""
    waits = {h.id: needs(plan, h) for h in plan.hypotheses}
    runs = {h.id: runs_of(plan, h) for h in plan.hypotheses}
    left = {h.id: h for h in plan.hypotheses}
    done, ranked = frozenset[Run](), list[Ranked]()

    def adds(id: str) -> Effort:
        return effort(cost, runs[id] - done)

    def worth(h: Hypothesis) -> float:
        doubt = DOUBT[priors.get(h.id) or prior_of(h)]
        return doubt * WEIGHT[h.stakes or DEFAULT_STAKES] / (adds(h.id).minutes + LOOK_MIN)

    while left:
        free = [h for h in left.values() if not set(waits[h.id]) & left.keys()] or list(left.values())
        h = max(free, key=worth)  # of equals the first in the plan
        ranked.append(Ranked(
            h, priors.get(h.id) or prior_of(h), h.stakes or DEFAULT_STAKES, effort(cost, runs[h.id]),
            adds(h.id), waits[h.id], tuple(i for i, w in waits.items() if h.id in w), "",
        ))  # fmt: skip
        done |= runs[h.id]
        del left[h.id]
    asked = {run for found in runs.values() for run in found}
    return Ordered(
        tuple(r._replace(reason=_reason(r)) for r in ranked),
        effort(cost, asked),
        effort(cost, every_run(plan) - asked),
    )


def _reason(r: Ranked) -> str:
    """Why it stands where it stands, in one sentence."""
    if r.prior == "decided":
        return "Decided already: nothing is gained by testing it again."
    if r.needed_by and not r.waits_for:
        return f"First: {_count(len(r.needed_by))} {'waits' if len(r.needed_by) == 1 else 'wait'} for it."
    return f"{r.prior.capitalize()}; a no {r.stakes}; {_adds(r.adds.minutes)}."


def _adds(minutes: float) -> str:
    if minutes == 0:
        return "adds no run"
    if minutes < 1:
        return "adds less than a minute"
    return f"adds {minutes:.0f} min" if minutes < 59.5 else f"adds {format_duration(60 * minutes)}"


def _count(n: int) -> str:
    return "one other" if n == 1 else f"{n} others"
