"""Is the simulator fast, small and right? Ten minutes of 50 users, and one server against queueing theory.

    python -m perf.queueing            all of it: about a minute
    python -m perf.queueing --quick    without theory: seconds
    python -m perf.queueing --json     the same as JSON, with `runs`, `peak_rss_mb`, `theory`, `pooled`, `machine`

Exit code: 0 when every limit was reached, 1 when one was missed.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from statistics import fmean, stdev
from typing import Any

from bench.machine import cpu_model
from planner.batching import Limits
from planner.queue_load import Lengths, Load
from planner.queue_theory import BATCHES, CONFIDENCE, T_QUANTILE, mean_waiting_s, simulated_waiting
from planner.queueing import simulate
from planner.step_time import StepTime

MINUTES_S, USERS, SEQUENCES = 600.0, 50, 64
MOST_SECONDS, MOST_MB = 2.0, 300.0
SEEDS, UTILISATIONS = range(1, 11), (0.3, 0.5, 0.7, 0.9)
FORGETS = 100  # longer runs than the tests', so that the intervals are narrow
# An 8B model on one large accelerator: 15 ms a step, 0.4 ms for each request in it, 20 us for each prompt token.
STEP = StepTime(base_s=0.015, per_request_s=0.0004, prefill_s_per_token=2e-5)
AMPLE_BLOCKS, TIGHT_BLOCKS = 20_000, 3_000


def ten_minutes() -> list[dict[str, Any]]:
    """The named run in its harsher and milder forms; seconds of this process's clock and of its processor."""
    equal = Lengths(input_tokens=1024, output_tokens=400)
    differ = Lengths(input_tokens=1024, output_tokens=400, shape="lognormal", context_tokens=8192)
    loads = {
        "no pauses": (Load(process="closed", users=USERS, lengths=equal), AMPLE_BLOCKS),
        "no pauses, lengths differ": (Load(process="closed", users=USERS, lengths=differ), AMPLE_BLOCKS),
        "no pauses, lengths differ, cache short": (Load(process="closed", users=USERS, lengths=differ), TIGHT_BLOCKS),
        "30 s pauses, lengths differ": (Load(process="closed", users=USERS, think_s=30, lengths=differ), AMPLE_BLOCKS),
        "poisson 3/s, lengths differ": (Load(process="poisson", rate_per_s=3, lengths=differ), AMPLE_BLOCKS),
    }
    return [_timed(name, load, blocks) for name, (load, blocks) in loads.items()]


def _timed(name: str, load: Load, blocks: int) -> dict[str, Any]:
    limits = Limits(max_num_seqs=SEQUENCES, kv_blocks=blocks, token_budget=2048)
    wall, cpu = time.perf_counter(), time.process_time()
    run = simulate(load, limits, STEP, seed=1, duration_s=MINUTES_S)
    return {
        "load": name, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu,
        "requests": len(run.served), "output_tokens": run.output_tokens, "preemptions": run.preemptions,
    }  # fmt: skip


def theory() -> list[dict[str, Any]]:
    """Mean waits of ten seeds at each utilisation, exponential and equal service times, with their intervals."""
    rows = []
    for model, exponential, cv in (("M/M/1", True, 1.0), ("M/D/1", False, 0.0)):
        for utilisation in UTILISATIONS:
            expected = mean_waiting_s(utilisation, 1.0, cv)
            for seed in SEEDS:
                found = simulated_waiting(utilisation, exponential=exponential, seed=seed, forgets=FORGETS)
                rows.append({"model": model, "utilisation": utilisation, "seed": seed, "theory": expected,
                             **found._asdict(), "inside": found.low < expected < found.high})  # fmt: skip
    return rows


def pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All ten seeds together: a narrower interval, from ten means that are independent."""
    found = []
    for model, utilisation in dict.fromkeys((r["model"], r["utilisation"]) for r in rows):
        own = [r for r in rows if (r["model"], r["utilisation"]) == (model, utilisation)]
        means = [r["mean"] for r in own]
        half = T_QUANTILE * stdev(means) / math.sqrt(len(means))
        found.append({"model": model, "utilisation": utilisation, "theory": own[0]["theory"], "mean": fmean(means),
                      "half_width": half, "inside": abs(fmean(means) - own[0]["theory"]) < half,
                      "seeds_inside": sum(r["inside"] for r in own), "seeds": len(own)})  # fmt: skip
    return found


def report(*, quick: bool) -> dict[str, Any]:
    """Everything measured; memory is taken before theory runs."""
    runs = ten_minutes()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [] if quick else theory()
    slowest = max(r["seconds"] for r in runs)
    together = pooled(rows)
    return {
        "machine": cpu_model(), "runs": runs, "seconds": slowest, "peak_rss_mb": peak_mb, "theory": rows,
        "pooled": together, "confidence": CONFIDENCE,
        "reached": slowest < MOST_SECONDS and peak_mb < MOST_MB and all(r["inside"] for r in [*rows, *together]),
    }  # fmt: skip


def in_words(found: dict[str, Any]) -> str:
    """The report as lines."""
    lines = [f"{found['machine']}", f"{MINUTES_S / 60:.0f} virtual minutes, {USERS} users, {SEQUENCES} sequences:"]
    lines += [
        f"  {r['load']:40s} {r['seconds']:.2f} s ({r['cpu_seconds']:.2f} s of processor), {r['requests']:,} requests, "
        f"{r['output_tokens']:,} tokens, {r['preemptions']:,} preemptions"
        for r in found["runs"]
    ]
    lines.append(f"slowest {found['seconds']:.2f} s of {MOST_SECONDS:g}; "
                 f"peak memory {found['peak_rss_mb']:.0f} MB of {MOST_MB:g}")  # fmt: skip
    if found["pooled"]:
        lines.append(f"mean wait over theory, service time 1 s, {BATCHES} batches, {CONFIDENCE:.1%} intervals:")
    lines += [
        f"  {p['model']} at {p['utilisation']:g}: theory {p['theory']:.3f} s, ten seeds {p['mean']:.3f} s "
        f"± {p['half_width']:.3f}, inside the interval of {p['seeds_inside']} of {p['seeds']} seeds"
        for p in found["pooled"]
    ]
    lines.append("every limit reached" if found["reached"] else "a limit was missed")
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m perf.queueing", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="without the comparison with theory")
    args = parser.parse_args()
    found = report(quick=args.quick)
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
