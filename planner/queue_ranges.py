"""Waiting for a sized server: TTFT as a range over what the load may be like, and the policies side by side."""

from __future__ import annotations

from typing import NamedTuple

from planner.batching import POLICIES, Limits, Policy
from planner.capacity import Sizing
from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.queue_load import Lengths, Load, Process
from planner.queue_result import Simulation, Summary
from planner.queueing import simulate
from planner.requirements import Requirements
from planner.step_time import StepTime

BLOCK_TOKENS = 16
BURSTINESS = 0.25  # of arrivals that come in bursts: gaps vary twice as much as in poisson arrivals
SPREAD_CV = 1.0  # of lengths that differ: near what public traces of chat show
ENDS = (Kind.BOUND, Kind.PLANNING)
WARMUP = 0.25  # share of a window in which the server fills up
_WINDOW_S, _REQUESTS, _ANSWERS, _MOST_REQUESTS = 600.0, 300, 4, 1500
_GROWS = 0.1  # share of all requests that still wait when the window ends


class Server(NamedTuple):
    """What a sizing makes of one unit: places and cache, and the time of a step."""

    limits: Limits
    step: StepTime

    def answer_s(self, requirements: Requirements, batch: int) -> float:
        """Seconds from the first step to the last token of a request of the stated lengths among `batch`."""
        alike = min(batch, self.limits.max_num_seqs)
        alone = self.step.seconds(1, requirements.input_tokens) - self.step.seconds(1)
        return alone + requirements.output_tokens * self.step.seconds(alike)


