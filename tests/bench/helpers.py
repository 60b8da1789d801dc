"""What the tests of bench share: small plans, an emulator in the same loop or as a process, a raw server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.runner import RunResult, run_plan
from bundle.folder import open_bundle
from bundle.manifest import Manifest
from bundle.records import Record, read_records
from planner.poc import Plan

T = TypeVar("T")
FAST = Settings(ttft_ms=20, itl_ms=2)


def free_port() -> int:
    """A TCP port of loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def point(name: str = "parallel-2", **more: Any) -> dict[str, Any]:
    """A small closed load point."""
    base: dict[str, Any] = {"name": name, "input_tokens": 40, "output_tokens": 6, "requests": 6, "warmup_requests": 1}
    if more.get("shape") != "open":
        base["in_flight"] = 2
    return base | more


def candidate(port: int, *emulate: str, name: str = "emu", engine: str = "vllm", **launch: Any) -> dict[str, Any]:
    """A candidate on the emulator: attached, or started with `emulate` as its arguments."""
    command: list[str] = []
    if emulate:
        command = [
            "python",
            "-m",
            "bench",
            "emulate",
            "--port",
            str(port),
            "--ttft-ms",
            "20",
            "--itl-ms",
            "2",
            *emulate,
        ]
    return {
        "id": name, "role": "favourite", "engine": engine, "model_name": "emulated",
        "contract": {"engine": engine, "output_length": "fixed"},
        "launch": {"url": f"http://127.0.0.1:{port}", "command": command, "ready_timeout_s": 60} | launch,
    }  # fmt: skip


def plan(*candidates: dict[str, Any], points: list[dict[str, Any]] | None = None, **more: Any) -> Plan:
    """A plan with one stage A over all points and one start, unless told otherwise."""
    points = points or [point()]
    base: dict[str, Any] = {
        "case": "test", "title": "Test", "shared_contract": {"model": "emulated"},
        "candidates": list(candidates), "load_points": points,
        "stages": [{"name": "A", "points": [p["name"] for p in points]}], "starts": 1,
    }  # fmt: skip
    return Plan.model_validate(base | more)


def with_emulator(settings: Settings, use: Callable[[Emulator], Awaitable[T]]) -> T:
    """Run `use` beside an emulator in one loop."""

    async def go() -> T:
        emulator = Emulator(settings)
        await emulator.start()
        try:
            return await use(emulator)
        finally:
            await emulator.stop()

    return asyncio.run(go())


def run_attached(settings: Settings, out: Path, engine: str = "vllm", **more: Any) -> RunResult:
    """Run a small plan against an emulator that runs already."""
    return with_emulator(settings, lambda e: run_plan(plan(candidate(e.port, engine=engine), **more), out))


def run_started(made: Plan, out: Path) -> RunResult:
    """Run a plan that starts its own servers."""
    return asyncio.run(run_plan(made, out))


def only_bundle(result: RunResult) -> tuple[Manifest, list[Record]]:
    """The manifest and all records of the single bundle of a run, verified."""
    (folder,) = result.bundles
    manifest = open_bundle(folder)
    return manifest, [r for repeat in manifest.repeats for r in read_records(folder / repeat.records)]
