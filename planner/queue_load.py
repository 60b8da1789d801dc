"""Who comes to a simulated server, when, and with how many tokens: a closed loop, an open one, or a recorded trace."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from pydantic import Field, model_validator

from planner.frozen import Frozen

Process = Literal["closed", "constant", "poisson", "gamma", "trace"]
LengthShape = Literal["fixed", "geometric", "lognormal"]
NS = 1_000_000_000


class Lengths(Frozen):
    """Mean lengths in tokens and how single ones differ; `cv` is standard deviation over mean, for lognormal only.

    Prompt and output together are cut to `context_tokens`, the output first, as an engine does with max_model_len.
    Geometric is the exponential distribution in whole tokens.
    """

    input_tokens: int = Field(ge=1, le=2_000_000)
    output_tokens: int = Field(ge=1, le=1_000_000)
    shape: LengthShape = "fixed"
    cv: float = Field(default=1.0, gt=0, le=10)
    context_tokens: int | None = Field(default=None, ge=2)

    def draw(self, rng: random.Random) -> tuple[int, int]:
        """Prompt and output of one request."""
        one = _DRAW[self.shape]
        prompt, output = one(rng, self.input_tokens, self.cv), one(rng, self.output_tokens, self.cv)
        if self.context_tokens is None:
            return prompt, output
        prompt = min(prompt, self.context_tokens - 1)
        return prompt, min(output, self.context_tokens - prompt)


def _geometric(rng: random.Random, mean: int, cv: float) -> int:
    return 1 if mean == 1 else 1 + int(math.log(1.0 - rng.random()) / math.log1p(-1.0 / mean))


def _lognormal(rng: random.Random, mean: int, cv: float) -> int:
    variance = math.log1p(cv * cv)
    return max(1, round(rng.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))))


_DRAW: dict[LengthShape, Callable[[random.Random, int, float], int]] = {
    "fixed": lambda rng, mean, cv: mean,
    "geometric": _geometric,
    "lognormal": _lognormal,
}


class TraceRow(Frozen):
    """One recorded request: seconds after the first one, and lengths in tokens."""

    at_s: float = Field(ge=0)
    input_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)


class Load(Frozen):
    """A load on one server; lengths come from `lengths`, or from the rows of `trace` drawn at random.

    closed: `users` who each ask, wait for the whole answer, and think for `think_s` on average (exponential).
    constant, poisson, gamma: `rate_per_s`, whatever the server does; gamma with shape `burstiness`, so that 1 is
    poisson and less comes in bursts (as vLLM's benchmark defines it). trace: the rows as they were recorded.
    """

    process: Process
    users: int | None = Field(default=None, ge=1, le=100_000)
    think_s: float = Field(default=0.0, ge=0, le=86_400)
    rate_per_s: float | None = Field(default=None, gt=0, le=100_000)
    burstiness: float = Field(default=1.0, gt=0)
    lengths: Lengths | None = None
    trace: tuple[TraceRow, ...] = ()

    @model_validator(mode="after")
    def _states_what_it_needs(self) -> Load:
        stated = {"users": self.users is not None, "rate_per_s": self.rate_per_s is not None}
        needed = {"closed": "users", "trace": ""}.get(self.process, "rate_per_s")
        if {name for name, there in stated.items() if there} != ({needed} - {""}):
            raise ValueError("process: a closed loop states users, a trace neither, every other load rate_per_s.")
        if (self.lengths is None) == (not self.trace) or (self.process == "trace" and not self.trace):
            raise ValueError("lengths: state lengths or a trace that has them, not both; process trace needs a trace.")
        return self


class Source:
    """The requests of a load one after the other, the same for the same seed whatever the server does with them.

    `due` is a heap of arrival times in ns; a closed loop fills it as answers end. Times and lengths are drawn from
    two streams, so that two policies meet the same requests.
    """

    def __init__(self, load: Load, seed: int, requests: int | None) -> None:
        self._load = load
        self._when = random.Random(f"arrivals {seed}")
        self._what = random.Random(f"lengths {seed}")
        self._rows = iter(sorted(load.trace, key=lambda row: row.at_s)) if load.process == "trace" else iter(())
        self._times = islice(self._open_times(), requests) if load.process != "closed" else iter(())
        self._left = requests
        self.due: list[int] = []
        if load.users:
            for _ in range(load.users):
                self._think(0)
        self._next_of_open()

    def take(self) -> tuple[int, int, int]:
        """The next request: when it came in ns, prompt tokens, output tokens."""
        at = heapq.heappop(self.due)
        self._next_of_open()
        if self._load.process == "trace":
            row = next(self._rows)
        elif self._load.lengths:
            return at, *self._load.lengths.draw(self._what)
        else:
            row = self._what.choice(self._load.trace)
        return at, row.input_tokens, row.output_tokens

    def answered(self, now: int) -> None:
        """A request has ended: in a closed loop its user thinks and asks again."""
        if self._load.users:
            self._think(now)

    def _think(self, now: int) -> None:
        if self._left is not None:
            if not self._left:
                return
            self._left -= 1
        mean = self._load.think_s
        heapq.heappush(self.due, now + (round(self._when.expovariate(1 / mean) * NS) if mean else 0))

    def _next_of_open(self) -> None:
        for at in islice(self._times, 1):
            heapq.heappush(self.due, at)

    def _open_times(self) -> Iterator[int]:
        load, now = self._load, 0.0
        if load.process == "trace":
            yield from (round(row.at_s * NS) for row in sorted(load.trace, key=lambda row: row.at_s))
            return
        rate = load.rate_per_s or 1.0
        shape = load.burstiness if load.process == "gamma" else 1.0
        while True:
            if load.process == "constant":
                now += 1.0 / rate
            elif shape == 1.0:
                now += self._when.expovariate(rate)
            else:
                now += self._when.gammavariate(shape, 1.0 / (rate * shape))
            yield round(now * NS)
