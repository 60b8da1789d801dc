"""Everything that can go wrong in a run: a clear sentence, a bundle valid up to there, and never a good-looking number.

A server that failed has given a result; where the instrument did, or the conditions were wrong, the run is invalid.
"""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.arrivals import Arrivals
from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.runner import RunResult, run_plan
from bundle.distributions import NEVER_MS
from bundle.folder import open_bundle
from bundle.manifest import Manifest
from bundle.records import Record
from bundle.summary import summarise
from planner.conditions import Evidence
from planner.errors import ServerError
from planner.plan_file import plan_to_yaml
from planner.poc import Plan
from tests.bench.answering import run_answered
from tests.bench.helpers import (
    FAST,
    candidate,
    free_port,
    only_bundle,
    plan,
    point,
    run_attached,
    run_started,
    with_emulator,
)
from tests.bench.test_lifecycle import answers, signalled_bench, standing, started_bench, wait_until

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"ttft_ms": 20.0, "itl_ms": 2.0}
OF_THE_PREFLIGHT = 2  # chat requests before the load: the template is measured, and the stream probed
LONG = point("long", requests=1500, warmup_requests=0)  # longer than any test waits
SPEED = {"ttft_ms", "itl_ms", "tpot_ms", "user_tok_s", "e2e_ms", "output_tok_s", "goodput"}


def evidence(folder: Path) -> list[Evidence]:
    """What a bundle says about its load points."""
    return [e for e in summarise(folder) if e.load_point]


def of(found: list[Evidence], metric: str, statistic: str = "value") -> Evidence:
    return next(e for e in found if (e.metric, e.statistic) == (metric, statistic))


def spoiled(found: list[Evidence], rule: str) -> set[str]:
    """Metrics that a rule has spoiled."""
    return {e.metric for e in found if any(s.startswith(f"{rule}:") for s in e.spoiled_by)}


def load_of(records: list[Record]) -> list[Record]:
    return [r for r in records if r.is_load]


def struck(fault: str, out: Path, *, after: int = OF_THE_PREFLIGHT, **more: Any) -> tuple[Manifest, list[Record]]:
    """A run against a server that was healthy at first; the fault strikes from the chat request after `after` on."""
    points = more.pop("points", [point(in_flight=6, warmup_requests=0)])
    stop = {"request_timeout_s": 3.0 if fault == "stall" else 60.0, "max_error_share": 1.0}
    settings = Settings(**QUICK, fault=fault, fault_after=after)
    return only_bundle(run_attached(settings, out, points=points, stop=stop, **more))


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("stall", "timeout", "the answer was not whole in time"),
        ("reset", "reset", "the connection broke: [Errno 104] Connection reset by peer"),
        ("close-mid-stream", "closed", "the server closed the connection before the answer was whole"),
        ("error-mid-stream", "stream_error", "the engine failed in mid-stream"),
        ("error-object", "stream_error", "the engine failed before the first token"),
        ("429", "http", "HTTP 429: Model is overloaded. (Retry-After: 1)"),
        ("503", "http", "HTTP 503: The server is overloaded. (Retry-After: 1)"),
    ],
)
@pytest.mark.usefixtures("never_late")
def test_a_server_that_fails_has_given_a_result(tmp_path: Path, fault: str, kind: str, text: str) -> None:
    manifest, records = struck(fault, tmp_path)
    load = load_of(records)
    assert {(r.outcome, r.error_kind, r.error) for r in load} == {("failed", kind, text)}
    assert len(load) == 6  # each was sent once: a refused request is not sent again
    assert (manifest.status, manifest.repeats[0].failed) == ("complete", 6)
    assert f"failures: parallel-2: {kind}: {text}" in manifest.findings
    found = evidence(tmp_path / "emu-A-start1")
    assert (of(found, "error_share").value, of(found, "completed_share").value) == (1.0, 0.0)
    assert of(found, "ttft_ms", "p50").value == NEVER_MS
    assert of(found, "user_tok_s", "p50").value == 0.0
    assert "itl_ms" not in {e.metric for e in found}  # the gaps of answers that broke off say nothing
    assert of(found, "error_share").valid


