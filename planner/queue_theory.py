"""What queueing theory knows of one server, and the interval around a simulated mean that it is held against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from planner.batching import Limits
from planner.errors import InputError
from planner.queue_load import Lengths, Load
from planner.queueing import simulate
from planner.step_time import StepTime

BATCHES = 10
# Two-sided quantile of Student's t for nine degrees of freedom (any statistics table). At 99.9 % eighty intervals, ten
# seeds of eight cases, hold together at 92 %; at 95 % four of them would miss by chance alone.
CONFIDENCE, T_QUANTILE = 0.999, 4.781
# Requests per run over 1 / (1 - utilisation)^2, the number after which a queue forgets how long it was: a batch then
# spans many of these, and the means of two batches are nearly independent.
FORGETS = 40
LEAST_REQUESTS, WARMUP = 5_000, 0.1
EXPONENTIAL_TOKENS = 200


def mean_waiting_s(rate_per_s: float, service_s: float, service_cv: float) -> float:
    """Mean wait in s of Poisson arrivals before one server: rate x E[S^2] / (2 (1 - utilisation)).

    `service_cv` is 1 for exponential service times (M/M/1), 0 for equal ones (M/D/1). Raises InputError when more
    arrives than is served. Source: Pollaczek-Khinchine formula (Kleinrock 1975, Queueing Systems I, 5.7).
    """
    utilisation = rate_per_s * service_s
    if utilisation >= 1:
        raise InputError(f"at a utilisation of {utilisation:.2f} the queue grows without end.", where="queueing theory",
                         fix="Lower the rate or the service time.")  # fmt: skip
    return rate_per_s * service_s**2 * (1 + service_cv**2) / (2 * (1 - utilisation))


class Interval(NamedTuple):
    """A mean and the interval in which the true one lies at CONFIDENCE."""

    mean: float
    low: float
    high: float


def batch_means(values: Sequence[float]) -> Interval:
    """Interval for the mean of values that depend on their neighbours: from the means of BATCHES long stretches.

    Raises InputError for fewer values than batches. Source: Law and Carson 1979, Operations Research 27(5).
    """
    size = len(values) // BATCHES
    if not size:
        raise InputError(f"{len(values)} values do not make {BATCHES} batches.", where="batch means",
                         fix="Simulate longer.")  # fmt: skip
    means = [math.fsum(values[i * size : (i + 1) * size]) / size for i in range(BATCHES)]
    mean = math.fsum(means) / BATCHES
    variance = math.fsum((m - mean) ** 2 for m in means) / (BATCHES - 1)
    half = T_QUANTILE * math.sqrt(variance / BATCHES)
    return Interval(mean, mean - half, mean + half)


def simulated_waiting(utilisation: float, *, exponential: bool, seed: int, forgets: int = FORGETS) -> Interval:
    """Mean wait before a server with one slot and a service time of 1 s, by the simulator that sizes use.

    The service time is the length of the answer: one token of 1 s each, or geometrically many of 5 ms, which is
    exponential to within 0.5 % of E[S^2].
    """
    tokens = EXPONENTIAL_TOKENS if exponential else 1
    lengths = Lengths(input_tokens=1, output_tokens=tokens, shape="geometric")
    requests = max(LEAST_REQUESTS, round(forgets * BATCHES / (1 - utilisation) ** 2))
    run = simulate(
        Load(process="poisson", rate_per_s=utilisation, lengths=lengths), Limits(max_num_seqs=1, kv_blocks=1_000_000),
        StepTime(base_s=1 / tokens), seed=seed, requests=requests,
    )  # fmt: skip
    return batch_means([s.waiting_s for s in run.served[round(WARMUP * requests) :]])
