"""A load offered by several processes gives the bundle that one would have given, or says that it did not."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from bench.emulator.settings import Settings
from bench.inputs import Inputs
from bench.prompts import PromptMaker, Vocabulary
from bench.repeat import Share
from bench.runner import run_plan
from bench.schedule import TraceRow, send_times
from bench.shard import BENCH_DIED, WORK, Work
from bench.shards import TESTED_CHUNKS_PER_S, ShardedLoad, expected_chunks_per_s, number_of_shards
from bundle.manifest import Manifest
from bundle.records import Record, read_records
from bundle.summary import summarise
from planner.loads import LoadPoint
from planner.poc import Launch, Stop
from tests.bench.helpers import FAST, candidate, free_port, only_bundle, plan, point, with_emulator

BURSTY = {"arrival": "gamma", "burstiness": 0.25}


def load_point(**more: object) -> LoadPoint:
    return LoadPoint.model_validate({"name": "p", "input_tokens": 8, "output_tokens": 100, "requests": 2000} | more)


def run_sharded(settings: Settings, out: Path, points: list[dict[str, object]], **more: object) -> tuple[
    Manifest, list[Record]
]:  # fmt: skip
    """A plan in two shards against an emulator that runs already."""
    return only_bundle(with_emulator(
        settings, lambda e: run_plan(plan(candidate(e.port), points=points, **more), out, shards=2)
    ))  # fmt: skip


def gap_statistics(times: list[float]) -> tuple[float, float, float]:
    """Mean, coefficient of variation and lag-1 autocorrelation of the intervals."""
    gaps = [b - a for a, b in pairwise([0.0, *times])]
    mean = fmean(gaps)
    lag_one = sum((a - mean) * (b - mean) for a, b in pairwise(gaps)) / sum((g - mean) ** 2 for g in gaps)
    return mean, pstdev(gaps) / mean, lag_one


# One stream of 100 tokens in 2 s is 50 chunks/s; a process takes 25,600 chunks/s, which is 512 of them.
@pytest.mark.parametrize(
    ("in_flight", "cores", "asked", "shards"),
    [(512, 8, None, 1), (513, 8, None, 2), (2000, 8, None, 4), (2000, 3, None, 2), (2000, 1, None, 1), (4, 2, 3, 3),
     (2, 8, 5, 2)],
)  # fmt: skip
def test_there_are_as_many_shards_as_the_rate_needs_and_the_machine_has(
    in_flight: int, cores: int, asked: int | None, shards: int
) -> None:
    assert TESTED_CHUNKS_PER_S == 25_600
    assert number_of_shards(load_point(in_flight=in_flight), 2.0, Inputs(), asked, cores) == shards


def test_an_open_load_is_expected_to_bring_what_it_offers() -> None:
    assert expected_chunks_per_s(load_point(shape="open", rate_per_s=300.0), 9.0) == 30_000
    ramp = load_point(shape="ramp", rate_per_s=10.0, rate_to_per_s=300.0, ramp_s=5.0)
    assert expected_chunks_per_s(ramp, 9.0) == 30_000
    trace = Inputs(trace=(TraceRow(0.0, 8, 100), TraceRow(4.0, 8, 300)))
    assert expected_chunks_per_s(load_point(shape="trace", trace_file="t.csv"), 9.0, trace) == 100


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shares_hold_every_request_once(of: int) -> None:
    shares = [Share(k, of) for k in range(of)]
    numbers = [share.nth(position) for share in shares for position in range(share.size(20))]
    assert sorted(numbers) == list(range(20))


@pytest.mark.parametrize(
    ("arrival", "cv"),
    # A gamma of shape k has the coefficient of variation 1 / sqrt(k): 1 for poisson, 2 for k = 0.25.
    [({"arrival": "poisson"}, 1.0), (BURSTY, 2.0)],
)
@pytest.mark.parametrize("of", [2, 5])
def test_the_schedule_that_shards_send_together_has_the_asked_statistics(
    arrival: dict[str, object], cv: float, of: int
) -> None:
    p = load_point(shape="open", rate_per_s=5.0, **arrival)
    sent = sorted(t for k in range(of) for t in send_times(p, 1, 1, 20_000)[k::of])
    mean, found_cv, lag_one = gap_statistics(sent)
    assert mean == pytest.approx(0.2, rel=0.04)
    assert found_cv == pytest.approx(cv, abs=0.05)
    assert abs(lag_one) < 0.03


def test_two_shards_give_the_bundle_of_one_process(tmp_path: Path) -> None:
    bursts = point("bursts", shape="open", rate_per_s=200.0, requests=200, **BURSTY)
    manifest, records = run_sharded(FAST, tmp_path, [point(requests=12, in_flight=4), bursts])
    closed, opened = manifest.repeats
    folder = tmp_path / "emu-A-start1"
    for repeat, requests in ((closed, 12), (opened, 200)):
        found = read_records(folder / repeat.records)
        assert (repeat.stop_reason, repeat.shards, repeat.shards_lost, repeat.ok) == ("", 2, 0, requests), (
            manifest.findings
        )
        assert [r.request for r in found if r.is_load] == list(range(requests))
        assert set(Counter((r.cohort, r.request) for r in found).values()) == {1}
        ended = [r for r in found if r.outcome == "ok"]
        assert all(len(r.chunk_s) == r.output_tokens == 6 and r.prompt_tokens == 40 for r in ended)
        assert repeat.loop_lag_p99_ms is not None and repeat.client_cpu_share
    # Every token that the server counted is in the records of the closed loop, whose tail is not cut.
    counted = closed.counters_after["generation_tokens"] - closed.counters_before["generation_tokens"]
    assert counted == sum(r.output_tokens or 0 for r in read_records(folder / closed.records))
    # Both processes drew the schedule of the whole load, so that it keeps its mean, spread and independence.
    load = [r for r in read_records(folder / opened.records) if r.is_load]
    drawn = send_times(manifest.points[1], plan(candidate(1)).seed, 1001, 200)
    assert [r.scheduled_s for r in load] == pytest.approx(drawn, abs=1e-6)
    assert gap_statistics([r.scheduled_s for r in load]) == pytest.approx(gap_statistics(drawn), rel=1e-3)
    assert all((r.dispatched_s or 0.0) >= r.scheduled_s for r in load)
    evidence = {(e.load_point, e.metric, e.statistic): e for e in summarise(folder)}
    assert evidence["bursts", "ttft_ms", "p50"].value >= 20
    assert len(records) >= 212


class Wounded(ShardedLoad):
    """Loses its second process as soon as an answer has ended."""

    wounded = False

    def _judge_counts(self) -> None:
        if not self.wounded:
            self.wounded = True
            os.kill(self.pids[1], signal.SIGKILL)
        super()._judge_counts()


def test_a_shard_that_is_killed_spoils_the_repeat_and_blames_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.job.ShardedLoad", Wounded)
    manifest, records = run_sharded(FAST, tmp_path, [point(requests=800, in_flight=4)])
    (repeat,) = manifest.repeats
    assert (manifest.status, repeat.status, repeat.failed) == ("complete", "stopped", 0)
    assert (repeat.shards_lost, repeat.stop_reason) == (1, "a process of this client died")
    assert {r.request % 2 for r in records} == {0}
    of_load = [e for e in summarise(tmp_path / "emu-A-start1") if e.load_point]
    sound = [e.metric for e in of_load if not any(s.startswith("shard-lost: the client lost 1") for s in e.spoiled_by)]
    assert of_load
    assert set(sound) <= {"oom", "restarts"}  # what the server did is known all the same


def test_errors_are_counted_over_all_shards_and_stop_all(tmp_path: Path) -> None:
    # Two good chat requests are calibration and preflight; from the 160th on every one is refused. By then both
    # processes have sent some, although one of them may come to its core late.
    manifest, records = run_sharded(
        Settings(ttft_ms=20, itl_ms=2, fault="503", fault_after=160), tmp_path, [point(requests=800, in_flight=4)]
    )  # fmt: skip
    (repeat,) = manifest.repeats
    assert (repeat.status, repeat.shards_lost) == ("stopped", 0)
    assert "of the requests failed" in repeat.stop_reason
    assert {r.request % 2 for r in records} == {0, 1}


# Two good chat requests are calibration and preflight; the third is the first of the warm-up, or of the load.
@pytest.mark.parametrize(("warmup_requests", "answered"), [(0, 3), (1, 0)])
def test_a_server_that_dies_is_a_result_of_the_server(tmp_path: Path, warmup_requests: int, answered: int) -> None:
    dying = candidate(free_port(), "--fault", f"die:{2 + answered}")
    points = [point(requests=12, warmup_requests=warmup_requests)]
    made = plan(dying, points=points, stop={"max_error_share": 1.0})
    manifest, records = only_bundle(asyncio.run(run_plan(made, tmp_path, shards=2)))
    (repeat,) = manifest.repeats
    assert (manifest.status, repeat.stop_reason, repeat.shards_lost) == ("failed", "the server ended", 0)
    assert [r.request for r in records if r.is_load] == list(range(12))
    assert (repeat.ok <= answered, repeat.failed >= 12 - answered, repeat.undetermined) == (True, True, 0)


def test_cancel_reaches_every_shard(tmp_path: Path) -> None:
    async def cancelled(port: int) -> tuple[Manifest, list[Record]]:
        made = plan(candidate(port), points=[point(requests=800, in_flight=4)])
        run = asyncio.create_task(run_plan(made, tmp_path, shards=2))
        while '"done_requests": 0' in _progress(tmp_path):
            await asyncio.sleep(0.02)
        (tmp_path / "cancel").touch()
        return only_bundle(await run)

    manifest, _ = with_emulator(FAST, lambda e: cancelled(e.port))
    (repeat,) = manifest.repeats
    assert (manifest.status, repeat.status, repeat.stop_reason) == ("cancelled", "stopped", "cancelled")
    assert repeat.shards_lost == 0


def _progress(folder: Path) -> str:
    path = folder / "progress.json"
    return path.read_text(encoding="utf-8") if path.exists() else '"done_requests": 0'


def test_a_shard_goes_when_bench_has_died(tmp_path: Path) -> None:
    prompts = PromptMaker(Vocabulary({"a": 1}, 4), seed=1, salt="s", spell_salt=False, shared_prefix=0.0)
    work = Work("vllm", None, Launch(url=f"http://127.0.0.1:{free_port()}"), None, "m", {}, 5.0,
                load_point(in_flight=2, requests=4), prompts, "s", 1, 1, Stop(), 1.0, Inputs(), True)  # fmt: skip
    (tmp_path / WORK).write_bytes(pickle.dumps(work))
    shard = subprocess.run([sys.executable, "-m", "bench.shard", str(tmp_path), "0", "2"], input=b"",
                           stdout=subprocess.PIPE, timeout=120, check=False)  # fmt: skip
    assert shard.returncode == BENCH_DIED
