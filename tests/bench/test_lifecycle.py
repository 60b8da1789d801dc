"""What is left when bench is killed, and how the next run goes on: servers end, finished work is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from bench import lease
from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.lease import TOKEN, Lease, Process, alive, new_lease, ours, process, write_lease
from bench.progress import PROGRESS
from bench.resume import end_leftovers, kept_of
from bench.runner import RunResult, run_plan
from bundle.folder import file_sha256, open_bundle
from planner.errors import NotAllowed
from planner.plan_file import plan_to_yaml
from planner.poc import Plan
from tests.bench.helpers import FAST, candidate, free_port, plan, point, run_started, with_emulator

ROOT = Path(__file__).resolve().parents[2]
LONG = {"requests": 5000, "warmup_requests": 0}  # more than any test waits for


# Bench itself sends the signal amid the load of a point, as soon as a request has ended: nobody outside can be late.
SIGNALLED = """
import os, sys
from bench import __main__, progress
(point, number, times), done = sys.argv[1:4], progress.Reporter.done
left = [int(number)] * int(times)
def then_signal(self, requests=1):
    done(self, requests)
    while left and self.standing.point == point:
        os.kill(os.getpid(), left.pop())
progress.Reporter.done = then_signal
sys.exit(__main__.main(sys.argv[4:]))
"""


def signalled_bench(made: Plan, folder: Path, point: str, number: signal.Signals, times: int = 1) -> tuple[int, bytes]:
    """Exit code and error output of a run that gets a signal at a point."""
    running = started_bench(made, folder, program=("-c", SIGNALLED, point, str(number.value), str(times)))
    _, told = running.communicate(timeout=120)
    return running.returncode, told


def started_bench(
    made: Plan, folder: Path, *before: str, program: Sequence[str] = ("-m", "bench")
) -> subprocess.Popen[bytes]:
    (folder / "plan.yaml").write_text(plan_to_yaml(made))
    command = [*before, sys.executable, *program, "run", str(folder / "plan.yaml"), "--out", str(folder / "out")]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, preexec_fn=at_a_terminal
    )


def at_a_terminal() -> None:
    """Signals as at a prompt: what nohup or a background job ignores is inherited."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def wait_until(true: Callable[[], bool], running: subprocess.Popen[bytes] | None = None) -> None:
    while not true():
        assert running is None or running.poll() is None
        time.sleep(0.01)  # what is waited for needs the processor


def standing(out: Path) -> dict[str, object]:
    path = out / PROGRESS
    return json.loads(path.read_text()) if path.exists() else {}


