"""Step times through a real batch policy: everybody in a step gets the token in the same tick, as from a GPU."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from pydantic import ValidationError

from bench.emulator.settings import Settings
from bench.emulator.turns import Asked
from planner.batching import Limits, Scheduler, Step
from planner.errors import InputError
from planner.faults import first_fault


@dataclass
class _Ticket:
    """A request in the house: when it was let in, and its tokens as they come; None when its client has gone."""

    asked: Asked
    admitted: float = 0.0
    tokens: asyncio.Queue[float | None] = field(default_factory=asyncio.Queue)


class Batching:
    """Runs planner.batching's scheduler in real time while anybody is there.

    Raises InputError when the limits contradict each other.
    """

    def __init__(self, settings: Settings) -> None:
        try:
            self._limits: Limits = settings.limits
        except ValidationError as e:
            raise InputError(first_fault(e), where="emulator") from None
        self._settings = settings
        self._drawn = random.Random(settings.seed)
        self._scheduler = Scheduler(self._limits)
        self._now: Step | None = None
        self._tickets: dict[int, _Ticket] = {}
        self._loop: asyncio.Task[None] | None = None
        self.preemptions = 0

    @property
    def running(self) -> int:
        """Requests that run, those included that end with this step."""
        ending = len(self._now.finished) if self._now else 0
        return len(self._scheduler.running) + ending

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._scheduler.waiting)

    @property
    def kv_tokens(self) -> int:
        """Tokens of KV cache in blocks that are held."""
        blocks = self._now.kv_blocks if self._now else self._scheduler.kv_blocks
        return blocks * self._limits.block_size

    def refusal(self, asked: Asked) -> str:
        """What the policy could never serve."""
        try:
            self._limits.check(asked.prompt_tokens, asked.output_tokens)
        except InputError as e:
            return str(e)
        return ""

    async def tokens(self, asked: Asked) -> AsyncGenerator[float, None]:
        """Tokens at the end of the steps that produce them."""
        ticket = self._tickets[asked.number] = _Ticket(asked)
        self._scheduler.submit(asked.number, asked.prompt_tokens, asked.output_tokens)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._run())
        try:
            for _ in range(asked.output_tokens):
                admitted = await ticket.tokens.get()
                if admitted is None:
                    raise ConnectionError
                yield admitted
        finally:
            del self._tickets[asked.number]
            self._scheduler.cancel(asked.number)

    async def stop(self) -> None:
        """End the steps."""
        if self._loop:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _run(self) -> None:
        """Steps on absolute deadlines; only one that began a whole step late begins a new count."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while not self._scheduler.empty:
            self._send_away()
            began = clock()
            self._now = done = self._scheduler.step()
            self.preemptions += len(done.preempted)
            for number in done.worked:
                ticket = self._tickets[number]
                ticket.admitted = ticket.admitted or began
            took = self._settings.step.seconds(done.batch, done.prefill_tokens) * self._drawn.uniform(
                1 - self._settings.spread, 1 + self._settings.spread
            )
            due = due + took if began - due < took else began + took
            await asyncio.sleep(max(0.0, due - clock()))
            self._now = None
            for number in done.produced:
                if ticket_now := self._tickets.get(number):
                    ticket_now.tokens.put_nowait(ticket_now.admitted)

    def _send_away(self) -> None:
        for ticket in [t for t in self._tickets.values() if t.asked.gone()]:
            self._scheduler.cancel(ticket.asked.number)
            ticket.tokens.put_nowait(None)
