"""A client that stands still says so by itself: its run is invalid, whatever the figures look like."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.progress import CANCEL
from bench.runner import run_plan
from bundle.summary import evidence_of, read_run
from planner.poc import Plan, plan_to_yaml
from tests.bench.helpers import candidate, free_port, plan, point

ROOT = Path(__file__).resolve().parents[2]
STALL_S = 0.6
IN_FLIGHT = 8


def stalled_plan() -> Plan:
    """Streams that go on until the run is cancelled, so that a stall falls into them however slow the machine is."""
    emulated = candidate(free_port(), "--itl-ms", "15")
    return plan(emulated, points=[point(in_flight=IN_FLIGHT, requests=2000, output_tokens=30, warmup_requests=0)])


def told(out: Path) -> tuple[int, float]:
    """Requests that had ended, and when that was written."""
    try:
        standing = json.loads((out / "progress.json").read_text())
    except (OSError, json.JSONDecodeError):
        return 0, 0.0
    return standing["done_requests"], standing["heartbeat_unix_s"]


def until_the_window_has_begun(out: Path) -> Iterator[None]:
    """Yield until every request in flight was scheduled in the steady window, which alone is counted."""
    while told(out)[0] <= 2 * IN_FLIGHT:
        yield


def until_those_in_flight_have_ended(out: Path) -> Iterator[None]:
    """Yield until every request that was in flight now has ended: as many as that, and one more."""
    now = time.time()
    while told(out)[1] <= now:
        yield
    ended = told(out)[0]
    while told(out)[0] <= ended + IN_FLIGHT:
        yield


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

    def wait(steps: Iterator[None]) -> None:
        for _ in steps:
            assert bench.poll() is None
            time.sleep(0.01)

    wait(until_the_window_has_begun(out))
    bench.send_signal(signal.SIGSTOP)
    time.sleep(STALL_S)  # the stall itself
    bench.send_signal(signal.SIGCONT)
    wait(until_those_in_flight_have_ended(out))
    (out / CANCEL).touch()
    assert bench.wait(timeout=60) == 130
    assert_invalid(out)


def test_a_busy_loop_in_the_client_makes_the_run_invalid(tmp_path: Path) -> None:
    async def go() -> None:
        running = asyncio.create_task(run_plan(stalled_plan(), tmp_path))

        async def wait(steps: Iterator[None]) -> None:
            for _ in steps:
                assert not running.done()
                await asyncio.sleep(0.01)

        await wait(until_the_window_has_begun(tmp_path))
        until = time.monotonic() + STALL_S
        while time.monotonic() < until:
            pass
        await wait(until_those_in_flight_have_ended(tmp_path))
        (tmp_path / CANCEL).touch()
        await running

    asyncio.run(go())
    assert_invalid(tmp_path)
