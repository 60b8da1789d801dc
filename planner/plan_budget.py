"""What a plan costs before it runs: minutes and tokens per candidate, stage and load point; trimmed to a budget.

Each candidate is counted at its own predicted speed (planner/throughput.py, planning value). What has no predicted
speed is counted at the plan's own limit for a point: the most that it can take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from planner.conditions import Kind
from planner.frozen import Frozen
from planner.loads import LoadPoint
from planner.poc import Plan, PlanCandidate, Stage
from planner.throughput import MFU, ThroughputInputs, total_tok_s, user_tok_s

STARTUP_S = 300.0  # loading, compiling and the first request, the model being on disk
WARMUP_ROUNDS = 2  # bench/warmup.py: two rounds that agree, five at most

Ends = Literal["predicted", "stop rule", "no prediction"]
SpeedOf = Callable[[PlanCandidate, LoadPoint], ThroughputInputs | None]


class PointCost(Frozen):
    """One load point of one candidate in one stage: seconds and tokens of one repeat, and how often it runs.

    `ends` says what the seconds rest on: the prediction, or the plan's limit for a point because the prediction is
    longer, or because there is none.
    """

    candidate: str
    stage: str
    point: str
    times: int
    seconds: float
    prompt_tokens: int
    output_tokens: int
    ends: Ends

    @property
    def total_s(self) -> float:
        """Seconds over all starts and repeats."""
        return self.times * self.seconds


class StartCost(Frozen):
    """Start-ups of one candidate in one stage; `times` is 0 for a server that is only attached to."""

    candidate: str
    stage: str
    times: int

    @property
    def total_s(self) -> float:
        """Seconds over all starts."""
        return self.times * STARTUP_S


class PlanCost(Frozen):
    """What a whole plan costs, by point and by start-up."""

    points: tuple[PointCost, ...]
    starts: tuple[StartCost, ...]

    @property
    def minutes(self) -> float:
        """Machine time for all starts and loads; downloads are not in it."""
        return sum(p.total_s for p in self.points) / 60 + self.start_minutes

    @property
    def start_minutes(self) -> float:
        """The part of it in which servers start."""
        return sum(s.total_s for s in self.starts) / 60

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens that are sent, warm-up included."""
        return sum(p.times * p.prompt_tokens for p in self.points)

    @property
    def output_tokens(self) -> int:
        """Output tokens that are asked for, warm-up included."""
        return sum(p.times * p.output_tokens for p in self.points)

    def minutes_of(self, candidate: str = "", points: tuple[str, ...] = ()) -> float:
        """Minutes of one candidate, of some points, or of both; start-ups only where no points are named."""
        load = [p for p in self.points if candidate in ("", p.candidate) and (not points or p.point in points)]
        starts = [] if points else [s for s in self.starts if candidate in ("", s.candidate)]
        return (sum(p.total_s for p in load) + sum(s.total_s for s in starts)) / 60


def plan_cost(plan: Plan, speed_of: SpeedOf) -> PlanCost:
    """The cost of a plan; `speed_of` gives a candidate's predicted speed at a point's lengths, None for no prediction.

    A server that we attach to has one start, as in the instrument, and takes no time to start.
    """
    points, starts = [], []
    for candidate in plan.candidates:
        times = plan.starts if candidate.launch.command else 1
        for stage in plan.stages_of(candidate):
            starts.append(
                StartCost(candidate=candidate.id, stage=stage.name, times=times if candidate.launch.command else 0)
            )
            for name in stage.points:
                point = plan.point(name)
                inputs = speed_of(candidate, point)
                limit = batch_limit(plan, candidate, stage, inputs, speed_of)
                points.append(_point_cost(plan, candidate, stage, point, times * plan.repeats, inputs, limit))
    return PlanCost(points=tuple(points), starts=tuple(starts))


def batch_limit(
    plan: Plan, candidate: PlanCandidate, stage: Stage, inputs: ThroughputInputs | None, speed_of: SpeedOf
) -> int | None:
    """Most requests that the server computes together in a stage: its contract, or what the stage's rule will set.

    The rule's setting is predicted as the instrument draws it: the largest point up to which the promised speed is
    kept, the smallest where none keeps it. None where nothing limits the batch.
    """
    stated = candidate.contract.get("max_num_seqs", "")
    limits = [int(stated)] if stated.isdecimal() and int(stated) else []
    if inputs and inputs.kv_capacity:
        limits.append(inputs.kv_capacity)
    if stage.rule and stage.rule.setting in candidate.launch.stage_settings:
        drawn = predicted_setting(plan, candidate, stage, speed_of)
        limits += [drawn] if drawn else []
    return min(limits, default=None)


def ladder(plan: Plan, stage: Stage) -> tuple[LoadPoint, ...]:
    """The closed points that a stage's rule looks at, from small to large."""
    source = next((s for s in plan.stages if stage.rule and s.name == stage.rule.from_stage), None)
    points = (plan.point(name) for name in source.points) if source else ()
    return tuple(
        sorted((p for p in points if p.shape == "closed" and not p.free_length), key=lambda p: p.in_flight or 0)
    )


