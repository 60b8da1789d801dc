"""From requirements to a plan: load points, the six hypotheses, stages, and what is already doubtful before a run.

The hypotheses are the seed's (its section 9): starts; N times the baseline; speed per user; first token at peak;
overload queues; measured over bound within a band.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from planner.condition_line import parse_condition
from planner.conditions import Condition, Context, Evidence
from planner.evaluate import evaluate
from planner.loads import LoadPoint
from planner.poc import Hypothesis, Plan, PlanCandidate, Stage, StageRule
from planner.requirements import Requirements

RATIO_OVER_BASELINE = 3  # seed, hypothesis 2
NEAR = 10  # percent of the threshold that counts as near
# Where measured/bound fell on public runs of one GB10, by regime: prompts up to 1k .64-.87, 8k prompts down to .42,
# beyond 8 in flight up to .98 of the coverage bound (llama.cpp dgx-spark.md@4c7e9893, dgx-spark-benchmarks@5636536).
BAND_SINGLE = (0.4, 0.95)
BAND_PARALLEL = (0.3, 1.1)


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
    top = f"parallel-{r.peak_users_max}"
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


def hypotheses(r: Requirements, roles: Roles, candidates: Sequence[str]) -> tuple[Hypothesis, ...]:
    """The seed's six, with this case's numbers; cheapest that could end the plan first."""
    f, n = roles.favourite, regular_parallel(r)
    at_n = regular_point(r)
    speed, ttft = r.service_levels()
    top = f"parallel-{r.peak_users_max}"

    def lines(*texts: str) -> tuple[Condition, ...]:
        return tuple(parse_condition(x) for x in texts)

    found = [
        Hypothesis(
            id="H1",
            statement="Each candidate starts on this machine and answers.",
            conditions=lines(
                *(f"{c}: started is true" for c in candidates),
                *(f"{c}: completed_share is 1 at single" for c in candidates),
            ),
            method="Smallest configuration, one request at a time.",
            if_rejected="Back to the choice of hardware; keep llama.cpp for the baseline only.",
        )
    ]
    if roles.baseline:
        ratio = f"{f} over {roles.baseline}: output_tok_s >= {RATIO_OVER_BASELINE} x at {at_n} near {NEAR} %"
        found.append(
            Hypothesis(
                id="H2",
                statement=f"At {n} in flight {f} gives {RATIO_OVER_BASELINE} times the tokens of {roles.baseline}.",
                conditions=lines(ratio),
                method="Same model, lengths and prompts on both; contract differences declared beforehand.",
                if_rejected="Suspect the settings before the engine, and measure again.",
            )
        )
    speed_at = speed.model_copy(update={"candidate": f, "load_points": (at_n,), "near": NEAR / 100})
    ttft_at = ttft.model_copy(update={"candidate": f, "load_points": (top, "peak"), "near": NEAR / 100})
    found += [
        Hypothesis(
            id="H3",
            statement=f"At {n} in flight each user gets at least {r.user_tok_s_promise:g} tok/s.",
            conditions=(speed_at,),
            method="Raise the requests in flight from 1 to the peak and record the speed per user.",
            if_rejected="Lower --max-num-seqs and make up for it with units.",
        ),
        Hypothesis(
            id="H4",
            statement=f"At peak the first token comes within {r.ttft_s:g} s for {r.ttft_percentile} % of the requests.",
            conditions=(ttft_at,),
            method="Open loop at the peak rate and closed loop with all users in flight, queue included.",
            if_rejected="Solve it with units, shorter prompts, prefix caching or chunk size.",
        ),
        Hypothesis(
            id="H5",
            statement="Twice the limit waits in the queue and does not run out of memory.",
            conditions=lines(
                f"{f}: oom <= 0 at overload",
                f"{f}: restarts <= 0 at overload",
                f"{f}: completed_share >= 95 % at overload",
                f"{f}: waiting max >= 1 at overload",
            ),
            method="Offer twice the batch limit and watch the queue, memory and restarts.",
            if_rejected="Size the memory settings again.",
        ),
        Hypothesis(
            id="H6",
            statement="Measured throughput stays within a band of the bound, in each regime.",
            conditions=lines(
                f"{f}: measured_over_bound between {BAND_SINGLE[0]} and {BAND_SINGLE[1]} x at single",
                *(
                    [f"{f}: measured_over_bound between {BAND_PARALLEL[0]} and {BAND_PARALLEL[1]} x at {at_n}"]
                    if at_n != "single"
                    else []
                ),
            ),
            method="Compare with the coverage bound of the sizing at the same load.",
            if_rejected="Question the premise that decode is bound by memory bandwidth.",
        ),
    ]
    return tuple(found)


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
    expectations: Sequence[Evidence],
    now: datetime,
) -> Plan:
    """Assemble the plan; each hypothesis carries what is predicted and a warning where that contradicts it."""
    context = Context(now=now, points={p.name: p for p in points})
    hs = tuple(
        with_expectation(h, expectations, context) for h in hypotheses(requirements, roles, [c.id for c in candidates])
    )
    return Plan(
        case=case,
        title=title,
        requirements_sha256=requirements.sha256(),
        shared_contract=shared_contract,
        declared_differences=declared_differences,
        candidates=candidates,
        load_points=points,
        stages=stages(requirements, points, roles.favourite),
        hypotheses=hs,
        service_levels=requirements.service_levels(),
    )


def with_expectation(h: Hypothesis, expectations: Sequence[Evidence], context: Context) -> Hypothesis:
    """Write what is predicted into a hypothesis; a prediction to fail becomes a warning."""
    predicted = [v.expectation for c in h.conditions if (v := evaluate(c, expectations, context)).expectation]
    doubtful = [p for p in predicted if "predicted to fail" in p]
    warning = f"Already doubtful: {doubtful[0]}." if doubtful else ""
    return h.model_copy(update={"expectation": "; ".join(dict.fromkeys(predicted)), "warning": warning})


def estimate_minutes(plan: Plan, tok_s: dict[str, float]) -> float:
    """Minutes for all starts of all candidates: output tokens over the predicted speed per point, plus start-up.

    `tok_s` is the predicted total output speed by load point; an open loop takes at least requests / rate. Start-up is
    counted with five minutes a start and stage, the model being on disk.
    """
    seconds = 0.0
    for stage in plan.stages:
        seconds += 300.0
        for name in stage.points:
            p = plan.point(name)
            tokens = (p.requests + p.warmup_requests) * p.output_tokens
            offered = p.requests / p.rate_per_s if p.rate_per_s else 0.0
            seconds += plan.repeats * max(tokens / tok_s[name] if tok_s.get(name) else 0.0, offered)
    return seconds * plan.starts * len(plan.candidates) / 60
