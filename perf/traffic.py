"""Are a million requests read and summarised in time and in memory? Made-up rows, the same for the same seed.

    python -m perf.traffic            a million rows of CSV and of JSON lines, each in a process of its own
    python -m perf.traffic --json     the same as JSON
    python -m perf.traffic --rows 50000

Exit code: 0 when every limit was reached, 1 when one was missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.machine import cpu_model
from planner.traffic import summarise
from planner.traffic_in_flight import LatencyModel
from services.traffic_log import read_log

ROWS, MOST_SECONDS, MOST_MB = 1_000_000, 15.0, 1000.0
BLOCK_TOKENS = 512
FORMS = ("azure.csv", "own.csv", "mooncake.jsonl")
LATENCY = LatencyModel(first_s=1.0, tok_s=25.0)


def write(path: Path, rows: int, seed: int) -> None:
    """A log of made-up requests: three a second, log-normal lengths, a third of the sessions come again."""
    with path.open("w", encoding="utf-8") as out:
        out.writelines(_lines(path.name, rows, random.Random(f"traffic {seed}")))


def _lines(form: str, rows: int, rng: random.Random) -> Iterator[str]:
    if form == "azure.csv":
        yield "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    if form == "own.csv":
        yield "timestamp,model,input_tokens,output_tokens,latency_s,session_id\n"
    now = 1_700_000_000.0
    for _ in range(rows):
        now += rng.expovariate(3)
        prompt, answer = 1 + int(rng.lognormvariate(7, 1)), int(rng.lognormvariate(5, 1))
        moment = datetime.fromtimestamp(now, UTC)
        if form == "azure.csv":
            yield f"{moment:%Y-%m-%d %H:%M:%S.%f}0,{prompt},{answer}\n"
        elif form == "own.csv":
            yield f"{moment.isoformat()},m,{prompt},{answer},{1 + answer / 25:.3f},s-{rng.randrange(rows // 3 + 1)}\n"
        else:
            blocks = [rng.randrange(20), *(rng.randrange(10 * rows) for _ in range((prompt - 1) // BLOCK_TOKENS))]
            yield json.dumps({"timestamp": int((now - 1_700_000_000) * 1000), "input_length": prompt,
                              "output_length": answer, "hash_ids": blocks}) + "\n"  # fmt: skip


def timed(path: Path) -> dict[str, Any]:
    """Seconds of this process's clock and of its processor from the file to the summary, and peak memory in MB."""
    wall, cpu = time.perf_counter(), time.process_time()
    log = read_log(path.name, path.read_bytes())
    summary = summarise(log.requests, LATENCY)
    return {
        "form": path.name, "rows": summary.n, "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu, "file_mb": path.stat().st_size / 1e6,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_in_flight": summary.in_flight.peak if summary.in_flight else None,
    }  # fmt: skip


def report(rows: int, seed: int = 1) -> dict[str, Any]:
    """Every form, each in a fresh process, so that memory is its own."""
    runs = []
    with TemporaryDirectory() as scratch:
        for form in FORMS:
            path = Path(scratch) / form
            write(path, rows, seed)
            done = subprocess.run([sys.executable, "-m", "perf.traffic", "--file", str(path)], capture_output=True,
                                  text=True, check=True)  # fmt: skip
            runs.append(json.loads(done.stdout))
            path.unlink()
    return {
        "machine": cpu_model(), "rows": rows, "most_seconds": MOST_SECONDS, "most_mb": MOST_MB, "runs": runs,
        "reached": all(r["seconds"] < MOST_SECONDS and r["peak_rss_mb"] < MOST_MB for r in runs),
    }  # fmt: skip


def in_words(found: dict[str, Any]) -> str:
    """The report as lines."""
    lines = [f"{found['machine']}: from file to summary, limits {MOST_SECONDS:g} s and {MOST_MB:g} MB"]
    lines += [
        f"  {r['form']:15s} {r['rows']:,} rows, {r['file_mb']:.0f} MB: {r['seconds']:.1f} s "
        f"({r['cpu_seconds']:.1f} s of processor), {r['peak_rss_mb']:.0f} MB"
        for r in found["runs"]
    ]
    return "\n".join([*lines, "every limit reached" if found["reached"] else "a limit was missed"])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m perf.traffic", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.file:
        print(json.dumps(timed(args.file)))
        return 0
    found = report(args.rows)
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
