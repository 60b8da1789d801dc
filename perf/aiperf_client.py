"""AIPerf on the burst server, with one worker process; AIPerf lives in an environment of its own.

    python perf/aiperf_client.py --aiperf ENV/bin/aiperf --tokenizer FOLDER --port PORT --streams 64 --chunks 150

Prints the same JSON object as our_client.py, from the raw responses that AIPerf exports. Its processor time is left
out: what its services take to start cannot be told from what a chunk costs.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def command(args: argparse.Namespace, folder: Path) -> list[str]:
    """AIPerf's own command line: all streams at once, every raw response kept."""
    return [
        str(Path(args.aiperf).resolve()), "profile", "--model", "emulated", "--url", f"http://127.0.0.1:{args.port}",
        "--endpoint-type", "chat", "--streaming", "--concurrency", str(args.streams), "--request-count",
        str(args.streams), "--input-file", str(folder / "prompts.jsonl"), "--custom-dataset-type", "single_turn",
        "--dataset-sampling-strategy", "sequential", "--use-server-token-count",
        "--tokenizer", str(Path(args.tokenizer).resolve()), "--export-level", "raw",
        "--artifact-dir", str(folder), "--ui", "none", "--workers-max", "1",
        "--no-gpu-telemetry", "--no-server-metrics",
    ]  # fmt: skip


def arrivals(raw: Path, chunks: int) -> dict[str, list[float]]:
    """Arrival of every token-bearing response by stream, in seconds; AIPerf counts in perf_counter, which is
    CLOCK_MONOTONIC on Linux."""
    found = {}
    for line in raw.read_text().splitlines():
        record = json.loads(line)
        number = re.search(r"stream (\d+)", json.dumps(record["payload"]))
        if number:
            found[number[1]] = [r["perf_ns"] / 1e9 for r in record["responses"]][:chunks]
    return found


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Run it once; ends the program with its words when it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prompts = "".join(json.dumps({"text": f"stream {i}"}) + "\n" for i in range(args.streams))
        (folder / "prompts.jsonl").write_text(prompts)
        done = subprocess.run(command(args, folder), capture_output=True, text=True, check=False, cwd=folder)
        raw = folder / "profile_export_raw.jsonl"
        if done.returncode or not raw.is_file():
            sys.exit((done.stderr or done.stdout)[-400:])
        found = arrivals(raw, args.chunks)
    if len(found) != args.streams or any(len(times) != args.chunks for times in found.values()):
        sys.exit(f"AIPerf reports {len(found)} of {args.streams} streams, or not every token of them")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"arrived": found, "cpu_s": None, "rss_mb": largest}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aiperf", required=True)
    parser.add_argument("--tokenizer", required=True, help="folder of any tokenizer; AIPerf wants one")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--chunks", type=int, required=True)
    print(json.dumps(measure(parser.parse_args())))
