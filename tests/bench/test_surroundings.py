"""Another load on the machine, and another server behind the address, are said by the run itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.emulator import Emulator
from bench.emulator.answer import send
from bench.emulator.server import VERSIONS
from bench.runner import run_plan
from bench.surroundings import CoreTime, core_time, other_load_share
from bundle.folder import open_bundle
from bundle.summary import summarise
from tests.bench.helpers import FAST, candidate, free_port, plan, run_attached, run_started

TICKS = os.sysconf("SC_CLK_TCK")


def kernel(root: Path, busy_s: float, **spent_s: tuple[float, float]) -> None:
    """/proc as the kernel writes it (proc(5)): seconds of all cores, of processes, and of their children that ended."""
    root.mkdir(exist_ok=True)
    half = round(busy_s * TICKS / 2)
    # user nice system idle iowait irq softirq steal guest guest_nice
    (root / "stat").write_text(f"cpu  {half} 0 0 777 333 0 0 {half} 0 0\ncpu0 1 2 3\n")
    for pid, (own_s, of_children_s) in spent_s.items():
        (root / pid[1:]).mkdir(exist_ok=True)
        before = "S 1 7 7 0 -1 4194560 100 0 0 0"  # state to cmajflt
        times = f"{round(own_s * TICKS)} 0 {round(of_children_s * TICKS)} 0"
        (root / pid[1:] / "stat").write_text(f"{pid[1:]} (vllm (serve) x) {before} {times} 20 0 1 0 123 0 0")


def test_busy_cores_that_are_not_ours_are_other_load(tmp_path: Path) -> None:
    root = tmp_path / "proc"
    kernel(root, 100.0, p7=(2.0, 0.0), p8=(5.0, 1.0))
    before = core_time((7, 8, 9), root)
    # 9 of 20 s on two cores were busy: 3 of them process 7 and 8, one of whose children ended meanwhile.
    kernel(root, 109.0, p7=(3.5, 0.0), p8=(5.5, 2.0))
    after = core_time((7, 8, 9), root)
    assert before and after
    assert (after.busy_s - before.busy_s, after.ours_s - before.ours_s) == (pytest.approx(9), pytest.approx(3))
    assert other_load_share(before._replace(at_s=0.0), after._replace(at_s=10.0), 2) == pytest.approx(0.3)


def test_where_the_kernel_does_not_tell_nothing_is_claimed(tmp_path: Path) -> None:
    assert core_time((1,), tmp_path) is None
    assert other_load_share(None, CoreTime(1.0, 1.0, 1.0), 2) is None


def test_a_program_that_nobody_here_started_is_seen_on_this_machine(tmp_path: Path) -> None:
    # The shell ends at once, so that the program below it belongs to nobody; it says itself how long it had a core.
    burn = "import time\nwhile time.process_time() < 0.5: pass\nopen({!r}, 'w').close()"
    ended = tmp_path / "ended"
    before = core_time((os.getpid(),))
    subprocess.run(["sh", "-c", '"$@" &', "sh", sys.executable, "-c", burn.format(str(ended))], check=True)
    while not ended.exists():
        time.sleep(0.01)
    after = core_time((os.getpid(),))
    assert before and after
    others_s = (after.busy_s - before.busy_s) - (after.ours_s - before.ours_s)
    assert others_s > 0.4  # what else runs only adds to it; the kernel counts in ticks


def test_a_run_beside_other_programs_says_so_and_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.surroundings.other_load_share", lambda *_: 0.42)
    (folder,) = run_started(plan(candidate(free_port(), "--slots", "4")), tmp_path).bundles
    ttft = next(e for e in summarise(folder) if (e.metric, e.statistic) == ("ttft_ms", "p50"))
    assert "busy-machine: other programs took 42% of this machine's cores" in ttft.note
    assert not any("busy-machine" in s for s in ttft.spoiled_by)


def test_a_server_that_was_running_here_already_is_not_told_from_other_programs(tmp_path: Path) -> None:
    (attached,) = run_attached(FAST, tmp_path / "attached").bundles
    assert open_bundle(attached).repeats[0].other_load_share is None
    (started,) = run_started(plan(candidate(free_port(), "--slots", "4")), tmp_path / "started").bundles
    share = open_bundle(started).repeats[0].other_load_share
    assert share is not None and 0 <= share <= 1


class Upgraded(Emulator):
    """Answers as another version, or with another longest request, from its tenth chat request on."""

    changed: dict[str, Any] = {}

    async def _answer(self, request: Any, *streams: Any) -> None:
        if self._chats >= 10 and request.path in self.changed:
            send(streams[1], 200, self.changed[request.path])
        else:
            await super()._answer(request, *streams)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"/version": {"version": "emulator/2"}}, "engine_version_reported: emulator/1 -> emulator/2"),
        ({"/v1/models": {"data": [{"id": "emulated", "max_model_len": 512}]}}, "max_model_len: 32768 -> 512"),
        ({"/v1/models": {"data": [{"id": "another"}]}}, "unknown model 'emulated'"),
        ({"/v1/models": {}, "/version": {}}, ""),  # one that no longer says is not one that says otherwise
    ],
)
def test_another_server_behind_the_address_spoils_what_was_measured_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], told: str
) -> None:
    assert "/version" in VERSIONS
    monkeypatch.setattr(Upgraded, "changed", changed)

    async def go() -> Path:
        emulator = Upgraded(FAST)
        await emulator.start()
        try:
            made = plan(candidate(emulator.port))
            return (await run_plan(made, tmp_path)).bundles[0]
        finally:
            await emulator.stop()

    folder = asyncio.run(go())
    (repeat,) = open_bundle(folder).repeats
    assert repeat.ok == 6
    assert [c for c in repeat.contract_changed if told not in c] == []
    assert bool(repeat.contract_changed) == bool(told)
    found = {e.metric: e for e in summarise(folder)}
    spoiled = {m for m, e in found.items() if any(s.startswith("contract-changed:") for s in e.spoiled_by)}
    assert ({"ttft_ms", "output_tok_s", "error_share"} <= spoiled) == bool(told)
    assert "started" not in spoiled
