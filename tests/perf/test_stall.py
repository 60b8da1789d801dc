"""A client that stands still says so by itself: its run is invalid, whatever the figures look like."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.runner import run_plan
from bundle.run_data import read_run
from bundle.summary import evidence_of
from planner.plan_file import plan_to_yaml
from planner.poc import Plan
from tests.bench.helpers import candidate, free_port, plan, point

ROOT = Path(__file__).resolve().parents[2]
# Stalls from the first moment of the load on until it is over: no stream escapes them on any machine.
STALL_S, BETWEEN_S = 0.3, 0.1


def stalled_plan() -> Plan:
    """Two waves of eight streams of half a second each."""
    emulated = candidate(free_port(), "--itl-ms", "15")
    return plan(emulated, points=[point(in_flight=8, requests=16, output_tokens=30, warmup_requests=0)])


def measures(out: Path) -> bool:
    """The load begins, or is under way."""
    try:
        return bool(json.loads((out / "progress.json").read_text())["phase"] == "measuring")
    except (OSError, json.JSONDecodeError):
        return False


def assert_invalid(out: Path) -> None:
    """Every figure of the run is spoiled by the stall, and the merged chunks are named."""
    run = read_run(out / "emu-A-start1")
    fired = {f.rule.id for f in run.repeats[0].findings}
    assert {"loop-stalled", "coalesced"} <= fired
    of_requests = [e for e in evidence_of(run) if e.metric in ("ttft_ms", "itl_ms", "output_tok_s")]
    assert of_requests
    assert not any(e.valid for e in of_requests)


def test_a_client_that_is_stopped_by_a_signal_makes_the_run_invalid(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(plan_to_yaml(stalled_plan()))
    out = tmp_path / "out"
    bench = subprocess.Popen([sys.executable, "-m", "bench", "run", tmp_path / "plan.yaml", "--out", out],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)  # fmt: skip
    while not measures(out):
        assert bench.poll() is None
        time.sleep(0.01)
    while measures(out):
        bench.send_signal(signal.SIGSTOP)
        time.sleep(STALL_S)  # the stall itself
        bench.send_signal(signal.SIGCONT)
        time.sleep(BETWEEN_S)
    assert bench.wait(timeout=120) == 0
    assert_invalid(out)


def test_a_busy_loop_in_the_client_makes_the_run_invalid(tmp_path: Path) -> None:
    async def go() -> None:
        running = asyncio.create_task(run_plan(stalled_plan(), tmp_path))
        while not measures(tmp_path):
            assert not running.done()
            await asyncio.sleep(0.01)
        while measures(tmp_path):
            until = time.monotonic() + STALL_S
            while time.monotonic() < until:
                pass
            await asyncio.sleep(BETWEEN_S)
        await running

    asyncio.run(go())
    assert_invalid(tmp_path)