@pytest.mark.parametrize("fault", ["429", "503"])
def test_a_server_that_is_overloaded_for_a_moment_loses_those_requests_only(tmp_path: Path, fault: str) -> None:
    settings = Settings(**QUICK, fault=fault, fault_after=OF_THE_PREFLIGHT + 2, fault_times=2)
    manifest, records = only_bundle(run_attached(settings, tmp_path, points=[point(in_flight=1, warmup_requests=0)]))
    assert [r.http_status for r in load_of(records)] == [200, 200, int(fault), int(fault), 200, 200]
    assert (manifest.repeats[0].ok, manifest.repeats[0].failed) == (4, 2)


def test_usage_that_lies_spoils_every_figure_that_counts_tokens(tmp_path: Path) -> None:
    struck("lying-usage", tmp_path, after=0)  # one more than was sent, in every answer
    found = evidence(tmp_path / "emu-A-start1")
    assert spoiled(found, "usage-counter") >= {"output_tok_s"}
    assert not [e for e in found if e.metric in ("output_tok_s", "user_tok_s", "tpot_ms") and e.valid]


def test_a_lie_that_gives_the_length_asked_for_is_found_in_the_servers_counter(tmp_path: Path) -> None:
    """An engine that cannot hold the output length: only its own counter gives the lie away."""
    unbound = candidate(1) | {"contract": {"engine": "vllm", "output_length": "free"}}

    def run(emulator: Emulator) -> Awaitable[RunResult]:
        made = plan(unbound | {"launch": {"url": f"http://127.0.0.1:{emulator.port}"}})
        return run_plan(made, tmp_path)

    with_emulator(Settings(**QUICK, fault="lying-usage"), run)
    found = evidence(tmp_path / "emu-A-start1")
    assert not spoiled(found, "output-length")
    assert spoiled(found, "usage-counter") == {"output_tok_s"}  # per-user speed is not even computed
    assert not {"tpot_ms", "user_tok_s"} & {e.metric for e in found}


def test_a_prompt_that_was_cut_spoils_everything(tmp_path: Path) -> None:
    manifest, records = struck("truncate", tmp_path)
    assert all(r.outcome == "ok" and r.prompt_tokens == 20 and r.asked_prompt_tokens == 40 for r in load_of(records))
    found = evidence(tmp_path / "emu-A-start1")
    assert spoiled(found, "prompt-length") == {e.metric for e in found} - {"oom", "restarts"}
    assert spoiled(found, "prompt-length") >= SPEED - {"goodput"}
    assert manifest.status == "complete"


def test_a_prompt_that_is_cut_from_the_start_is_said_by_the_preflight(tmp_path: Path) -> None:
    manifest, _ = struck("truncate", tmp_path, after=0)
    assert any(f.startswith("prompt-length: a prompt of") and "was counted as" in f for f in manifest.findings)


def test_a_server_that_restarts_in_mid_run_is_counted_and_its_counters_are_not_believed(tmp_path: Path) -> None:
    # 60 requests at once, then 30 a second of which the 11th kills the server; it is back after a second with all
    # counters at zero, and the 30-odd requests that follow cannot bring them back to where they stood.
    first = point("first", in_flight=60, requests=60, warmup_requests=0)
    second = point("second", shape="open", rate_per_s=30.0, arrival="constant", requests=60, warmup_requests=0)
    manifest, records = struck("restart", tmp_path, after=OF_THE_PREFLIGHT + 70, points=[first, second])
    assert manifest.status == "complete"
    assert [r.server_restarts > 0 for r in manifest.repeats] == [False, True]
    assert {r.error_kind for r in records if r.outcome == "failed"} <= {"closed", "reset", "connect"}
    assert manifest.repeats[1].failed > 0 and manifest.repeats[1].ok > 0
    found = {p: [e for e in evidence(tmp_path / "emu-A-start1") if e.load_point == p] for p in ("first", "second")}
    assert (of(found["first"], "restarts").value, of(found["first"], "preemptions").value) == (0, 0)
    assert of(found["second"], "restarts").value >= 1 and of(found["second"], "restarts").valid
    assert not {"preemptions", "prefix_hit"} & {e.metric for e in found["second"]}


