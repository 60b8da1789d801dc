"""A log as a trace to replay: when, how many tokens in and out, and nothing else that could name anyone.

The instrument reads it as the file of a load point of shape trace; the simulator takes it as a load.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from planner.errors import InputError
from planner.frozen import Frozen
from planner.loads import LoadPoint
from planner.queue_load import Load, TraceRow
from planner.statistics import percentile
from planner.traffic import Requests

COLUMNS = ("t_s", "input_tokens", "output_tokens", "session")
WARMUP = 2


class ReplayRow(NamedTuple):
    """One request of a replay: seconds after its begin, lengths in tokens, number of its session or -1."""

    t_s: float
    input_tokens: int
    output_tokens: int
    session: int = -1


class Cut(Frozen):
    """Which part of a log is replayed, and how fast.

    The replay lasts `duration_s` (None: as long as the log): the window with most requests is taken, `rate_scale` times
    as long, and played `rate_scale` times as fast, so that bursts keep their shape. Of more than `requests` a draw by
    `seed` stays, in its order. A log without times gets Poisson arrivals at `rate_per_s`, by the same seed.
    """

    duration_s: float | None = Field(default=None, gt=0)
    rate_scale: float = Field(default=1.0, gt=0, le=1000)
    requests: int | None = Field(default=None, ge=1)
    rate_per_s: float | None = Field(default=None, gt=0, le=100_000)
    seed: int = 1


def replay(r: Requests, cut: Cut) -> tuple[ReplayRow, ...]:
    """The rows of a replay by time, the same for the same log and cut; the first is at 0.

    Requests without prompt or answer are left out: nothing can be sent or measured for them. Sessions are numbered
    anew in the order in which they come. Raises InputError when nothing is left, or a rate is missing.
    """
    rng = random.Random(f"replay {cut.seed}")
    usable = [i for i in range(len(r.input_tokens)) if r.input_tokens[i] > 0 and r.output_tokens[i] > 0]
    if not usable:
        raise InputError("holds no request with a prompt and an answer.", where="replay", fix="Bring another log.")
    if r.at_s is None:
        chosen = sorted(rng.sample(usable, min(len(usable), cut.requests or len(usable))))
        times = _poisson(rng, cut, len(chosen))
        chosen = chosen[: len(times)]
    else:
        window = _busiest(r.at_s, usable, cut)
        chosen = sorted(rng.sample(window, min(len(window), cut.requests or len(window))))
        times = [(r.at_s[i] - r.at_s[chosen[0]]) / cut.rate_scale for i in chosen]
    numbers: dict[int, int] = {-1: -1}
    return tuple(
        ReplayRow(round(at, 6), r.input_tokens[i], r.output_tokens[i],
                  -1 if r.session is None else numbers.setdefault(r.session[i], len(numbers) - 1))
        for at, i in zip(times, chosen, strict=True)
    )  # fmt: skip


def _busiest(at_s: array[float], usable: Sequence[int], cut: Cut) -> Sequence[int]:
    """The usable requests of the window that holds most of them; the earliest such window."""
    if cut.duration_s is None:
        return usable
    times = [at_s[i] for i in usable]
    length = cut.duration_s * cut.rate_scale
    best = (0, 0)
    after = 0
    for first, begin in enumerate(times):
        while after < len(times) and times[after] < begin + length:
            after += 1
        if after - first > best[1] - best[0]:
            best = first, after
    return usable[best[0] : best[1]]


def _poisson(rng: random.Random, cut: Cut, n: int) -> list[float]:
    if cut.rate_per_s is None:
        raise InputError("the log has no times, so it says nothing about a rate.", where="replay",
                         fix="State the requests per second.")  # fmt: skip
    times = [0.0]
    while len(times) < n:
        times.append(times[-1] + rng.expovariate(cut.rate_per_s * cut.rate_scale))
    return times if cut.duration_s is None else times[: bisect_left(times, cut.duration_s)]


def trace_csv(rows: Sequence[ReplayRow]) -> bytes:
    """The rows as the CSV that `python -m bench run` reads; the session only where there are any."""
    names = COLUMNS if any(row.session >= 0 for row in rows) else COLUMNS[:3]
    lines = [",".join(names)]
    for row in rows:
        cells = [f"{row.t_s:.6f}".rstrip("0").rstrip("."), str(row.input_tokens), str(row.output_tokens)]
        lines.append(",".join([*cells, "" if row.session < 0 else str(row.session)][: len(names)]))
    return ("\n".join(lines) + "\n").encode()


def trace_point(name: str, file: str, rows: Sequence[ReplayRow]) -> LoadPoint:
    """The load point that a plan states for the file; the warm-up has the replay's median lengths."""
    return LoadPoint(
        name=name, shape="trace", trace_file=file, file_sha256=hashlib.sha256(trace_csv(rows)).hexdigest(),
        requests=len(rows), warmup_requests=WARMUP,
        input_tokens=round(percentile([row.input_tokens for row in rows], 50)),
        output_tokens=round(percentile([row.output_tokens for row in rows], 50)),
    )  # fmt: skip


def trace_load(rows: Sequence[ReplayRow]) -> Load:
    """The same replay for the simulator."""
    return Load(process="trace", trace=tuple(
        TraceRow(at_s=row.t_s, input_tokens=row.input_tokens, output_tokens=row.output_tokens) for row in rows
    ))  # fmt: skip
