"""What a simulated server did: every request, the server over time, and a summary that prints as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.batching import Policy
from planner.frozen import Frozen
from planner.statistics import percentile


class Served(NamedTuple):
    """One request, in seconds of virtual time and tokens."""

    arrived_s: float
    started_s: float
    first_token_s: float
    finished_s: float
    prompt_tokens: int
    output_tokens: int

    @property
    def waiting_s(self) -> float:
        """From arrival to the step that first computes it."""
        return self.started_s - self.arrived_s

    @property
    def ttft_s(self) -> float:
        """From arrival to the first token, the queue included."""
        return self.first_token_s - self.arrived_s

    @property
    def e2e_s(self) -> float:
        """From arrival to the last token."""
        return self.finished_s - self.arrived_s

    @property
    def user_tok_s(self) -> float | None:
        """Speed after the first token; None for an answer of one token."""
        later = self.output_tokens - 1
        return later / (self.finished_s - self.first_token_s) if later else None


class Look(NamedTuple):
    """The server at one moment: share of KV blocks held, requests that run, requests that wait."""

    t_s: float
    kv_share: float
    running: int
    waiting: int


class Distribution(Frozen):
    """Mean and percentiles of `n` requests."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: list[float]) -> Distribution | None:
        """The distribution of these values; None without any."""
        if not values:
            return None
        ordered = sorted(values)
        p50, p90, p95, p99 = (percentile(ordered, q) for q in (50, 90, 95, 99))
        return cls(n=len(ordered), mean=math.fsum(ordered) / len(ordered), p50=p50, p90=p90, p95=p95, p99=p99)


class Summary(Frozen):
    """What a simulation says, without its requests. Never measured: `kind` says so in every JSON.

    `goodput` is the share of requests that met both stated limits. `left_running` and `left_waiting` were there when
    arrivals stopped; `mean_in_system` and `busy_share` are averages over the time until then.
    """

    kind: Literal["simulated"] = "simulated"
    policy: Policy
    seed: int
    simulated_s: float
    requests: int
    left_running: int
    left_waiting: int
    waiting_s: Distribution | None
    ttft_s: Distribution | None
    e2e_s: Distribution | None
    user_tok_s: Distribution | None
    goodput: float | None
    output_tok_s: float
    busy_share: float
    mean_in_system: float
    preemptions: int
    kv_peak_share: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """Every request of a run and the server over time.

    `served` are in the order of arrival. `simulated_s` is when arrivals stopped; up to then `output_tokens` came out,
    the server worked for `busy_s`, and requests spent `request_s` in it, `left_running` and `left_waiting` included.
    """

    policy: Policy
    seed: int
    served: tuple[Served, ...]
    timeline: tuple[Look, ...]
    simulated_s: float
    output_tokens: int
    busy_s: float
    request_s: float
    left_running: int
    left_waiting: int
    preemptions: int
    kv_peak_share: float

    def after(self, warmup_s: float) -> tuple[Served, ...]:
        """Requests that arrived when the server had been running for a while."""
        return tuple(s for s in self.served if s.arrived_s >= warmup_s)

    def summary(self, ttft_s: float = math.inf, user_tok_s: float = 0.0, warmup_s: float = 0.0) -> Summary:
        """Distributions of the requests after `warmup_s`, and the share of them within both limits."""
        counted = self.after(warmup_s)
        speeds = [s.user_tok_s for s in counted]
        met = sum(
            s.ttft_s <= ttft_s and (speed is None or speed >= user_tok_s)
            for s, speed in zip(counted, speeds, strict=True)
        )
        over = self.simulated_s or math.inf
        return Summary(
            policy=self.policy, seed=self.seed, simulated_s=self.simulated_s, requests=len(counted),
            left_running=self.left_running, left_waiting=self.left_waiting,
            waiting_s=Distribution.of([s.waiting_s for s in counted]),
            ttft_s=Distribution.of([s.ttft_s for s in counted]), e2e_s=Distribution.of([s.e2e_s for s in counted]),
            user_tok_s=Distribution.of([speed for speed in speeds if speed is not None]),
            goodput=met / len(counted) if counted else None, output_tok_s=self.output_tokens / over,
            busy_share=self.busy_s / over, mean_in_system=self.request_s / over, preemptions=self.preemptions,
            kv_peak_share=self.kv_peak_share,
        )  # fmt: skip
