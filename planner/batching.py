"""One step of a batch policy: who runs, who waits, and who loses the cache. Pure; virtual time is the caller's.

    continuous  joins and leaves at every step; KV in blocks as tokens come; when they run out the youngest is preempted
                and later computed again (vLLM's scheduler: running before waiting, first come first served)
    slots       a fixed number of slots with an equal share of the KV cache each; nobody is preempted (Ollama)
    static      a batch starts when the one before has ended whole; its KV is reserved to the last token

A step computes at most `token_budget` tokens, prompts in chunks. The token that ends a step has its KV written in the
next one, so a request of p + n tokens never holds more than p + n - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from planner.conditions import Kind
from planner.errors import InputError
from planner.frozen import Frozen
from planner.throughput import MFU, ThroughputInputs, step_s

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

    def fits(self, prompt_tokens: int, output_tokens: int) -> bool:
        """A request of these lengths can be served to its end."""
        return self.blocks(prompt_tokens + output_tokens - 1) <= self.blocks_for_one


class Sequence(NamedTuple):
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


class State(NamedTuple):
    """Requests that run and that wait, each in the order of their arrival."""

    running: tuple[Sequence, ...] = ()
    waiting: tuple[Sequence, ...] = ()

    @property
    def kv_blocks(self) -> int:
        """Blocks held."""
        return sum(s.blocks for s in self.running)

    @property
    def empty(self) -> bool:
        """Nobody is here."""
        return not self.running and not self.waiting


class Work(NamedTuple):
    """What one request does in a step: tokens computed, and whether that ends in a new token, or in its last."""

    id: int
    tokens: int
    prefill: bool
    produces: bool
    finishes: bool


class Step(NamedTuple):
    """One step: the work of each request in it, who lost the cache, and the state after it."""

    work: tuple[Work, ...]
    preempted: tuple[int, ...]
    kv_blocks: int
    state: State

    @property
    def batch(self) -> int:
        """Requests that compute in this step."""
        return len(self.work)

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed, and tokens computed again after a preemption."""
        return sum(w.tokens for w in self.work if w.prefill)


def submit(state: State, limits: Limits, request: int, prompt_tokens: int, output_tokens: int) -> State:
    """Put a request at the end of the queue.

    Raises InputError when it could never be served: lengths below 1, or more KV than it may ever hold.
    """
    if prompt_tokens < 1 or output_tokens < 1:
        raise InputError(f"a request of {prompt_tokens} + {output_tokens} tokens is none.", fix="Use 1 or more each.")
    if not limits.fits(prompt_tokens, output_tokens):
        most = limits.blocks_for_one * limits.block_size
        raise InputError(f"{prompt_tokens} + {output_tokens} tokens do not fit the {most} that one request may hold.",
                         fix="Shorten it, or give the server more KV cache or fewer slots.")  # fmt: skip
    return state._replace(waiting=(*state.waiting, Sequence(request, prompt_tokens, output_tokens)))


def cancel(state: State, request: int) -> State:
    """Take a request out, wherever it is; its blocks are free at once."""
    kept = (tuple(s for s in group if s.id != request) for group in state)
    return State(*kept)


def step(state: State, limits: Limits) -> Step:
    """Run one step of the policy; an empty state gives a step without work.

    Every other step has work: the oldest request always fits, because `submit` refuses what never would.
    """
    batch = _Batch(limits, state)
    batch.go_on()
    batch.admit()
    work = tuple(_work(s, n) for s, n in zip(batch.running, batch.tokens, strict=True) if n)
    after = tuple(_advanced(s, n) for s, n in zip(batch.running, batch.tokens, strict=True))
    left = tuple(s for s in after if s.generated < s.output_tokens)
    return Step(work, tuple(s.id for s in batch.preempted), limits.kv_blocks - batch.free,
                State(left, tuple(batch.waiting)))  # fmt: skip