def answers(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_kill_9_stops_the_server_and_the_next_run_repeats_no_finished_point(tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "out"
    made = plan(candidate(port, "--slots", "4"), points=[point("short"), point("long", **LONG)],
                stop={"max_point_s": 0.5})  # fmt: skip
    assert signalled_bench(made, tmp_path, "long", signal.SIGKILL)[0] == -signal.SIGKILL
    wait_until(lambda: not answers(port) and not list(out.glob("*/*.lease")))  # the guard has done its work
    before = file_sha256(out / "emu-A-start1" / "short-1.records.parquet")

    result = run_started(made, out)
    part, rest = (open_bundle(b) for b in result.bundles)
    assert [b.name for b in result.bundles] == ["emu-A-start1.interrupted-1", "emu-A-start1"]
    assert (part.status, [r.load_point for r in part.repeats]) == ("cancelled", ["short"])
    assert (rest.status, [r.load_point for r in rest.repeats]) == ("complete", ["long"])
    assert part.files["short-1.records.parquet"] == before
    assert any(f.startswith("interrupted: bench was killed") for f in part.findings)
    assert any("short had been measured in emu-A-start1.interrupted-1" in f for f in rest.findings)
    assert rest.id != part.id and rest.engine_start.startup_s != part.engine_start.startup_s
    assert not list(out.glob("*/*.lease"))
    assert run_started(made, out) == result  # nothing is left to do


def test_a_cancelled_run_goes_on_with_the_point_that_was_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.runner.LOOK_EVERY_S", 0.01)  # for the word to cancel, long before the point is over
    points = [point("short"), point("long", **LONG)]

    async def use(emulator: Emulator) -> tuple[RunResult, RunResult]:
        made = plan(candidate(emulator.port), points=points, stop={"max_point_s": 1.0})
        running = asyncio.create_task(run_plan(made, tmp_path))
        while standing(tmp_path).get("point") != "long":
            await asyncio.sleep(0.02)
        (tmp_path / "cancel").touch()
        return await running, await run_plan(made, tmp_path)

    first, second = with_emulator(FAST, use)
    assert first.state == "cancelled"
    assert [[r.load_point for r in open_bundle(b).repeats] for b in second.bundles] == [["short", "long"], ["long"]]
    assert open_bundle(second.bundles[0]).repeats[1].stop_reason == "cancelled"


@pytest.mark.usefixtures("never_late")
def test_stage_b_knows_the_points_of_both_parts_of_stage_a(tmp_path: Path) -> None:
    rule = {"setting": "max_num_seqs", "from_stage": "A", "keeps": {
        "metric": "ttft_ms", "statistic": "p50", "comparison": "<=", "threshold": 5000.0}}  # fmt: skip
    stages = [{"name": "A", "points": ["two", "one"]}, {"name": "B", "points": ["one"], "rule": rule}]
    points = [point("two"), point("one", in_flight=1, requests=2)]
    made = plan(candidate(free_port(), "--slots", "8", stage_settings={"max_num_seqs": "--slots"}),
                points=points, stages=stages)  # fmt: skip
    signalled_bench(made, tmp_path, "one", signal.SIGKILL)
    result = run_started(made, tmp_path / "out")
    b = open_bundle(result.bundles[-1])
    # The promise holds at both points; the larger one has two in flight and lies in the interrupted start.
    assert b.engine_start.command[-2:] == ("--slots", "2")


def test_a_lost_terminal_seals_what_is_there(tmp_path: Path) -> None:
    running = started_bench(plan(candidate(free_port(), "--slots", "4"), points=[point(**LONG)]), tmp_path)
    wait_until(lambda: standing(tmp_path / "out").get("phase") == "measuring", running)
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=120)
    assert open_bundle(tmp_path / "out" / "emu-A-start1").status == "cancelled"


SPAWN = """
import asyncio, pathlib, sys
from bench.dialects import dialect
from bench.engines import Server
from planner.poc import Launch
launch = Launch(url=sys.argv[2], command=("sh", "-c", "setsid sleep 600 & sleep 600 & wait"))
asyncio.run(Server(launch, dialect("vllm"), pathlib.Path(sys.argv[1])).start())
"""


def test_children_that_left_the_group_end_with_a_killed_bench(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    bench = subprocess.Popen([sys.executable, "-c", SPAWN, str(tmp_path / "server.log"), url], cwd=ROOT)
    noted = tmp_path / "server.lease"

    def family() -> list[Process]:
        found = lease.read_lease(noted)
        return ours(found) if found else []

    wait_until(lambda: len(family()) == 3, bench)
    found = family()
    bench.kill()
    bench.wait()
    wait_until(lambda: not any(alive(p) for p in found))
    wait_until(lambda: not noted.exists())


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], env={**os.environ, **environment}, start_new_session=True)


DEAD = Process(2**22 + 1, 1)  # above the largest process number of Linux


def noted(folder: Path, made: Lease) -> None:
    (folder / "start").mkdir()
    write_lease(folder / "start" / "server.lease", made)


def test_the_next_run_ends_what_it_can_prove_to_be_ours(tmp_path: Path) -> None:
    made = new_lease(("vllm", "serve", "m"), "http://127.0.0.1:1")._replace(bench=DEAD)
    child = sleeper(**{TOKEN: made.token})
    noted(tmp_path, made._replace(server=process(child.pid)))
    (said,) = end_leftovers(tmp_path)
    assert said == f"leftover: ended process {child.pid} of vllm serve m, which a bench that was killed had left."
    assert child.wait() == -signal.SIGTERM
    assert end_leftovers(tmp_path) == []


