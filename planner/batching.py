"""One step of a batch policy: who runs, who waits, and who loses the cache. Pure; virtual time is the caller's.

    continuous  joins and leaves at every step; KV in blocks as tokens come; when they run out the youngest is preempted
                and later computed again (vLLM's scheduler: running before waiting, first come first served)
    slots       a fixed number of slots with an equal share of the KV cache each; nobody is preempted (Ollama)
    static      a batch starts when the one before has ended whole; its KV is reserved to the last token

A step computes at most `token_budget` tokens, prompts in chunks. The token that ends a step has its KV written in the
next one, so a request of p + n tokens never holds more than p + n - 1.

The emulator runs `step` in real time; planner.queueing runs the same scheduler in virtual time, and takes stretches in
which nothing but decode can happen with `jump`, which gives what as many steps would.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from planner.errors import InputError
from planner.frozen import Frozen

Policy = Literal["continuous", "slots", "static"]
POLICIES: tuple[Policy, ...] = ("continuous", "slots", "static")


class Limits(Frozen):
    """What the server gives: at most `max_num_seqs` requests (or slots), and `kv_blocks` of `block_size` tokens.

    `token_budget` None computes every prompt in one step; else it is at least one token for each request, as vLLM asks.
    """

    policy: Policy = "continuous"
    max_num_seqs: int = Field(default=256, ge=1)
    kv_blocks: int = Field(ge=1)
    block_size: int = Field(default=16, ge=1)
    token_budget: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _budget_feeds_everyone(self) -> Limits:
        if self.token_budget is not None and self.token_budget < self.max_num_seqs:
            raise ValueError("token_budget: below max_num_seqs a running request would starve.")
        if self.policy == "slots" and self.kv_blocks < self.max_num_seqs:
            raise ValueError("kv_blocks: fewer than slots leave a slot without cache.")
        return self

    @property
    def blocks_for_one(self) -> int:
        """Most blocks that one request may ever hold."""
        return self.kv_blocks // self.max_num_seqs if self.policy == "slots" else self.kv_blocks

    def blocks(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_size)

    def check(self, prompt_tokens: int, output_tokens: int) -> None:
        """Raise InputError for a request that could never be served: lengths below 1, or more KV than one may hold."""
        if prompt_tokens < 1 or output_tokens < 1:
            raise InputError(f"a request of {prompt_tokens} + {output_tokens} tokens is none.",
                             fix="Use 1 or more each.")  # fmt: skip
        if self.blocks(prompt_tokens + output_tokens - 1) > self.blocks_for_one:
            most = self.blocks_for_one * self.block_size
            raise InputError(f"{prompt_tokens} + {output_tokens} tokens do not fit the {most} that one request may "
                             "hold.", fix="Shorten it, or give the server more KV cache or fewer slots.")  # fmt: skip


@dataclass(slots=True)
class Sequence:
    """One request: its lengths, tokens produced, tokens whose KV is in the cache, and the blocks it holds for them."""

    id: int
    prompt_tokens: int
    output_tokens: int
    generated: int = 0
    computed: int = 0
    blocks: int = 0

    @property
    def missing(self) -> int:
        """Tokens to compute before the next one can be produced: 1 in decode, the rest of the prompt in prefill."""
        return self.prompt_tokens + self.generated - self.computed


class Step(NamedTuple):
    """One step: the requests that computed and how many tokens each, and what came of it, all by request id.

    `produced` got a token, `first` their first one, `finished` their last. `prefill_tokens` counts prompt tokens, and
    those computed again after a preemption. `kv_blocks` are held during the step.
    """

    worked: list[int]
    tokens: list[int]
    produced: list[int]
    first: list[int]
    finished: list[int]
    preempted: list[int]
    prefill_tokens: int
    kv_blocks: int

    @property
    def batch(self) -> int:
        """Requests that compute in this step."""
        return len(self.worked)


class Scheduler:
    """Requests that run and that wait, each in the order of their arrival, and the steps that they take together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self._free = limits.kv_blocks
        self._decoding = False  # whoever runs is past its prompt
        # A step is taken very often: what it reads of the limits stands here.
        self._size, self._most = limits.block_size, limits.max_num_seqs
        self._continuous = limits.policy == "continuous"
        self._reserved, self._may_join = _RESERVED[limits.policy], _MAY_JOIN[limits.policy]

    @property
    def kv_blocks(self) -> int:
        """Blocks held."""
        return self.limits.kv_blocks - self._free

    @property
    def empty(self) -> bool:
        """Nobody is here."""
        return not self.running and not self.waiting

    def submit(self, request: int, prompt_tokens: int, output_tokens: int) -> None:
        """Put a request at the end of the queue; raises InputError when it could never be served."""
        self.limits.check(prompt_tokens, output_tokens)
        self.waiting.append(Sequence(request, prompt_tokens, output_tokens))

    def cancel(self, request: int) -> None:
        """Take a request out, wherever it is; its blocks are free at once."""
        self._free += sum(s.blocks for s in self.running if s.id == request)
        self.running = [s for s in self.running if s.id != request]
        self.waiting = deque(s for s in self.waiting if s.id != request)

    @property
    def newcomers_wait(self) -> bool:
        """Whoever comes into a calm stretch cannot run before it ends: it is behind others, or there is no place."""
        return bool(self.waiting) or len(self.running) == self._most or self.limits.policy == "static"

    def step(self) -> Step:
        """Run one step of the policy; an empty scheduler gives a step without work.

        Every other step has work: the oldest request always fits, because `submit` refuses what never would.
        """
        budget = self.limits.token_budget or sys.maxsize
        new_batch = not self.running
        tokens, preempted = self._go_on(budget)
        if self.waiting:
            self._admit(tokens, budget - sum(tokens), new_batch=new_batch, lost=bool(preempted))
        return self._end(tokens, preempted)

    def calm_steps(self) -> int:
        """How many of the next steps are plain decode of the requests that run; they may end with the last of these.

        In such a step nobody joins, computes a prompt or is preempted, so all of them take the same time. 0 when the
        next step is another.
        """
        if not self._decoding or not self.running or (self._head_fits() and self._may_join(1, False, False)):
            return 0
        to_the_end = min([s.output_tokens - s.generated for s in self.running])
        return min(to_the_end, self._steps_without_shortage(to_the_end))

    def jump(self, steps: int) -> Step:
        """Run `steps` at once, at most `calm_steps()` and at least 1; what is returned is the last of them."""
        before, size = steps - 1, self._size
        for s in self.running:
            s.generated += before
            s.computed += before
            more = -(-(s.computed + 1) // size) - s.blocks
            if more > 0:
                s.blocks += more
                self._free -= more
        return self._end([1] * len(self.running), [])

    def _go_on(self, budget: int) -> tuple[list[int], list[int]]:
        """Give the running requests their tokens, oldest first; where KV is short the youngest gives its own back."""
        running, size, free = self.running, self._size, self._free
        tokens: list[int] = []
        preempted: list[int] = []
        for s in running.copy():
            if len(tokens) == len(running):  # the rest has been preempted
                break
            n = min(s.prompt_tokens + s.generated - s.computed, budget)
            more = -(-(s.computed + n) // size) - s.blocks
            if more > 0:
                while more > free and len(running) > len(tokens):
                    lost = running.pop()
                    free += lost.blocks
                    lost.computed = lost.blocks = 0
                    self.waiting.appendleft(lost)
                    preempted.append(lost.id)
                if len(running) == len(tokens):
                    break
                free -= more
                s.blocks += more
            budget -= n
            tokens.append(n)
        self._free = free
        return tokens, preempted

    def _admit(self, tokens: list[int], left: int, *, new_batch: bool, lost: bool) -> None:
        """Let the waiting in, in order, until one does not fit; `left` tokens may still be computed."""
        while self._head_fits() and self._may_join(left, new_batch, lost):
            s = self.waiting.popleft()
            n = min(s.missing, left)
            s.blocks = self.limits.blocks(n) if self._continuous else self._reserved(self.limits, s)
            self._free -= s.blocks
            self.running.append(s)
            tokens.append(n)
            left -= n

    def _head_fits(self) -> bool:
        """There is a place and cache for the oldest that waits."""
        return (
            len(self.running) < self._most
            and bool(self.waiting)
            and self._reserved(self.limits, self.waiting[0]) <= self._free
        )

    def _steps_without_shortage(self, wanted: int) -> int:
        """Decode steps for which the free blocks last, exact up to `wanted`: each request needs one per block_size."""
        if not self._continuous:
            return wanted
        size = self._size
        rounds, rest = divmod(self._free, len(self.running))
        if rounds * size >= wanted:
            return wanted
        # After whole rounds everybody stands as before, `rest` blocks are left, and the request after those is short.
        room = sorted([s.blocks * size - s.computed for s in self.running])
        return rounds * size + room[rest]

    def _end(self, tokens: list[int], preempted: list[int]) -> Step:
        """Write down what the step computes, and let those go who have their last token."""
        worked: list[int] = []
        produced: list[int] = []
        first: list[int] = []
        finished: list[int] = []
        prefill_tokens, held = 0, self.kv_blocks
        for s, n in zip(self.running, tokens, strict=True):
            if not n:
                continue
            missing = s.prompt_tokens + s.generated - s.computed
            if missing > 1 or s.computed < s.prompt_tokens:
                prefill_tokens += n
            s.computed += n
            worked.append(s.id)
            if n == missing:
                s.generated += 1
                produced.append(s.id)
                if s.generated == 1:
                    first.append(s.id)
                if s.generated == s.output_tokens:
                    finished.append(s.id)
                    self._free += s.blocks
        self._decoding = len(produced) == len(tokens)
        if finished:
            self.running = [s for s in self.running if s.generated < s.output_tokens]
        return Step(worked, [n for n in tokens if n], produced, first, finished, preempted, prefill_tokens, held)


# What must be free before a request joins. Continuous holds it not yet: vLLM only looks whether the prompt has room.
_RESERVED: dict[Policy, Callable[[Limits, Sequence], int]] = {
    "continuous": lambda limits, s: limits.blocks(s.missing),
    "slots": lambda limits, s: limits.blocks_for_one,
    "static": lambda limits, s: limits.blocks(s.prompt_tokens + s.output_tokens - 1),
}
# Who may join, given the tokens left in the step, whether it began with nobody, and whether somebody lost the cache.
_MAY_JOIN: dict[Policy, Callable[[int, bool, bool], bool]] = {
    "continuous": lambda left, new_batch, lost: left > 0 and not lost,
    "slots": lambda left, new_batch, lost: True,
    "static": lambda left, new_batch, lost: new_batch,
}
