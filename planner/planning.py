"""From requirements to a plan: load points, stages, hypotheses, and what is already doubtful before a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from planner.conditions import Context, Evidence
from planner.evaluate import evaluate
from planner.hypotheses import SIXTEEN_BITS, generate
from planner.hypothesis_case import Case, QualitySet
from planner.hypothesis_edits import with_points, with_skips
from planner.loads import LoadPoint
from planner.poc import Hypothesis, Plan, PlanCandidate, Stage, StageRule
from planner.requirements import Requirements


class Roles(NamedTuple):
    """Which candidate plays which part; there need not be a baseline."""

    favourite: str
    baseline: str | None


def regular_parallel(r: Requirements) -> int:
    """The sweep point at which per-user speed is promised: the largest power of two within the lower peak."""
    return 1 << (max(1, r.peak_users_min).bit_length() - 1)


def regular_point(r: Requirements) -> str:
    """The name of the load point at which per-user speed is promised."""
    n = regular_parallel(r)
    return "single" if n == 1 else f"parallel-{n}"


def top_point(r: Requirements) -> str:
    """The name of the closed load point with all users in flight."""
    return "single" if r.peak_users_max == 1 else f"parallel-{r.peak_users_max}"


def candidate_of(engine: str) -> str:
    """How a plan calls an engine: candidates' names have no underscores."""
    return engine.replace("_", "-")


def load_points(r: Requirements, limit: int, requests_per_point: int = 24) -> tuple[LoadPoint, ...]:
    """Stage A's sweep 1, 2, 4, ... to the peak; stage B's peak closed and open, and twice the limit.

    `limit` is the batch limit that sizing proposes, in requests.
    """

    def closed(name: str, in_flight: int) -> LoadPoint:
        return LoadPoint(
            name=name,
            in_flight=in_flight,
            input_tokens=r.input_tokens,
            output_tokens=r.output_tokens,
            shared_prefix=r.shared_prefix_share or 0.0,
            # The first two rounds are not counted, and three starts must leave 59 for a p95 (0.95^59 < 0.05).
            requests=max(requests_per_point + 2 * in_flight, 4 * in_flight),
            warmup_requests=min(2 * in_flight, 16),
        )

    sweep = [1 << i for i in range(r.peak_users_max.bit_length()) if 1 << i <= r.peak_users_max]
    points = [closed("single" if n == 1 else f"parallel-{n}", n) for n in sweep]
    if r.peak_users_max not in sweep:
        points.append(closed(f"parallel-{r.peak_users_max}", r.peak_users_max))
    rate = r.peak_users_max * r.requests_per_user_per_min / 60
    peak = LoadPoint(
        name="peak",
        shape="open",
        rate_per_s=float(f"{rate:.4g}"),
        arrival=r.arrival,
        input_tokens=r.input_tokens,
        output_tokens=r.output_tokens,
        shared_prefix=r.shared_prefix_share or 0.0,
        requests=max(60, requests_per_point),
        warmup_requests=4,
    )
    return (*points, peak, closed("overload", 2 * max(limit, r.peak_users_max)))


def stages(r: Requirements, points: Sequence[LoadPoint], favourite: str) -> tuple[Stage, ...]:
    """Stage A finds the knee, the limit above the sweep; stage B sets the limit there and offers peak and overload."""
    names = [p.name for p in points]
    top = top_point(r)
    sweep = tuple(n for n in names if n not in ("peak", "overload", top) or (n == top and _is_power(r.peak_users_max)))
    second = tuple(n for n in (top, "peak", "overload") if n in names and n not in sweep)
    promise = r.service_levels()[0].model_copy(update={"candidate": favourite})
    return (
        Stage(name="A", points=sweep, why="Find the load at which the speed per user breaks the promise."),
        Stage(
            name="B",
            points=second,
            rule=StageRule(setting="max_num_seqs", from_stage="A", keeps=promise),
            why="With the limit just below that load, the queue must hold the promise and survive overload.",
        ),
    )


def _is_power(n: int) -> bool:
    return n & (n - 1) == 0


def case_of(
    r: Requirements, roles: Roles, candidates: Sequence[PlanCandidate], points: Sequence[LoadPoint],
    sweep: tuple[str, ...], quality: QualitySet | None = None,
) -> Case:  # fmt: skip
    """What hypotheses are derived from; `sweep` are the points of stage A."""
    model = next((c.model_name for c in candidates if c.id == roles.favourite), "")
    less = next((c.contract.get("quantization") for c in candidates if c.id == roles.favourite), None)
    precise = (
        c.id for c in candidates
        if c.model_name == model and c.contract.get("quantization") in SIXTEEN_BITS and less not in SIXTEEN_BITS
    )  # fmt: skip
    return Case(
        r, roles.favourite, roles.baseline, tuple(c.id for c in candidates), tuple(points),
        regular=regular_point(r), top=top_point(r), sweep=sweep,
        precise=next(precise, None), quality=quality,
    )  # fmt: skip


def make_plan(
    *,
    case: str,
    title: str,
    requirements: Requirements,
    roles: Roles,
    candidates: tuple[PlanCandidate, ...],
    points: tuple[LoadPoint, ...],
    shared_contract: dict[str, str],
    declared_differences: tuple[str, ...],
    now: datetime,
    expectations: Sequence[Evidence] = (),
    quality: QualitySet | None = None,
) -> Plan:
    """Assemble the plan; each hypothesis carries what is predicted and a warning where that contradicts it."""
    planned = stages(requirements, points, roles.favourite)
    found = generate(case_of(requirements, roles, candidates, points, planned[0].points, quality))
    bare = Plan(
        case=case,
        title=title,
        requirements_sha256=requirements.sha256(),
        shared_contract=shared_contract,
        declared_differences=declared_differences,
        candidates=candidates,
        load_points=points,
        stages=planned,
        service_levels=requirements.service_levels(),
    )
    plan = with_points(bare, [p for w in found for p in w.points])
    asked = plan.model_copy(update={"hypotheses": tuple(w.hypothesis for w in found)})
    return with_skips(with_expectations(asked, expectations, now))


def with_expectations(plan: Plan, expectations: Sequence[Evidence], now: datetime) -> Plan:
    """The plan with what is predicted today written into each hypothesis."""
    context = Context(now=now, points=plan.points())
    told = tuple(with_expectation(h, expectations, context) for h in plan.hypotheses)
    return plan.model_copy(update={"hypotheses": told})


def with_expectation(h: Hypothesis, expectations: Sequence[Evidence], context: Context) -> Hypothesis:
    """Write what is predicted into a hypothesis; a prediction to fail becomes a warning."""
    predicted = [v.expectation for c in h.conditions if (v := evaluate(c, expectations, context)).expectation]
    doubtful = [p for p in predicted if "predicted to fail" in p]
    warning = f"Already doubtful: {doubtful[0]}." if doubtful else ""
    return h.model_copy(update={"expectation": "; ".join(dict.fromkeys(predicted)), "warning": warning})