@pytest.mark.parametrize("change", ["another start time", "another boot", "another token"])
def test_a_process_that_only_looks_like_ours_is_let_alone(tmp_path: Path, change: str) -> None:
    made = new_lease(("vllm", "serve", "m"), "http://127.0.0.1:1")._replace(bench=DEAD)
    child = sleeper(**{TOKEN: "0" * 32 if change != "another boot" else made.token})
    try:
        seen = process(child.pid)
        assert seen
        if change == "another boot":
            made = made._replace(boot="another", server=seen)
        elif change == "another start time":  # the number was given to somebody else
            made = made._replace(server=seen._replace(started=seen.started - 1))
        noted(tmp_path, made)
        assert end_leftovers(tmp_path) == []
        assert alive(seen)
    finally:
        child.kill()
        child.wait()


def test_two_benches_do_not_share_a_folder(tmp_path: Path) -> None:
    noted(tmp_path, new_lease(("vllm", "serve", "m"), "http://127.0.0.1:1"))
    with pytest.raises(NotAllowed, match=f"another bench .process {os.getpid()}. is measuring into this folder"):
        end_leftovers(tmp_path)


def test_a_point_at_which_the_server_never_answers_does_not_lose_the_others(tmp_path: Path) -> None:
    # 100 tokens of cache: a prompt of 120 never finds room, one of 40 does.
    too_long = point("too-long", input_tokens=120, requests=2, warmup_requests=0)
    points = [point("first"), too_long, point("last")]
    full = Settings(ttft_ms=20, itl_ms=2, kv_tokens=100)

    async def use(emulator: Emulator) -> RunResult:
        made = plan(candidate(emulator.port), points=points, stop={"request_timeout_s": 4, "max_error_share": 1.0})
        return await run_plan(made, tmp_path)

    manifest = open_bundle(with_emulator(full, use).bundles[0])
    assert manifest.status == "complete"
    assert [(r.load_point, r.ok, r.failed) for r in manifest.repeats] == [
        ("first", 6, 0), ("too-long", 0, 2), ("last", 6, 0)]  # fmt: skip
    assert any(f.startswith("failures: too-long: timeout") for f in manifest.findings)


def test_the_time_that_was_spent_is_not_the_wall_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Set(datetime):
        """A wall clock that is set back by an hour at every look."""

        looks = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            cls.looks += 1
            return datetime.now(tz) - timedelta(hours=cls.looks)

    monkeypatch.setattr("bench.bundling.datetime", Set)

    async def use(emulator: Emulator) -> float:
        made = plan(candidate(emulator.port))
        (folder,) = (await run_plan(made, tmp_path)).bundles
        manifest = open_bundle(folder)
        assert manifest.finished_at < manifest.created_at
        return kept_of(made, folder).spent_s

    assert 0 < with_emulator(FAST, use) < 3600


def test_a_budget_is_shared_by_the_candidates_and_what_it_cost_is_said(tmp_path: Path) -> None:
    # Two in flight, 30 ms each: 6 s would take 400. Thousands would cost the budget before they are sent.
    points = [point("long", requests=1000, warmup_requests=0), point("never")]

    async def use(emulator: Emulator) -> tuple[RunResult, RunResult]:
        made = plan(candidate(emulator.port, name="a"), candidate(emulator.port, name="b"), points=points,
                    budget_min=0.1)  # fmt: skip
        return await run_plan(made, tmp_path), await run_plan(made, tmp_path)

    first, again = with_emulator(FAST, use)
    assert first.state == "finished"
    for folder in first.bundles:
        manifest = open_bundle(folder)
        (repeat,) = manifest.repeats
        assert (repeat.load_point, repeat.status) == ("long", "stopped")
        assert repeat.stop_reason == "the run's budget of 0.1 min was used up"
        assert repeat.ok > 0
        assert f"{folder.name}: budget: the time of the run was up before never." in first.notes
    # 6 s for two bundles: half of it for the first, and what is left for the second. A machine that stands still sees
    # the end later.
    repeats = [open_bundle(b).repeats[0] for b in first.bundles]
    assert sum(r.duration_s * (1 - r.loop_stalled_share) for r in repeats) < 6.4
    assert again == first