class _Batch:
    """The step while it is put together."""

    def __init__(self, limits: Limits, state: State) -> None:
        self._limits = limits
        self._new_batch = not state.running
        self.running, self.waiting = list(state.running), list(state.waiting)
        self.tokens: list[int] = []
        self.preempted: list[Sequence] = []
        self.free = limits.kv_blocks - state.kv_blocks
        self._budget = limits.token_budget

    def go_on(self) -> None:
        """Give the running requests their tokens, oldest first; where KV is short the youngest gives its own back."""
        for i in range(len(self.running)):
            if i >= len(self.running):
                break
            n = self._affordable(self.running[i])
            while i < len(self.running) and self._more_blocks(self.running[i], n) > self.free:
                self._preempt(self.running.pop())
            if i < len(self.running):
                self._take(i, n)

    def admit(self) -> None:
        """Let the waiting in, in order, until one does not fit."""
        may = _MAY_JOIN[self._limits.policy]
        while self.waiting and len(self.running) < self._limits.max_num_seqs and may(self):
            first = self.waiting[0]
            reserved = _RESERVED[self._limits.policy](self._limits, first)
            if reserved > self.free:
                break
            self.running.append(self.waiting.pop(0))
            if self._limits.policy != "continuous":
                self.running[-1] = first._replace(blocks=reserved)
                self.free -= reserved
            self._take(len(self.running) - 1, self._affordable(first))

    def joins_any_time(self) -> bool:
        """Nobody joins in a step that preempted somebody, or that has no token left."""
        return not self.preempted and self._budget != 0

    def joins_a_slot(self) -> bool:
        """A free slot is enough."""
        return True

    def joins_a_new_batch(self) -> bool:
        """The batch before has ended."""
        return self._new_batch

    def _affordable(self, s: Sequence) -> int:
        return s.missing if self._budget is None else min(s.missing, self._budget)

    def _more_blocks(self, s: Sequence, n: int) -> int:
        return max(0, self._limits.blocks(s.computed + n) - s.blocks)

    def _take(self, i: int, n: int) -> None:
        s = self.running[i]
        more = self._more_blocks(s, n)
        self.free -= more
        if self._budget is not None:
            self._budget -= n
        self.running[i] = s._replace(blocks=s.blocks + more)
        self.tokens.append(n)

    def _preempt(self, s: Sequence) -> None:
        self.free += s.blocks
        lost = s._replace(computed=0, blocks=0)
        self.preempted.append(lost)
        self.waiting.insert(0, lost)


def _whole_reservation(limits: Limits, s: Sequence) -> int:
    return limits.blocks(s.prompt_tokens + s.output_tokens - 1)


# What must be free before a request joins. Continuous holds it not yet: vLLM only looks whether the prompt has room.
_RESERVED: dict[Policy, Callable[[Limits, Sequence], int]] = {
    "continuous": lambda limits, s: limits.blocks(s.missing),
    "slots": lambda limits, s: limits.blocks_for_one,
    "static": _whole_reservation,
}
_MAY_JOIN: dict[Policy, Callable[[_Batch], bool]] = {
    "continuous": _Batch.joins_any_time,
    "slots": _Batch.joins_a_slot,
    "static": _Batch.joins_a_new_batch,
}


def _advanced(s: Sequence, n: int) -> Sequence:
    if not n:
        return s
    return s._replace(computed=s.computed + n, generated=s.generated + (n == s.missing))


def _work(s: Sequence, n: int) -> Work:
    produces = n == s.missing
    prefill = s.computed < s.prompt_tokens or s.missing > 1
    return Work(s.id, n, prefill, produces, finishes=produces and s.generated + 1 == s.output_tokens)


class StepTime(Frozen):
    """How long a step takes: a part by its batch and a part by the prompt tokens in it.

    Either stated (`base_s`, `per_request_s`), or from the inputs of a sizing, so that a full batch in decode runs at
    planner.throughput's speed without its averaged prefill; the prompts are charged in the steps that compute them.
    """

    base_s: float = Field(default=0.0, ge=0)
    per_request_s: float = Field(default=0.0, ge=0)
    prefill_s_per_token: float = Field(default=0.0, ge=0)
    inputs: ThroughputInputs | None = None
    kind: Kind = Kind.PLANNING

    @classmethod
    def of(cls, inputs: ThroughputInputs, input_tokens: int, kind: Kind = Kind.PLANNING) -> StepTime:
        """Step times of a sizing whose prompts have `input_tokens`; raises InputError without them."""
        if input_tokens < 1:
            raise InputError(f"prompts of {input_tokens} tokens take no prefill.", where="step time")
        share = 1.0 if kind is Kind.BOUND else MFU[inputs.family]
        return cls(inputs=inputs.model_copy(update={"prefill_s": None}), kind=kind,
                   prefill_s_per_token=(inputs.prefill_s or 0.0) / share / input_tokens)  # fmt: skip

    def seconds(self, done: Step) -> float:
        """Seconds of one step; 0 for one without work."""
        if not done.work:
            return 0.0
        decode_s = step_s(self.inputs, self.kind, done.batch) if self.inputs else 0.0
        own_s = self.base_s + self.per_request_s * done.batch
        return decode_s + own_s + done.prefill_tokens * self.prefill_s_per_token
