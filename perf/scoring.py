"""How long the score of five engines takes, sensitivity included: python -m perf.scoring [--json] [--runs 200].

The budget is 10 ms for one score with flip weights and rating flips, on one core of a small machine. It is held by the
clock, and by processor time, which other work on the machine does not stretch.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from planner.engine_files import load_engines
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.scoring import score
from planner.what_if_engine import by_shared_prefix, by_users

BUDGET_MS = 10.0
ENGINES = Path(__file__).parents[1] / "catalog" / "engines"
CASE = Requirements(
    peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2, input_tokens=3596,
    output_tokens=500, context_tokens=4096, hardware=(Hardware(gpu="nvidia-gb10-dgx-spark"),),
    model_plans=(ModelPlan(id="B", label="30B MoE", model="Qwen/Qwen3-30B-A3B", quantization="fp8"),),
)  # fmt: skip


def measure(runs: int) -> dict[str, float]:
    """Milliseconds of one score, and of the two strips of its what-if: median and slowest of `runs`."""
    engines = load_engines(ENGINES)
    scored, busy, strips = [], [], []
    for _ in range(runs):
        begin, busy_begin = perf_counter(), process_time()
        found = score(CASE, engines, compute_capability="12.1")
        middle, busy_middle = perf_counter(), process_time()
        by_users(CASE, found)
        by_shared_prefix(CASE, found)
        scored.append(1e3 * (middle - begin))
        busy.append(1e3 * (busy_middle - busy_begin))
        strips.append(1e3 * (perf_counter() - middle))
    return {
        "engines": len(engines), "runs": runs, "budget_ms": BUDGET_MS,
        "score_ms_median": median(scored), "score_ms_slowest": max(scored), "score_cpu_ms_median": median(busy),
        "strips_ms_median": median(strips), "strips_ms_slowest": max(strips),
    }  # fmt: skip


def main() -> int:
    """Print the figures; the exit code is 1 when the median is over the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    found = measure(given.runs)
    if given.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.write(
            f"score with sensitivity of {found['engines']:g} engines: median {found['score_ms_median']:.2f} ms, "
            f"slowest {found['score_ms_slowest']:.2f} ms of {found['runs']:g} runs, median of processor time "
            f"{found['score_cpu_ms_median']:.2f} ms; budget {BUDGET_MS:g} ms\n"
            f"what-if along users and shared prefix: median {found['strips_ms_median']:.2f} ms\n"
        )
    return 0 if found["score_ms_median"] <= BUDGET_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
