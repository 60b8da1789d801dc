"""One process of a sharded load: python -m bench.shard FOLDER, started by bench/shards.py.

FOLDER holds the work; the records go there as a Parquet file. Words pass as lines of JSON: on standard output
`ready`, `ended` (counts so far), `stopped` and at last `result`; on standard input `t0`, `all_ended` and `stop`. When
standard input ends, bench has died, and so does the shard.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench.dialects import Dialect, dialect
from bench.engines import Ended, Server
from bench.inputs import Inputs
from bench.lease import Process, alive
from bench.prompts import PromptMaker
from bench.repeat import Load, Share
from bench.target import Target
from bench.transport import Pool
from bundle.records import write_records
from planner.loads import LoadPoint
from planner.poc import Launch, Stop
from planner.server_schema import Server as EngineServer

WORK, RECORDS = "work.pickle", "records.parquet"
TELL_EVERY_S = 0.05
AHEAD_S = 0.02  # wakes so long before t0
BENCH_DIED = 3


class Work(NamedTuple):
    """What every shard is told; `server` is the process that is watched, None when it is not ours."""

    engine: str
    facts: EngineServer | None
    launch: Launch
    server: Process | None
    model: str
    sampling: dict[str, float]
    timeout_s: float
    point: LoadPoint
    prompts: PromptMaker
    salt: str
    seed: int
    repeat: int
    stop: Stop
    e2e_s: float
    inputs: Inputs
    tail: bool


class Watched(Server):
    """The server as another process of bench sees it: it lives, or it is gone."""

    def __init__(self, launch: Launch, spoken: Dialect, seen: Process | None) -> None:
        super().__init__(launch, spoken, None)
        self._seen = seen

    @property
    def ours(self) -> bool:
        """Bench started it."""
        return self._seen is not None

    @property
    def ended(self) -> Ended | None:
        """Set once its process is gone; how it ended is for its parent to say."""
        return None if self._seen is None or alive(self._seen) else Ended(-1, False, "the server ended")


class ShardLoad(Load):
    """A share of a load that begins at a common t0 and keeps up its tail until every share has ended."""

    def __init__(self, work: Work, share: Share) -> None:
        spoken = dialect(work.engine, work.facts)
        server = Watched(work.launch, spoken, work.server)
        target = Target(Pool(server.origin), spoken, server, work.model, work.sampling, work.timeout_s)
        # The share of errors is judged over all shards, in the process that started them.
        super().__init__(
            target, work.point, work.prompts, salt=work.salt, seed=work.seed, repeat=work.repeat,
            stop=work.stop.model_copy(update={"max_error_share": 1.0}), e2e_s=work.e2e_s, on_done=self._tell_the_last,
            inputs=work.inputs, tail=work.tail, share=share,
        )  # fmt: skip
        self._all_ended = False
        self._told = (0, 0)
        self._agreed: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def _begin(self) -> float:
        tell("ready")
        t0 = await self._agreed
        await asyncio.sleep(t0 - AHEAD_S - self._target.pool.clock())
        return t0

    def _counted_ended(self) -> bool:
        return self._all_ended

    def stop_early(self, reason: str, kind: str = "cancelled") -> None:
        """As for a whole load; the other shards hear of it."""
        if not self._over.is_set():
            tell("stopped", reason=reason, kind=kind)
        super().stop_early(reason, kind)

    def hear(self, line: bytes) -> None:
        """Do what bench says."""
        word = json.loads(line)
        if "t0" in word:
            self._agreed.set_result(word["t0"])
        elif "stop" in word and not self._over.is_set():
            if word["kind"] == "died":
                self._fail_the_rest()
            self.stop_early(word["stop"], word["kind"])
        self._all_ended |= "all_ended" in word

    def tell_counts(self) -> None:
        """Say how many have ended and failed, when that has changed."""
        if self._told != (self._ended, self._failed):
            self._told = (self._ended, self._failed)
            tell("ended", ended=self._ended, failed=self._failed)

    def _tell_the_last(self) -> None:
        if self._ended >= self._mine:
            self.tell_counts()


def tell(word: str, **more: Any) -> None:
    """One line to bench."""
    os.write(1, json.dumps({"word": word, **more}).encode() + b"\n")


async def _serve(folder: Path, share: Share) -> None:
    work: Work = pickle.loads((folder / WORK).read_bytes())
    load = ShardLoad(work, share)
    said = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(said), sys.stdin)

    async def listen() -> None:
        while line := await said.readline():
            load.hear(line)
        os._exit(BENCH_DIED)

    async def report() -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            load.tell_counts()

    helpers = [asyncio.create_task(listen()), asyncio.create_task(report())]
    result = await load.run(lambda t0: None)
    load.tell_counts()
    write_records(folder / f"{share.shard}.{RECORDS}", result.records)
    tell("result", **result._replace(records=[])._asdict())
    for task in helpers:
        task.cancel()


def main(arguments: list[str]) -> int:
    """Offer one share: FOLDER SHARD OF."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # bench decides, and ends this by its standard input
    asyncio.run(_serve(Path(arguments[0]), Share(int(arguments[1]), int(arguments[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
