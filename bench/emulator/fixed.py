"""TTFT and token gaps as stated, each request by itself; first come, first served where slots or cache are short."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from itertools import count, islice

from bench.emulator.settings import Settings
from bench.emulator.turns import Asked

LOOK_FOR_CLIENT_S = 0.05


def times_ms(settings: Settings, request: int) -> Iterator[float]:
    """TTFT and then gap after gap of one request, drawn from the seed and its number alone."""
    drawn = random.Random(f"{settings.seed}:{request}")
    for i in count():
        stated = settings.itl_ms if i else settings.ttft_ms
        yield stated * drawn.uniform(1 - settings.spread, 1 + settings.spread)


class Fixed:
    """A request runs when a slot and its whole KV reservation are free."""

    preemptions = 0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.running = 0
        self.kv_tokens = 0

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def refusal(self, asked: Asked) -> str:
        """Nothing is refused: what does not fit waits for ever, which is a fault worth having."""
        return ""

    async def stop(self) -> None:
        """Nothing runs by itself here."""

    async def tokens(self, asked: Asked) -> AsyncGenerator[float, None]:
        """Tokens on absolute deadlines from the moment of admission, so that lateness does not add up."""
        loop = asyncio.get_running_loop()
        kv = asked.prompt_tokens + asked.output_tokens
        await self._enter(kv, asked)
        try:
            admitted = due = loop.time()
            for ms in islice(times_ms(self._settings, asked.number), asked.output_tokens):
                due += ms / 1000
                await asyncio.sleep(max(0.0, due - loop.time()))
                yield admitted
        finally:
            self._leave(kv)

    def _fits(self, kv: int) -> bool:
        return self.running < self._settings.slots and self.kv_tokens + kv <= self._settings.kv_tokens

    async def _enter(self, kv: int, asked: Asked) -> None:
        if not self._waiting and self._fits(kv):
            self._take(kv)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((kv, turn))
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=LOOK_FOR_CLIENT_S)
                if asked.gone() and not turn.done():
                    raise ConnectionError
        except BaseException:
            if turn.done():
                self._leave(kv)
            else:
                self._waiting.remove((kv, turn))
            raise

    def _take(self, kv: int) -> None:
        self.running += 1
        self.kv_tokens += kv

    def _leave(self, kv: int) -> None:
        self.running -= 1
        self.kv_tokens -= kv
        while self._waiting and self._fits(self._waiting[0][0]):
            waiting_kv, turn = self._waiting.popleft()
            self._take(waiting_kv)
            turn.set_result(None)