def test_a_server_that_dies_in_mid_run_fails_what_was_left(tmp_path: Path) -> None:
    dying = candidate(free_port(), "--fault", f"die:{OF_THE_PREFLIGHT + 2}")
    result = run_started(plan(dying, points=[point(warmup_requests=0, requests=8)]), tmp_path)
    manifest, records = only_bundle(result)
    assert (manifest.status, manifest.engine_start.exit_code, result.failed) == ("failed", 1, ("emu-A-start1",))
    assert "\n" not in manifest.engine_start.error
    assert manifest.engine_start.error == "the server ended with exit code 1: emulator: dying as told"
    assert len(load_of(records)) == 8 and {r.outcome for r in load_of(records)} == {"ok", "failed"}
    found = evidence(tmp_path / "emu-A-start1")
    assert of(found, "restarts").value == 1
    assert of(found, "completed_share").value < 1


ON_A_SMALL_DISK = (
    'mount -t tmpfs -o size="$1" tmpfs "$2" || exit 99; from=$2; to=$3; shift 3; "$@"; code=$?; cp -r "$from" "$to"; '
    "exit $code"
)


def on_a_small_disk(made: Plan, folder: Path, size: str, *, again: bool = False) -> tuple[int, str, Path]:
    """Run bench into a file system of that size; its exit code, what it said, and a copy of what it left."""
    disk, copy = folder / "disk", folder / "copy"
    disk.mkdir()
    (folder / "plan.yaml").write_text(plan_to_yaml(made))
    enter = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    done = subprocess.run(
        [*enter, "sh", "-c", ON_A_SMALL_DISK, "sh", size, disk, copy, sys.executable, "-m", "bench", "run",
         folder / "plan.yaml", "--out", disk / "out"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode != 99, f"This test needs mount namespaces, which are not permitted: {done.stderr}"
    return done.returncode, done.stderr, copy / "out"


def test_a_disk_that_is_full_is_one_sentence_and_the_bundle_is_valid_up_to_there(tmp_path: Path) -> None:
    # The small point takes some 60 KiB with log and manifest; the 16,000 arrival times of the second do not fit.
    big = point("big", requests=400, in_flight=50, output_tokens=40, warmup_requests=0)
    made = plan(candidate(free_port(), "--slots", "64"), points=[point("small"), big])
    code, told, out = on_a_small_disk(made, tmp_path, "112k")
    assert code == 2
    assert told.startswith("bench: ") and told.count("\n") == 1
    assert "cannot be written: No space left on device. Make room; the same command goes on from here" in told
    manifest = open_bundle(out / "emu-A-start1")
    assert (manifest.status, [r.load_point for r in manifest.repeats]) == ("cancelled", ["small"])
    assert of(evidence(out / "emu-A-start1"), "completed_share").value == 1.0


def test_a_disk_that_is_full_from_the_start_is_one_sentence(tmp_path: Path) -> None:
    code, told, _ = on_a_small_disk(plan(candidate(free_port(), "--slots", "4")), tmp_path, "4k")
    assert (code, told.count("\n")) == (2, 1)
    assert "cannot be written: No space left on device" in told


class Stepped(Arrivals):
    """Arrivals on a machine whose wall clock is set forward or back by `step_s` after the `after`-th read."""

    def __init__(self, step_s: float, after: int) -> None:
        self._step_ns, self._after, self._moved_ns = round(step_s * 1e9), after, 0
        super().__init__()
        wall = self._realtime_ns
        self._realtime_ns = lambda: wall() + self._moved_ns

    def time_of(self, control: Sequence[tuple[int, int, bytes]], epoch: int) -> tuple[float, bool]:
        moved_before = self._moved_ns
        if self.reads == self._after:
            self._moved_ns = self._step_ns  # after the stamp was made, before it is read
        shifted = [(level, kind, _moved(stamp, moved_before)) for level, kind, stamp in control]
        return super().time_of(shifted, epoch)


def _moved(stamp: bytes, by_ns: int) -> bytes:
    seconds, nanoseconds = struct.unpack("@ll", stamp)
    return struct.pack("@ll", *divmod(seconds * 1_000_000_000 + nanoseconds + by_ns, 1_000_000_000))


@pytest.mark.usefixtures("never_late")
@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_wall_clock_that_is_set_in_mid_run_moves_no_time_and_spoils_latencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    monkeypatch.setattr("bench.transport.Arrivals", partial(Stepped, step_s, 60))
    result = run_attached(FAST, tmp_path, points=[point(requests=20, warmup_requests=0)])
    manifest, records = only_bundle(result)
    (repeat,) = manifest.repeats
    assert repeat.clock_step_ms == pytest.approx(step_s * 1000, abs=1)
    assert repeat.stamps_dropped >= 1
    for r in records:
        times = [r.dispatched_s or 0.0, r.first_byte_s or 0.0, *r.chunk_s]
        assert times == sorted(times) and times[-1] <= (r.end_s or 0.0) <= repeat.duration_s
    found = evidence(tmp_path / "emu-A-start1")
    assert spoiled(found, "clock-step") >= {"ttft_ms", "itl_ms", "tpot_ms", "user_tok_s", "e2e_ms"}
    assert of(found, "completed_share").valid  # what the server did is known all the same


def test_a_wall_clock_that_is_set_while_nothing_arrives_is_seen_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, offset_s = [], Arrivals.offset_s

    def set_by_20_ms(self: Arrivals) -> float:
        looked.append(offset_s(self))
        return looked[-1] - 0.02 * (len(looked) - 1)  # a wall clock set forward lies further ahead of the monotonic one

    monkeypatch.setattr(Arrivals, "offset_s", set_by_20_ms)
    before = time.time()
    manifest, _ = only_bundle(run_attached(FAST, tmp_path))
    (repeat,) = manifest.repeats
    assert (len(looked), repeat.clock_step_ms) == (2, pytest.approx(20, abs=1))
    assert before <= repeat.t0_unix_s <= time.time()


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_once_or_twice_leaves_what_had_ended(tmp_path: Path, times: int) -> None:
    port, out = free_port(), tmp_path / "out"
    made = plan(candidate(port, "--slots", "4"), points=[point("short", warmup_requests=0), LONG],
                stop={"max_point_s": 0.5})  # fmt: skip
    assert signalled_bench(made, tmp_path, "long", signal.SIGINT, times) == (130, b"")
    wait_until(lambda: not answers(port) and not list(out.glob("*/*.lease")))
    result = run_started(made, out)  # goes on from there; a bundle that the second interrupt left open is sealed
    part, rest = (open_bundle(b) for b in result.bundles)
    assert (part.status, part.repeats[0].load_point, part.repeats[0].ok) == ("cancelled", "short", 6)
    assert [r.load_point for r in rest.repeats] == ["long"]


def test_a_second_interrupt_is_heard_while_a_million_requests_are_being_prepared(tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "out"
    made = plan(candidate(port, "--slots", "4"), points=[point("million", requests=1_000_000, warmup_requests=0)])
    running = started_bench(made, tmp_path)
    wait_until(lambda: standing(out).get("phase") == "measuring", running)
    deadline = time.monotonic() + 15  # to prepare them takes a minute
    while running.poll() is None and time.monotonic() < deadline:
        running.send_signal(signal.SIGINT)  # again and again: two that come at once are one
        time.sleep(0.1)
    running.kill()
    _, told = running.communicate()
    assert (running.returncode, told) == (130, b"")
    wait_until(lambda: not answers(port) and not list(out.glob("*/*.lease")))


def test_a_machine_without_file_handles_for_2000_connections_makes_the_run_invalid(tmp_path: Path) -> None:
    many = point("many", in_flight=2000, requests=2000, warmup_requests=0)

    async def use(emulator: Emulator) -> tuple[int | None, str]:
        made = plan(candidate(emulator.port), points=[many, point("few")])
        running = started_bench(made, tmp_path, "sh", "-c", 'ulimit -n 200 && exec "$@"', "sh")
        _, told = await asyncio.to_thread(running.communicate)
        return running.returncode, told.decode()

    assert with_emulator(FAST, use) == (0, "")  # the bundle was written, and so was the next point
    manifest = open_bundle(tmp_path / "out" / "emu-A-start1")
    first, second = manifest.repeats
    assert "this machine gives no more connections: Too many open files. Raise `ulimit -n`" in first.stop_reason
    assert (first.status, first.failed) == ("stopped", 0)  # nobody blames the server
    found = [e for e in evidence(tmp_path / "out" / "emu-A-start1") if e.load_point == "many"]
    assert spoiled(found, "client-limit") == {e.metric for e in found} - {"oom", "restarts"}
    assert (second.ok, second.status) == (6, "complete")


@pytest.mark.usefixtures("never_late")
def test_a_stale_connection_is_opened_again_its_time_is_in_ttft_and_the_run_says_so(tmp_path: Path) -> None:
    _, records = struck("close-idle", tmp_path, points=[point(warmup_requests=0)])
    assert all(r.outcome == "ok" for r in load_of(records))
    assert any(r.reconnected for r in load_of(records))
    times = [(r.dispatched_s, r.connected_s, r.sent_s, r.first_token_s) for r in load_of(records)]
    assert all(a is not None and b is not None and a <= b for t in times for a, b in pairwise(t))
    ttft = of(evidence(tmp_path / "emu-A-start1"), "ttft_ms", "p50")
    assert ttft.valid and "of the requests had to open a new connection" in ttft.note


def test_usage_that_counts_more_than_a_record_holds_loses_no_run(tmp_path: Path) -> None:
    run_answered(lambda body: ["w "] * 6, tmp_path / "out", tmp_path, points=[point(warmup_requests=0)],
                 counted=lambda pieces: 5_000_000_000)  # fmt: skip
    found = evidence(tmp_path / "out" / "emu-A-start1")
    assert spoiled(found, "usage-missing") == {"output_tok_s"}  # speeds per user are not even computed


def test_usage_that_counts_fewer_tokens_than_chunks_came_is_a_lie(tmp_path: Path) -> None:
    mine = point("mine", output_tokens=8, warmup_requests=0)
    run_answered(lambda body: ["w "] * 8, tmp_path / "out", tmp_path, points=[mine], counted=lambda pieces: 4)
    found = evidence(tmp_path / "out" / "emu-A-start1")
    assert spoiled(found, "usage-below-chunks") >= {"output_tok_s"}


@pytest.mark.parametrize("phase", ["starting the server", "preflight", "warm-up", "measuring"])
def test_a_run_is_cancelled_at_any_time_and_leaves_no_server(tmp_path: Path, phase: str) -> None:
    port, out = free_port(), tmp_path / "out"
    after = {"preflight": 0, "warm-up": OF_THE_PREFLIGHT, "measuring": OF_THE_PREFLIGHT + 4}.get(phase, 0)
    stalls = candidate(port, "--fault", f"stall:{after}")
    if phase == "starting the server":
        stalls["launch"]["command"] = ["sleep", "600"]
    # A busy machine may take another round of warm-up, which then stalls in place of the load until this time is over.
    made = plan(stalls, points=[point(warmup_requests=2)], stop={"request_timeout_s": 10})

    async def go() -> RunResult:
        running = asyncio.create_task(run_plan(made, out, allow_command=True))
        while standing(out).get("phase") != phase:
            await asyncio.sleep(0.01)
        (out / "cancel").touch()
        return await running

    result = asyncio.run(go())
    assert result.state == "cancelled"
    assert not answers(port)
    assert not list(out.glob("*/*.lease"))
    if phase in ("warm-up", "measuring"):
        assert open_bundle(out / "emu-A-start1").status == "cancelled"


def test_a_refusal_before_the_load_is_one_sentence_with_the_time_that_the_server_asks_for(tmp_path: Path) -> None:
    with pytest.raises(ServerError) as told:
        run_attached(Settings(fault="503"), tmp_path)
    assert "answered 503: The server is overloaded. (Retry-After: 1)" in str(told.value)
    assert "\n" not in str(told.value)