def ladder_up_to(plan: Plan, limit: int) -> Plan:
    """A plan whose ladders end at `limit` requests in flight; larger points would queue, so the rule's stage runs them.

    The smallest rung stays, whatever the limit.
    """
    stages = list(plan.stages)
    for i, stage in enumerate(plan.stages):
        above = tuple(p.name for p in ladder(plan, stage)[1:] if (p.in_flight or 0) > limit)
        for j, source in enumerate(stages if above else ()):
            if stage.rule and source.name == stage.rule.from_stage:
                left = tuple(n for n in source.points if n not in above)
                stages[j] = source.model_copy(update={"points": left})
                own = tuple(n for n in stages[i].points if n not in above)
                stages[i] = stages[i].model_copy(update={"points": above + own})
    return plan.model_copy(update={"stages": tuple(stages)})


def predicted_setting(plan: Plan, candidate: PlanCandidate, stage: Stage, speed_of: SpeedOf) -> int | None:
    """What a stage's rule will probably set, in requests; None where its promise is not one of speed per user."""
    rungs = ladder(plan, stage)
    if not rungs or stage.rule is None or stage.rule.keeps.metric != "user_tok_s":
        return None
    kept = rungs[0].in_flight or 1
    for point in rungs:
        inputs = speed_of(candidate, point)
        if inputs is None:
            return None
        if not stage.rule.keeps.holds_for(user_tok_s(inputs, Kind.PLANNING, point.in_flight or 1)):
            break
        kept = point.in_flight or 1
    return kept


def _point_cost(
    plan: Plan, candidate: PlanCandidate, stage: Stage, point: LoadPoint, times: int,
    inputs: ThroughputInputs | None, limit: int | None,
) -> PointCost:  # fmt: skip
    most = plan.stop.max_point_s
    predicted = _seconds(point, inputs, limit) if inputs else None
    ends: Ends = "no prediction" if predicted is None else "stop rule" if predicted[1] > most else "predicted"
    warm_s, load_s = predicted or (0.0, most)
    sent = point.requests + WARMUP_ROUNDS * point.warmup_requests + tail_requests(point)
    beside = point.aggressors or 0
    return PointCost(
        candidate=candidate.id, stage=stage.name, point=point.name, times=times, ends=ends,
        seconds=warm_s + min(load_s, most),
        prompt_tokens=sent * point.input_tokens + beside * (point.aggressor_input_tokens or 0),
        output_tokens=sent * point.output_tokens + beside * point.aggressor_output_tokens,
    )  # fmt: skip


def tail_requests(point: LoadPoint) -> int:
    """Requests behind the counted ones of a closed loop, one a slot, that keep the load up until those have ended.

    An open loop goes on at its rate for a time that nobody knows beforehand; what it sends then is cancelled.
    """
    n = point.in_flight or 0
    return n if point.shape != "quality" and 1 < n < point.requests / 2 else 0


def _seconds(point: LoadPoint, inputs: ThroughputInputs, limit: int | None) -> tuple[float, float] | None:
    """Seconds of warm-up and of the load of one repeat; None for a trace, whose times stand in its file."""
    if point.shape == "trace":
        return None

    def alone(batch: int) -> float:
        return point.output_tokens / user_tok_s(inputs, Kind.PLANNING, _running(batch, limit))

    def together(requests: int, batch: int) -> float:
        total = total_tok_s(inputs, Kind.PLANNING, _running(batch, limit))
        return max(requests * point.output_tokens / total, alone(batch))

    warm = point.warmup_requests
    warm_s = WARMUP_ROUNDS * together(warm, warm) if warm else 0.0
    if point.in_flight is None:
        offered_s, rate = _offered(point)
        batch = _keeps_up(point.output_tokens * rate, inputs, limit)
        return warm_s, max(offered_s + alone(batch), together(point.requests, batch))
    load_s = together(point.requests + tail_requests(point), point.in_flight)
    return warm_s, load_s + _aggressors_s(point, inputs)


def _running(batch: int, limit: int | None) -> int:
    return max(1, batch if limit is None else min(batch, limit))


def _offered(point: LoadPoint) -> tuple[float, float]:
    """Seconds in which an open loop sends its requests, and its rate at the end."""
    rate = point.rate_per_s or 1.0
    if point.ramp_s is None or point.rate_to_per_s is None:
        return point.requests / rate, rate
    left = point.requests - point.expected_by(point.ramp_s)
    return point.ramp_s + max(0.0, left) / point.rate_to_per_s, point.rate_to_per_s


def _keeps_up(tok_s: float, inputs: ThroughputInputs, limit: int | None) -> int:
    """The smallest batch whose total is what is asked for; the largest that runs where none is."""
    most = limit or 4096
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if total_tok_s(inputs, Kind.PLANNING, middle) >= tok_s:
            high = middle
        else:
            low = middle + 1
    return low


def _aggressors_s(point: LoadPoint, inputs: ThroughputInputs) -> float:
    if not point.aggressors or inputs.prefill_s is None:
        return 0.0
    per_token_s = inputs.prefill_s / MFU[inputs.family] / point.input_tokens
    return point.aggressors * (point.aggressor_input_tokens or 0) * per_token_s
