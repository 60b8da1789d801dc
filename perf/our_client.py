"""Our client on the burst server, through the code that measures engines: bench.repeat.Load.

    python perf/our_client.py --port PORT --streams 256 --chunks 150 [--user-space | --rate 200]

Prints one JSON object: when each stream's request was due, and when each of its chunks arrived, in seconds of
CLOCK_MONOTONIC; which of those are upper bounds; processor time and memory of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.dialects import dialect
from bench.engines import Server
from bench.prompts import Prompt, PromptMaker, Vocabulary
from bench.repeat import Load
from bench.target import Target
from bench.transport import Pool
from planner.loads import LoadPoint
from planner.poc import Launch, Stop

TAIL_FROM = 1_000_000


class Numbered(PromptMaker):
    """Prompts that carry the number of their stream, for the server's records."""

    def __init__(self, characters: int) -> None:
        super().__init__(Vocabulary({"word": 1}, 0), seed=0, salt="", spell_salt=False, shared_prefix=0.0)
        self._filling = " word" * (characters // 5)

    def make(self, cohort: str, index: int, tokens: int) -> Prompt:
        """The prompt of one request."""
        number = index if cohort == "load" else TAIL_FROM + index
        return Prompt(f"stream {number}{self._filling}", tokens)


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Offer the load once."""
    spoken = dialect("vllm")
    server = Server(Launch(url=f"http://127.0.0.1:{args.port}"), spoken, None)
    pool = Pool(server.origin, kernel_stamps=not args.user_space)
    amount: dict[str, Any] = {"shape": "open", "rate_per_s": args.rate} if args.rate else {"in_flight": args.streams}
    point = LoadPoint(name="burst", requests=args.streams, input_tokens=8, output_tokens=args.chunks, **amount)
    target = Target(pool, spoken, server, "emulated", {}, 600)
    load = Load(target, point, Numbered(args.prompt_bytes), salt="", seed=1, repeat=1, stop=Stop(), e2e_s=0.0,
                on_done=lambda: None)  # fmt: skip
    cpu = 0.0

    def begin(_: float) -> None:
        nonlocal cpu
        cpu = time.process_time()

    result = await load.run(begin)
    cpu = time.process_time() - cpu
    pool.close()
    records = [r for r in result.records if r.cohort == "load"]
    failed = [r.error or r.error_kind for r in records if r.outcome != "ok"]
    if failed:
        sys.exit(f"{len(failed)} of {len(records)} requests failed: {failed[0]}")
    return {
        "due": {r.request: load.t0 + r.scheduled_s for r in records},
        "arrived": {r.request: [load.t0 + t for t in r.chunk_s] for r in records},
        "bound": {r.request: [i for i, b in enumerate(r.chunk_bound) if b] for r in records},
        "cpu_s": cpu,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "clock": result.clock,
        "loop_lag_p99_ms": result.loop_lag_p99_ms,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--rate", type=float, help="open loop with Poisson arrivals, in requests/s; else all at once")
    parser.add_argument("--prompt-bytes", type=int, default=40)
    parser.add_argument("--user-space", action="store_true", help="do without the kernel's stamps")
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))
