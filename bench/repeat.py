"""One repeat: offer the load of one point to the server and make a record of every request.

While load runs, answers are only stamped and kept; they are parsed when the last one has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

from bench.asking import AGGRESSOR, TAIL, Asking, counted_cohort, tail_reserve
from bench.exchange import ERROR_KINDS, Exchange
from bench.inputs import NO_INPUTS, Inputs
from bench.machine import undisturbed, waited_for_core_s
from bench.outcome import Sent, failed_at_first_sight, record_of
from bench.prompts import PromptMaker
from bench.quality import judge_answer
from bench.saturation import LOOK_EVERY_S, Saturation
from bench.schedule import send_times, slot_starts
from bench.target import Target
from bundle.quality import Judged
from bundle.records import Outcome, Record
from planner.errors import FliplineError
from planner.loads import LoadPoint
from planner.poc import Stop
from planner.statistics import percentile

LAG_EVERY_S = 0.01
PREPARED_AT_ONCE = 500  # requests, some ten milliseconds
STOP_RULE_FROM = 10  # ended requests before an error share means anything


class Share(NamedTuple):
    """The part of a load that one of `of` processes offers: requests and slots whose number leaves `shard`."""

    shard: int = 0
    of: int = 1

    def nth(self, position: int) -> int:
        """The number of this share's request at a position."""
        return self.shard + position * self.of

    def size(self, total: int) -> int:
        """How many of the numbers below `total` are this share's."""
        return len(range(self.shard, total, self.of))


WHOLE = Share()


class Result(NamedTuple):
    """What one repeat gave; times in seconds. With several processes the worst of them, and how many were lost."""

    t0_unix_s: float
    duration_s: float
    records: list[Record]
    status: Literal["complete", "stopped"]
    stop_reason: str
    loop_lag_p99_ms: float | None
    loop_stalled_share: float
    client_cpu_share: float
    cpu_wait_share: float | None
    clock_step_ms: float
    receive_buffer_full: int
    stamps_dropped: int
    clock: dict[str, str]
    quality: tuple[Judged, ...] = ()
    shards: int = 1
    shards_lost: int = 0

    def number_of(self, outcome: Outcome) -> int:
        """Requests of the load itself with that outcome."""
        return sum(r.outcome == outcome for r in self.records if r.is_load)


