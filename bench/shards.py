"""A load that one process cannot take in on time is offered by several, split by request number.

Each process has its own loop, draws the same schedule, and begins at the same t0 on this machine's monotonic clock.
The result has the form of one from a single process; what tells of the instrument is the worst of them.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.inputs import NO_INPUTS, Inputs
from bench.prompts import PromptMaker
from bench.repeat import STOP_RULE_FROM, Result
from bench.shard import RECORDS, WORK, Work
from bench.target import Target
from bundle.records import Record, read_records
from planner.errors import NotAllowed
from planner.loads import LoadPoint
from planner.poc import Stop

# Streams x chunks/s that one process took in with errors of arrival times below 0.5 ms at p99: perf/instrument.py.
TESTED_CHUNKS_PER_S = 512 * 50
LEAD_S = 0.2  # from the word that all are ready until t0
STOP_GRACE_S = 60.0  # to parse what came; a process that does not answer until then is lost
END_WITHIN_S = 5.0
LINE_LIMIT = 1 << 20
LOST = "a process of this client died"
SUMMED = ("reads", "reads_without_kernel_stamp", "stamps_dropped")


def expected_chunks_per_s(point: LoadPoint, e2e_s: float, inputs: Inputs = NO_INPUTS) -> float:
    """Chunks per second that a point will bring on average, one token each.

    Closed: in flight x output tokens / seconds of one request in the warm-up, where fewer ran at once, so that it
    errs upwards. Otherwise what is offered: the highest rate x output tokens, or a trace's tokens over its length.
    """
    if point.in_flight is not None:
        return point.in_flight * point.output_tokens / e2e_s if e2e_s > 0 else 0.0
    if inputs.trace:
        length = inputs.trace[-1].at_s
        return sum(row.output_tokens for row in inputs.trace) / length if length > 0 else 0.0
    return max(point.rate_per_s or 0.0, point.rate_to_per_s or 0.0) * point.output_tokens


def number_of_shards(point: LoadPoint, e2e_s: float, inputs: Inputs, asked: int | None, cores: int = 0) -> int:
    """How many processes offer a point: `asked`, or so many that each stays under its tested rate.

    One core is left to the server and the rest of the machine; no process is without a slot or a request. A quality
    set is a few answers that are read, not timed: one process.
    """
    if point.shape == "quality":
        return 1
    cores = cores or len(os.sched_getaffinity(0))
    needed = math.ceil(expected_chunks_per_s(point, e2e_s, inputs) / TESTED_CHUNKS_PER_S)
    wanted = asked or min(needed, cores - 1)
    return max(1, min(wanted, point.requests, point.in_flight or point.requests))


class _Shard:
    """One process as its parent sees it; `result` is what it said at last."""

    def __init__(self, child: asyncio.subprocess.Process, log: Path) -> None:
        self.child, self.log = child, log
        self.ready = asyncio.Event()
        self.ended = self.failed = 0
        self.result: dict[str, Any] | None = None

    def say(self, **word: Any) -> None:
        """One line to it; a dead one hears nothing."""
        assert self.child.stdin is not None
        with suppress(OSError, RuntimeError):
            self.child.stdin.write(json.dumps(word).encode() + b"\n")


class ShardedLoad:
    """Offers one load point once from `shards` processes; to be used as bench.repeat.Load is."""

    def __init__(
        self, shards: int, target: Target, point: LoadPoint, prompts: PromptMaker, *, salt: str, seed: int,
        repeat: int, stop: Stop, e2e_s: float, on_done: Callable[[], None], inputs: Inputs = NO_INPUTS,
        tail: bool = True,
    ) -> None:  # fmt: skip
        self._work = Work(
            target.dialect.id, target.dialect.facts, target.server.launch, target.server.process,
            target.model, target.sampling, target.timeout_s, point, prompts, salt, seed, repeat, stop, e2e_s,
            inputs, tail,
        )  # fmt: skip
        self._number, self._clock, self._on_done = shards, target.pool.clock, on_done
        self._shards: list[_Shard] = []
        self._stop: dict[str, str] = {}  # the word to every process, with its reason
        self._lost = 0
        self.t0 = self._t0_unix = 0.0

    @property
    def pids(self) -> list[int]:
        """Process ids of the shards."""
        return [s.child.pid for s in self._shards]

    async def run(self, on_start: Callable[[float], None]) -> Result:
        """Start the processes, have them begin together, wait for all, and put their records together.

        `on_start` gets t0 on the pool's clock. Raises NotAllowed when a process ends before the load begins.
        """
        with tempfile.TemporaryDirectory(prefix="flipline-shards-") as name:
            folder = Path(name)
            (folder / WORK).write_bytes(pickle.dumps(self._work))
            listeners: list[asyncio.Task[None]] = []
            try:
                for k in range(self._number):
                    self._shards.append(await self._start(folder, k))
                listeners = [asyncio.create_task(self._listen(s)) for s in self._shards]
                await asyncio.gather(*(s.ready.wait() for s in self._shards))
                self._refuse_unready()
                self.t0, self._t0_unix = self._clock() + LEAD_S, time.time() + LEAD_S
                for shard in self._shards:
                    shard.say(t0=self.t0)
                on_start(self.t0)
                await asyncio.gather(*listeners)
            finally:
                for task in listeners:
                    task.cancel()
                await asyncio.gather(*listeners, return_exceptions=True)
                await asyncio.gather(*(_end(s) for s in self._shards))
            parts = [s for s in self._shards if s.result is not None]
            records = [r for k, s in enumerate(self._shards) if s in parts
                       for r in read_records(folder / f"{k}.{RECORDS}")]  # fmt: skip
        return self._merged([s.result for s in parts if s.result], records)

    def stop_early(self, reason: str, kind: str = "cancelled") -> None:
        """Have every process send nothing more and end what is in flight."""
        if not self._stop:
            self._stop = {"stop": reason, "kind": kind}
            for shard in self._shards:
                shard.say(**self._stop)
            asyncio.get_running_loop().call_later(STOP_GRACE_S, self._kill)

    def _kill(self) -> None:
        for shard in self._shards:
            if shard.child.returncode is None:
                shard.child.kill()

    async def _start(self, folder: Path, k: int) -> _Shard:
        log = folder / f"{k}.log"
        with log.open("wb") as errors:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.shard", str(folder), str(k), str(self._number),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors, limit=LINE_LIMIT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, start_new_session=True,
            )  # fmt: skip
        shard = _Shard(child, log)
        if self._stop:
            shard.say(**self._stop)
        return shard

    async def _listen(self, shard: _Shard) -> None:
        """Take in what a process says until it ends; one that ends without a result is lost and ends the load."""
        assert shard.child.stdout is not None
        while line := await shard.child.stdout.readline():
            word = json.loads(line)
            self._take_in(shard, word.pop("word"), word)
        if shard.result is None:
            self._lost += 1
            self.stop_early(LOST)
        shard.ready.set()

    def _take_in(self, shard: _Shard, word: str, more: dict[str, Any]) -> None:
        if word == "ready":
            shard.ready.set()
        elif word == "stopped":
            self.stop_early(more["reason"], more["kind"])
        elif word == "result":
            shard.result = more
        else:
            for _ in range(more["ended"] - shard.ended):
                self._on_done()
            shard.ended, shard.failed = more["ended"], more["failed"]
            self._judge_counts()

    def _judge_counts(self) -> None:
        ended, failed = sum(s.ended for s in self._shards), sum(s.failed for s in self._shards)
        limit = self._work.stop.max_error_share
        if ended >= STOP_RULE_FROM and failed / ended > limit:
            self.stop_early(f"more than {limit:.0%} of the requests failed")
        if ended >= self._work.point.requests:
            for shard in self._shards:
                shard.say(all_ended=True)

    def _refuse_unready(self) -> None:
        for shard in self._shards:
            if shard.child.returncode is not None or self._lost:
                lines = shard.log.read_text(encoding="utf-8", errors="replace").split("\n")
                last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
                raise NotAllowed(f"{LOST} before the load began: {last[:200]}.", where=self._work.point.name,
                                 fix="Offer it with --shards 1, or lower the load.")  # fmt: skip

    def _merged(self, parts: list[dict[str, Any]], records: list[Record]) -> Result:
        def worst(name: str) -> Any:
            return max((p[name] for p in parts if p[name] is not None), default=None)

        clock = dict(parts[0]["clock"]) if parts else {}
        clock |= {name: str(sum(int(p["clock"][name]) for p in parts)) for name in SUMMED if parts}
        stopped = self._lost or any(p["stop_reason"] for p in parts)  # a word that came too late stopped nothing
        reason = self._stop.get("stop", "") if stopped else ""
        return Result(
            t0_unix_s=self._t0_unix, duration_s=worst("duration_s") or 0.0,
            records=sorted(records, key=lambda r: (r.cohort, r.request)),
            status="stopped" if reason else "complete", stop_reason=reason,
            loop_lag_p99_ms=worst("loop_lag_p99_ms"), loop_stalled_share=worst("loop_stalled_share") or 0.0,
            client_cpu_share=worst("client_cpu_share") or 0.0, cpu_wait_share=worst("cpu_wait_share"),
            clock_step_ms=max((p["clock_step_ms"] for p in parts), key=abs, default=0.0),
            receive_buffer_full=sum(p["receive_buffer_full"] for p in parts),
            stamps_dropped=sum(p["stamps_dropped"] for p in parts), clock=clock,
            shards=self._number, shards_lost=self._lost,
        )  # fmt: skip


async def _end(shard: _Shard) -> None:
    """A shard whose standard input ends goes by itself; one that cannot is killed."""
    assert shard.child.stdin is not None
    shard.child.stdin.close()
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await shard.child.wait()
    except TimeoutError:
        shard.child.kill()
        await shard.child.wait()