def server(sizing: Sizing, requirements: Requirements, kind: Kind, policy: Policy = "continuous") -> Server:
    """One unit of the sizing. Raises InputError where it holds not one request or has no known speed.

    Continuous batching computes prompts in chunks of max_num_batched_tokens; slots and static batches whole prompts.
    """
    if sizing.inputs is None or not sizing.requests_that_fit:
        raise InputError("no request fits, or no speed is known, so nobody can be simulated.", where="queueing",
                         fix="Choose a plan that fits a machine of known bandwidth.")  # fmt: skip
    seqs = sizing.launch.max_num_seqs
    blocks = int(sizing.memory.engine_kv.max_concurrency * -(-sizing.context_tokens // BLOCK_TOKENS))
    budget = max(sizing.settings.max_num_batched_tokens, seqs) if policy == "continuous" else None
    limits = Limits(policy=policy, max_num_seqs=seqs, kv_blocks=blocks, block_size=BLOCK_TOKENS, token_budget=budget)
    return Server(limits, StepTime.of(sizing.inputs, requirements.input_tokens, kind))


def offered(
    server: Server, requirements: Requirements, process: Process, *, users: int, pauses: bool = True,
    spread: bool = False,
) -> Load:  # fmt: skip
    """The stated load of so many users on one unit, as a closed loop or as arrivals that do not look at the server.

    A closed loop with pauses thinks as long as makes the stated requests per minute on an empty server.
    """
    lengths = Lengths(
        input_tokens=requirements.input_tokens, output_tokens=requirements.output_tokens,
        shape="lognormal" if spread else "fixed", cv=SPREAD_CV, context_tokens=requirements.context_tokens,
    )  # fmt: skip
    cycle_s = 60 / requirements.requests_per_user_per_min
    if process == "closed":
        think_s = max(0.0, cycle_s - server.answer_s(requirements, 1)) if pauses else 0.0
        return Load(process="closed", users=users, think_s=think_s, lengths=lengths)
    return Load(process=process, rate_per_s=users / cycle_s, burstiness=BURSTINESS, lengths=lengths)


class Window(NamedTuple):
    """A stretch of virtual time, and the part of it that is not counted, in seconds."""

    duration_s: float
    warmup_s: float


def window(server: Server, requirements: Requirements, load: Load) -> Window:
    """Long enough for some hundred requests and some answers each, at most ten minutes and 1,500 requests."""
    answer_s = server.answer_s(requirements, load.users or server.limits.max_num_seqs)
    rate = load.rate_per_s or (load.users or 1) / (answer_s + load.think_s)
    duration_s = min(_WINDOW_S, max(_REQUESTS / rate, _ANSWERS * answer_s), _MOST_REQUESTS / rate)
    return Window(duration_s, WARMUP * duration_s)


class WaitingCase(Frozen):
    """One assumption about the load, with the step times of one kind of estimate; times in s. Simulated."""

    load: str
    kind: Kind
    ttft_p50_s: float
    ttft_p95_s: float
    e2e_p50_s: float
    e2e_p95_s: float
    goodput: float
    grows: bool


class WaitingRange(Frozen):
    """What TTFT may be on one unit, from the kindest to the harshest assumption. Predicted by simulation, not measured.

    `grows` names the loads whose queue never ends: there a longer window would show longer times.
    """

    seed: int
    units: int
    cases: tuple[WaitingCase, ...]

    @property
    def ttft_p50_s(self) -> tuple[float, float]:
        """Lowest and highest median."""
        found = [c.ttft_p50_s for c in self.cases]
        return min(found), max(found)

    @property
    def ttft_p95_s(self) -> tuple[float, float]:
        """Lowest and highest 95th percentile."""
        found = [c.ttft_p95_s for c in self.cases]
        return min(found), max(found)

    @property
    def grows(self) -> tuple[str, ...]:
        """Loads whose queue grows at the planning speed."""
        return tuple(c.load for c in self.cases if c.grows and c.kind is Kind.PLANNING)


class _Assumption(NamedTuple):
    name: str
    process: Process
    most_users: bool = True
    pauses: bool = True


def _assumptions(requirements: Requirements) -> tuple[_Assumption, ...]:
    arrival = requirements.arrival
    return (
        _Assumption("fewest users, with pauses", "closed", most_users=False),
        _Assumption("most users, with pauses", "closed"),
        _Assumption(f"most users, {arrival} arrivals", arrival),
        _Assumption("most users, no pauses", "closed", pauses=False),
    )


def share(users: int, units: int) -> int:
    """Users of the fullest of the units that share them evenly."""
    return -(-users // units)


def waiting_range(sizing: Sizing, requirements: Requirements, *, units: int = 1, seed: int = 0) -> WaitingRange:
    """TTFT on one of `units` that share the peak, over the assumptions, by the bound and by the planning value.

    Raises InputError where nothing can be simulated.
    """
    cases = []
    for kind in ENDS:
        one = server(sizing, requirements, kind)
        for a in _assumptions(requirements):
            users = share(requirements.peak_users_max if a.most_users else requirements.peak_users_min, units)
            load = offered(one, requirements, a.process, users=users, pauses=a.pauses)
            cases.append(_case(a.name, kind, one, requirements, load, seed))
    return WaitingRange(seed=seed, units=units, cases=tuple(cases))


def _case(name: str, kind: Kind, one: Server, r: Requirements, load: Load, seed: int) -> WaitingCase:
    span = window(one, r, load)
    run = simulate(load, one.limits, one.step, seed=seed, duration_s=span.duration_s)
    if not run.after(span.warmup_s):  # a handful of requests in ten minutes: all of them count
        span = span._replace(warmup_s=0.0)
    s = run.summary(r.ttft_s, r.user_tok_s_promise, span.warmup_s)
    if s.ttft_s is None or s.e2e_s is None or s.goodput is None:
        raise InputError(f"nobody comes within {span.duration_s:.0f} s.", where="queueing",
                         fix="Raise the requests per user and minute.")  # fmt: skip
    return WaitingCase(
        load=name, kind=kind, ttft_p50_s=s.ttft_s.p50, ttft_p95_s=s.ttft_s.p95, e2e_p50_s=s.e2e_s.p50,
        e2e_p95_s=s.e2e_s.p95, goodput=s.goodput, grows=grows(s),
    )  # fmt: skip


def grows(summary: Summary) -> bool:
    """Whether so many still waited when arrivals stopped that a longer run would have shown longer times."""
    return summary.left_waiting > _GROWS * summary.requests


def compare(
    sizing: Sizing, requirements: Requirements, process: Process, *, units: int = 1, spread: bool = False, seed: int = 0
) -> tuple[tuple[Simulation, Window], ...]:
    """The three policies on the same unit at the planning speed under the same arrivals, with what is counted of each.

    Raises InputError where nothing can be simulated.
    """
    found = []
    for policy in POLICIES:
        one = server(sizing, requirements, Kind.PLANNING, policy)
        load = offered(one, requirements, process, users=share(requirements.peak_users_max, units), spread=spread)
        span = window(one, requirements, load)
        found.append((simulate(load, one.limits, one.step, seed=seed, duration_s=span.duration_s), span))
    return tuple(found)