class Load:
    """Offers one load point once; without `tail` nothing is sent behind the last counted request.

    `stop_early` may be called from outside, with the reason.
    """

    def __init__(
        self, target: Target, point: LoadPoint, prompts: PromptMaker, *, salt: str, seed: int, repeat: int, stop: Stop,
        e2e_s: float, on_done: Callable[[], None], inputs: Inputs = NO_INPUTS, tail: bool = True,
        share: Share = WHOLE,
    ) -> None:  # fmt: skip
        self._target, self._point, self._inputs, self._stop = target, point, inputs, stop
        self._e2e_s, self._on_done, self._share, self._mine = e2e_s, on_done, share, share.size(point.requests)
        self._asking = Asking(target, point, prompts, inputs, salt)
        self._cohort, self._tail = counted_cohort(point), tail_reserve(point, inputs) if tail else 0
        self._times: list[float] = []  # of open loops, ramps and traces
        if point.in_flight is None:
            self._times = send_times(point, seed, repeat, point.requests + self._tail, inputs.trace)
        self._judged: list[Judged] = []
        self._ready: dict[tuple[str, int], bytes] = {}
        self._sent: list[Sent] = []
        self._next_load = self._next_tail = self._ended = self._failed = 0
        self._stop_reason = ""
        self._over = asyncio.Event()
        self.t0 = 0.0

    async def run(self, on_start: Callable[[float], None]) -> Result:
        """Send everything, wait for it, and parse it; `on_start` gets t0 on the pool's clock."""
        aggressors = self._point.aggressors or 0
        for cohort, total in ((self._cohort, self._point.requests), (TAIL, self._tail), (AGGRESSOR, aggressors)):
            for position in range(self._share.size(total)):
                if position % PREPARED_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a million take a minute: who interrupts is to be heard
                if self._over.is_set():
                    break
                self._prepare(cohort, self._share.nth(position))
        with suppress(FliplineError):  # each request will say so in its record
            await self._target.pool.open(self._share.size(self._point.in_flight or 8) + self._share.size(aggressors))
        lags: list[float] = []
        seen = self._target.pool.arrivals
        dropped, stepped = seen.dropped, len(seen.steps_s)
        with undisturbed():
            self.t0 = await self._begin()
            cpu, waited = time.process_time(), waited_for_core_s()
            offset_s = seen.offset_s()
            on_start(self.t0)
            async with asyncio.TaskGroup() as group:
                watch = [group.create_task(self._watch()), group.create_task(_measure_lag(lags))]
                await (self._closed_loop() if self._point.in_flight else self._open_loop())
                for task in watch:
                    task.cancel()
            duration = self._target.pool.clock() - self.t0
            cpu_share = (time.process_time() - cpu) / duration if duration > 0 else 0.0
            waiting = None if waited is None else (waited_for_core_s() or waited) - waited
            drift_ms = (offset_s - seen.offset_s()) * 1000
        steps_ms = [1000 * s for s in seen.steps_s[stepped:]]
        return Result(
            t0_unix_s=self.t0 - offset_s, duration_s=duration, records=await self._records(),
            status="stopped" if self._stop_reason else "complete", stop_reason=self._stop_reason,
            loop_lag_p99_ms=percentile(lags, 99) * 1000 if lags else None,
            loop_stalled_share=sum(lag for lag in lags if lag > LAG_EVERY_S) / duration if duration > 0 else 0.0,
            client_cpu_share=cpu_share, cpu_wait_share=waiting / duration if waiting is not None and duration else None,
            clock_step_ms=max([drift_ms, *steps_ms], key=abs), stamps_dropped=seen.dropped - dropped,
            receive_buffer_full=sum(s.exchange.full_reads for s in self._sent if s.exchange),
            clock=self._target.pool.clock_facts(), quality=tuple(self._judged),
        )  # fmt: skip

    def stop_early(self, reason: str, kind: str = "cancelled") -> None:
        """Send nothing more and end what is in flight; `kind` tells whether we or the server ended it."""
        if not self._over.is_set():
            self._stop_reason = reason
            self._over.set()
            self._target.pool.cancel_all(kind)

    async def _begin(self) -> float:
        """The moment t0, once all is prepared."""
        return self._target.pool.clock()

    def _counted_ended(self) -> bool:
        """Every request that the point counts has ended."""
        return self._ended >= self._mine

    def _prepare(self, cohort: str, index: int) -> bytes:
        key = (cohort, index)
        if key not in self._ready:
            self._ready[key] = self._asking.request(cohort, index)
        return self._ready[key]

    async def _closed_loop(self) -> None:
        async with asyncio.TaskGroup() as group:
            for start in slot_starts(self._point, self._e2e_s)[self._share.shard :: self._share.of]:
                group.create_task(self._slot(self.t0 + start))
            if self._point.aggressors:
                group.create_task(self._interfere(self._point.aggressors, self.t0 + (self._point.aggressor_at_s or 0)))

    async def _interfere(self, aggressors: int, at: float) -> None:
        """Send the long prompts at once, in the midst of the victims' decoding; not once there are no victims."""
        clock = self._target.pool.clock
        while clock() < at and not self._over.is_set() and not self._counted_ended():
            await self._sleep_until(min(at, clock() + LOOK_EVERY_S))
        if not self._over.is_set() and not self._counted_ended():
            mine = range(self._share.shard, aggressors, self._share.of)
            await asyncio.gather(*(self._send(AGGRESSOR, i, at) for i in mine))

    async def _slot(self, free_at: float) -> None:
        """Send one request after another; a request is due the moment the one before has ended."""
        await self._sleep_until(free_at)
        while not self._over.is_set():
            if self._next_load < self._mine:
                cohort, index = self._cohort, self._share.nth(self._next_load)
                self._next_load += 1
            elif not self._counted_ended() and self._tail:
                cohort, index = TAIL, self._share.nth(self._next_tail)
                self._next_tail += 1
            else:
                return
            exchange = await self._send(cohort, index, free_at)
            free_at = exchange.end or self._target.pool.clock()

    async def _open_loop(self) -> None:
        """Send at the times drawn beforehand, whatever the server does; cancel the tail when the load has ended."""
        async with asyncio.TaskGroup() as group:
            for i in range(self._share.shard, len(self._times), self._share.of):
                at = self._times[i]
                is_load = i < self._point.requests
                await self._sleep_until(self.t0 + at)
                if self._over.is_set() or (not is_load and self._counted_ended()):
                    break
                cohort, index = (self._cohort, i) if is_load else (TAIL, i - self._point.requests)
                self._next_load += is_load
                group.create_task(self._send(cohort, index, self.t0 + at))
            while not self._counted_ended() and not self._over.is_set():
                await asyncio.sleep(0.005)
            self._target.pool.cancel_all()

    async def _sleep_until(self, at: float) -> None:
        left = at - self._target.pool.clock()
        if left > 0:
            try:
                async with asyncio.timeout(left):
                    await self._over.wait()
            except TimeoutError:
                pass

    async def _send(self, cohort: str, index: int, scheduled: float) -> Exchange:
        request = self._prepare(cohort, index)
        exchange = await self._target.pool.exchange(request, timeout_s=self._stop.request_timeout_s)
        self._sent.append(Sent(index, cohort, scheduled, self._asking.lengths(cohort, index), exchange))
        if cohort == self._cohort:
            self._ended += 1
            self._failed += failed_at_first_sight(exchange)
            self._on_done()
        await self._apply_stop_rules(exchange)
        return exchange

    async def _apply_stop_rules(self, exchange: Exchange) -> None:
        server = self._target.server
        if exchange.error_kind in ("connect", "closed", "reset") and not self._over.is_set():
            ended = await server.ended_soon() if exchange.error_kind == "connect" else server.ended
            if ended and not self._over.is_set():
                self._fail_the_rest()
                self.stop_early("the server ended", "died")
                return
        if exchange.error_kind == "client":  # every figure is spoiled by now
            self.stop_early(f"{ERROR_KINDS['client']}: {exchange.error}")
        if self._ended >= STOP_RULE_FROM and self._failed / self._ended > self._stop.max_error_share:
            self.stop_early(f"more than {self._stop.max_error_share:.0%} of the requests failed")

    def _fail_the_rest(self) -> None:
        """Requests that were never sent because the server had died are failures of the server."""
        now = self._target.pool.clock()
        for i in map(self._share.nth, range(self._next_load, self._mine)):
            due = self.t0 + self._times[i] if self._times else now
            self._sent.append(Sent(i, self._cohort, due, self._asking.lengths(self._cohort, i), None))
            self._on_done()
        self._next_load = self._mine

    async def _watch(self) -> None:
        pool, end = self._target.pool, self.t0 + self._stop.max_point_s
        watched = None if self._point.in_flight else self._stop.saturation_s  # a closed loop waits for the server
        growth = Saturation(watched) if watched else None
        while growth and pool.clock() < end and not self._over.is_set():
            await self._sleep_until(min(end, pool.clock() + LOOK_EVERY_S))
            if reason := growth.look(pool.clock(), pool.in_flight()):
                self.stop_early(reason)
                return
        await self._sleep_until(end)
        self.stop_early(f"the point took longer than {self._stop.max_point_s:g} s")

    async def _records(self) -> list[Record]:
        records = []
        for sent in sorted(self._sent, key=lambda s: (s.cohort, s.request)):
            record, text = record_of(sent, self.t0, self._point.json_schema)
            records.append(record)
            if self._inputs.quality and record.is_load and record.outcome != "undetermined":
                told = text if record.outcome == "ok" else None
                self._judged.append(judge_answer(self._inputs.quality[record.request], told, record.error))
            await asyncio.sleep(0)  # let the heartbeat through
        return records


async def _measure_lag(lags: list[float]) -> None:
    """How late the loop wakes, every 10 ms."""
    while True:
        due = time.monotonic() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        lags.append(max(0.0, time.monotonic() - due))
