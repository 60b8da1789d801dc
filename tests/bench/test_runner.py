"""From a plan to sealed bundles, against the emulator: what is written when all goes well, and when it does not."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.repeat import Load
from bench.resume import alone_in
from bench.runner import RunResult, jobs_of, run_plan
from bundle.folder import open_bundle
from bundle.manifest import MANIFEST
from bundle.records import read_telemetry
from bundle.summary import summarise
from planner.conditions import Kind
from planner.errors import InputError, NotAllowed, ServerError, UnknownName
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
)  # fmt: skip


def test_a_run_gives_a_bundle_with_every_request(tmp_path: Path) -> None:
    result = run_attached(Settings(ttft_ms=100, itl_ms=2), tmp_path)
    manifest, records = only_bundle(result)
    assert (result.state, manifest.status, manifest.engine_start.started) == ("finished", "complete", True)
    load = [r for r in records if r.cohort == "load"]
    assert [r.request for r in load] == list(range(6))
    assert all(r.outcome == "ok" and r.output_tokens == len(r.chunk_s) == 6 for r in records)
    assert all(r.prompt_tokens == r.asked_prompt_tokens == 40 for r in records)
    assert all(r.chunk_tokens == [1] * 6 and r.finish_reason == "length" for r in records)


def test_times_are_those_of_the_emulator(tmp_path: Path) -> None:
    # Correctness, not speed: the emulator's first token comes 100 ms after the request and the others 2 ms apart.
    _, records = only_bundle(run_attached(Settings(ttft_ms=100, itl_ms=2), tmp_path))
    ttft = [(r.first_token_s or 0) - (r.dispatched_s or 0) for r in records]
    assert all(t >= 0.099 for t in ttft)
    assert min(ttft) < 0.2  # the machine may hold up some of them, not all
    assert all((r.scheduled_s or 0) <= (r.dispatched_s or 0) <= (r.end_s or 0) for r in records)


def test_lengths_are_exact_where_only_usage_can_calibrate_them(tmp_path: Path) -> None:
    for engine in ("ollama", "openai"):  # no endpoint of theirs tokenises
        _, records = only_bundle(run_attached(FAST, tmp_path / engine, engine=engine, points=[point(input_tokens=77)]))
        assert {r.prompt_tokens for r in records} == {77}


def test_a_candidate_is_not_asked_the_points_that_it_skips(tmp_path: Path) -> None:
    async def both(emulator: Emulator) -> RunResult:
        all_of_them = candidate(emulator.port, name="whole")
        one_less = candidate(emulator.port, name="less") | {"skips": ["parallel-2"]}
        points = [point("single", in_flight=1), point("parallel-2")]
        return await run_plan(plan(all_of_them, one_less, points=points), tmp_path)

    result = with_emulator(FAST, both)
    ran = {m.candidate: [r.load_point for r in m.repeats] for m in map(open_bundle, result.bundles)}
    assert (result.state, ran) == ("finished", {"whole": ["single", "parallel-2"], "less": ["single"]})


def test_every_start_is_a_fresh_engine_with_a_bundle_of_its_own(tmp_path: Path) -> None:
    result = run_started(plan(candidate(free_port(), "--slots", "4"), starts=2), tmp_path)
    assert [b.name for b in result.bundles] == ["emu-A-start1", "emu-A-start2"]
    first, second = (open_bundle(b) for b in result.bundles)
    assert (first.start, second.start) == (1, 2)
    assert first.engine_start.startup_s != second.engine_start.startup_s
    # The first engine's counter ended at more; the second's began at zero, so nothing of the first was left.
    served = first.repeats[0].counters_after["generation_tokens"]
    assert second.repeats[0].counters_before["generation_tokens"] < served
    assert all((b / "server.log").read_text().count("emulator: listening on") == 1 for b in result.bundles)


def test_counts_equal_those_of_the_server(tmp_path: Path) -> None:
    manifest, records = only_bundle(run_attached(FAST, tmp_path))
    (repeat,) = manifest.repeats
    delta = {k: repeat.counters_after[k] - repeat.counters_before[k] for k in repeat.counters_after}
    assert delta["generation_tokens"] == sum(r.output_tokens or 0 for r in records)
    assert delta["prompt_tokens"] == sum(r.prompt_tokens or 0 for r in records)
    assert delta["ttft_count"] == len(records)


def test_what_the_emulator_answers_is_always_simulated(tmp_path: Path) -> None:
    for engine in ("vllm", "ollama", "openai"):  # whatever dialect a plan calls it
        manifest, _ = only_bundle(run_attached(FAST, tmp_path / engine, engine=engine))
        assert manifest.kind == Kind.SIMULATED
        assert manifest.contract.observed["engine_version_reported"] == "emulator/1"
        assert all(e.kind == Kind.SIMULATED for e in summarise(tmp_path / engine / "emu-A-start1"))


def test_an_attached_server_counts_as_one_start(tmp_path: Path) -> None:
    result = run_attached(FAST, tmp_path, starts=3)
    manifest, _ = only_bundle(result)
    assert manifest.engine_start.attached
    assert any(f.startswith("attached:") for f in manifest.findings)


def test_more_requests_than_slots_wait_in_the_server(tmp_path: Path) -> None:
    busy = point("overload", in_flight=6, requests=18)
    manifest, records = only_bundle(run_attached(Settings(ttft_ms=60, itl_ms=5, slots=2), tmp_path, points=[busy]))
    (repeat,) = manifest.repeats
    samples = read_telemetry(tmp_path / "emu-A-start1" / str(repeat.telemetry))
    assert max(s.value for s in samples if s.name == "waiting") > 0
    assert max(s.value for s in samples if s.name == "running") == 2
    # A request of 60 + 5 x 5 = 85 ms that waits for two others has a TTFT of at least 60 + 85 ms.
    assert max((r.first_token_s or 0) - r.scheduled_s for r in records) > 0.145


def test_the_load_is_kept_up_until_the_counted_requests_have_ended(tmp_path: Path) -> None:
    _, records = only_bundle(run_attached(FAST, tmp_path))  # 6 requests on 2 slots: a steady window exists
    tail = [r for r in records if r.cohort == "tail"]
    last = max(r.end_s or 0 for r in records if r.cohort == "load")
    assert tail and all(r.scheduled_s <= last for r in tail)


def test_an_open_loop_sends_at_the_times_drawn_beforehand(tmp_path: Path) -> None:
    load = point("open", shape="open", rate_per_s=50.0, arrival="constant", requests=10)
    manifest, records = only_bundle(run_attached(FAST, tmp_path, points=[load]))
    sent = [r for r in records if r.cohort == "load"]
    assert [r.scheduled_s for r in sent] == pytest.approx([0.02 * (i + 1) for i in range(10)])
    assert manifest.repeats[0].scheduled == 10
    assert all(r.outcome == "undetermined" for r in records if r.cohort == "tail" and r.outcome != "ok")


def test_repeats_have_their_own_salt_and_warm_up_is_kept_apart(tmp_path: Path) -> None:
    manifest, _ = only_bundle(run_attached(FAST, tmp_path, repeats=2))
    first, second = manifest.repeats
    assert first.salt != second.salt
    assert first.warmup.requests >= 2
    assert first.scheduled == second.scheduled == 6


def test_a_refusing_server_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="answered 503: The server is overloaded"):
        run_attached(Settings(fault="503"), tmp_path)
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert progress["state"] == "failed"
    assert "overloaded" in progress["last_error"]


def test_a_server_that_answers_404_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="answered 404: The model `emulated` does not exist"):
        run_attached(Settings(fault="404"), tmp_path)


def test_a_model_that_the_server_does_not_list_names_those_it_does(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"unknown model 'emulated'.*Did you mean 'emulated-8b'"):
        run_attached(Settings(model="emulated-8b"), tmp_path)


def test_missing_usage_is_seen_and_nothing_is_counted_in_its_place(tmp_path: Path) -> None:
    manifest, records = only_bundle(run_attached(Settings(ttft_ms=20, itl_ms=2, fault="no-usage"), tmp_path))
    assert all(r.outcome == "ok" and r.output_tokens is None and r.chunk_tokens == [0] * 6 for r in records)
    assert any(f.startswith("usage-missing") for f in manifest.findings)


def test_an_empty_metrics_page_is_an_error_and_not_zero(tmp_path: Path) -> None:
    manifest, _ = only_bundle(run_attached(Settings(ttft_ms=20, itl_ms=2, fault="no-metrics"), tmp_path))
    assert any(f.startswith("no-server-metrics") for f in manifest.findings)
    assert manifest.repeats[0].counters_after == {}
    assert "running" not in {e.metric for e in summarise(tmp_path / "emu-A-start1")}


def test_a_start_that_fails_gives_a_bundle_and_the_next_candidate_runs(tmp_path: Path) -> None:
    bad = candidate(free_port(), "--fault", "start-failure", name="bad")
    good = candidate(free_port(), "--slots", "8", name="good")
    result = run_started(plan(bad, good), tmp_path)
    failed, fine = (open_bundle(b) for b in result.bundles)
    assert (failed.status, failed.engine_start.started, failed.engine_start.exit_code) == ("failed", False, 1)
    assert "the model cannot be loaded" in failed.engine_start.error
    assert "the model cannot be loaded" in (result.bundles[0] / "server.log").read_text()
    assert failed.kind == Kind.SIMULATED
    assert (fine.status, fine.repeats[0].ok) == ("complete", 6)
    assert result.failed == ("bad-A-start1",)
    assert fine.engine_start.kv_capacity_tokens == 1_000_000  # the emulator's default


def test_out_of_memory_at_the_start_is_counted(tmp_path: Path) -> None:
    manifest, _ = only_bundle(run_started(plan(candidate(free_port(), "--fault", "out-of-memory")), tmp_path))
    assert (manifest.engine_start.started, manifest.engine_start.oom) == (False, 1)


def test_a_server_that_dies_fails_the_rest_and_seals_what_is_there(tmp_path: Path) -> None:
    # Calibration and preflight take two chat requests; the server dies in the middle of the load.
    points = [point(warmup_requests=0, requests=8), point("never-reached")]
    dying = candidate(free_port(), "--fault", "die:4")
    manifest, records = only_bundle(run_started(plan(dying, points=points), tmp_path))
    assert (manifest.status, manifest.engine_start.started, manifest.engine_start.restarts) == ("failed", True, 1)
    assert manifest.engine_start.exit_code == 1
    load = [r for r in records if r.cohort == "load"]
    assert len(load) == 8
    assert {r.outcome for r in load} == {"ok", "failed"}
    assert {r.error_kind for r in load if r.outcome == "failed"} <= {"closed", "reset", "connect", "died"}
    assert any("never-reached were not measured" in f for f in manifest.findings)


def test_too_many_errors_stop_a_point(tmp_path: Path) -> None:
    failing = Settings(ttft_ms=5, itl_ms=1, fault="error-mid-stream", fault_after=2)
    points = [point(warmup_requests=0, requests=200)]
    manifest, _ = only_bundle(run_attached(failing, tmp_path, points=points))
    (repeat,) = manifest.repeats
    assert (repeat.status, repeat.stop_reason) == ("stopped", "more than 50% of the requests failed")
    assert 10 <= repeat.scheduled < 30


def test_a_point_that_takes_too_long_is_stopped_and_its_open_requests_are_undetermined(tmp_path: Path) -> None:
    manifest, records = only_bundle(
        run_attached(Settings(ttft_ms=40, itl_ms=10), tmp_path, points=[point(requests=500, warmup_requests=0)],
                     stop={"max_point_s": 1.5})
    )  # fmt: skip
    (repeat,) = manifest.repeats
    assert repeat.status == "stopped" and 0 < repeat.undetermined <= 2
    assert {r.outcome for r in records} == {"ok", "undetermined"}


def test_a_cancel_file_ends_the_run_cleanly(tmp_path: Path) -> None:
    async def use(emulator: Emulator) -> RunResult:
        made = plan(candidate(emulator.port), points=[point(requests=5000)])
        running = asyncio.create_task(run_plan(made, tmp_path))
        progress = tmp_path / "progress.json"
        while not progress.exists() or json.loads(progress.read_text())["done_requests"] < 4:
            await asyncio.sleep(0.02)
        (tmp_path / "cancel").touch()
        return await running

    result = with_emulator(FAST, use)
    manifest, records = only_bundle(result)
    assert (result.state, manifest.status) == ("cancelled", "cancelled")
    assert manifest.repeats[0].stop_reason == "cancelled"
    assert len(records) == manifest.repeats[0].scheduled >= 4
    assert json.loads((tmp_path / "progress.json").read_text())["state"] == "cancelled"
    assert not (tmp_path / "cancel").exists()


@pytest.mark.parametrize("shards", [1, 2])
def test_who_cancels_is_heard_while_a_long_load_is_still_being_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    """A million requests take a minute to prepare; of a load that was cancelled by then the rest is not, and none sent.

    What another process prepares is not counted here.
    """
    prepared = []
    prepare = Load._prepare
    monkeypatch.setattr(Load, "_prepare", lambda *of: prepared.append(1) or prepare(*of))

    async def use(emulator: Emulator) -> RunResult:
        made = plan(candidate(emulator.port), points=[point(requests=1_000_000)])
        running = asyncio.create_task(run_plan(made, tmp_path, shards=shards))
        progress = tmp_path / "progress.json"
        while not progress.exists() or json.loads(progress.read_text())["phase"] != "measuring":
            await asyncio.sleep(0.02)
        (tmp_path / "cancel").touch()
        return await running

    result = with_emulator(FAST, use)
    manifest, records = only_bundle(result)
    assert (result.state, manifest.status, records) == ("cancelled", "cancelled", [])
    (repeat,) = manifest.repeats
    assert (repeat.status, repeat.stop_reason, repeat.scheduled) == ("stopped", "cancelled", 0)
    assert len(prepared) < 1_000_000


def test_finished_bundles_are_not_repeated(tmp_path: Path) -> None:
    async def use(emulator: Emulator) -> list[RunResult]:
        stages = [{"name": name, "points": ["parallel-2"]} for name in "AB"]
        made = plan(candidate(emulator.port), stages=stages)
        first = await run_plan(made, tmp_path)
        (tmp_path / "emu-B-start1" / MANIFEST).unlink()  # as if the process had been killed in stage B
        before = (tmp_path / "emu-A-start1" / MANIFEST).read_bytes()
        second = await run_plan(made, tmp_path)
        assert (tmp_path / "emu-A-start1" / MANIFEST).read_bytes() == before
        return [first, second]

    first, second = with_emulator(FAST, use)
    assert first == second
    assert open_bundle(tmp_path / "emu-B-start1").status == "complete"
    assert (tmp_path / "emu-B-start1.interrupted-1").is_dir()
    assert json.loads((tmp_path / "progress.json").read_text())["done_requests"] == 12


def test_a_folder_with_bundles_of_another_plan_is_refused(tmp_path: Path) -> None:
    run_attached(FAST, tmp_path)
    with pytest.raises(InputError, match=r"holds emu-A-start1 of another plan. Choose an empty folder"):
        run_attached(FAST, tmp_path, seed=2)


@pytest.mark.usefixtures("never_late")
def test_stage_b_runs_at_the_largest_point_that_kept_the_promise(tmp_path: Path) -> None:
    # Four slots: at 4 in flight TTFT is 150 ms; at 12 a request first waits for two batches of 150 + 5 x 2 = 160 ms.
    points = [point("parallel-4", in_flight=4, requests=12), point("parallel-12", in_flight=12, requests=36)]
    rule = {"setting": "max_num_seqs", "from_stage": "A", "keeps": {
        "metric": "ttft_ms", "statistic": "p50", "comparison": "<=", "threshold": 400.0}}  # fmt: skip
    stages = [{"name": "A", "points": ["parallel-4", "parallel-12"]},
              {"name": "B", "points": ["parallel-12"], "rule": rule}]  # fmt: skip
    started = candidate(free_port(), "--ttft-ms", "150", "--slots", "4", stage_settings={"max_num_seqs": "--slots"})
    result = run_started(plan(started, points=points, stages=stages), tmp_path)
    b = open_bundle(result.bundles[1])
    assert b.engine_start.command[-2:] == ("--slots", "4")
    assert b.contract.candidate["max_num_seqs"] == "4"
    assert any("max_num_seqs = 4, because ttft p50 <= 400 ms holds up to parallel-4" in f for f in b.findings)


def test_stage_b_of_a_candidate_that_skips_the_whole_of_stage_a_runs_unchanged_and_says_so(tmp_path: Path) -> None:
    points = [point("small"), point("large")]
    stages = [
        {"name": "A", "points": ["small"]},
        {"name": "B", "points": ["large"], "rule": {"setting": "max_num_seqs", "from_stage": "A", "keeps": {
            "metric": "user_tok_s", "statistic": "p5", "comparison": ">=", "threshold": 1.0}}},
    ]  # fmt: skip
    skipping = candidate(free_port(), "--slots", "4", stage_settings={"max_num_seqs": "--slots"}) | {"skips": ["small"]}
    manifest, records = only_bundle(run_started(plan(skipping, points=points, stages=stages), tmp_path))
    assert (manifest.stage, len([r for r in records if r.is_load])) == ("B", 6)
    assert any(f.startswith("stage-rule: max_num_seqs was not changed") for f in manifest.findings)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("A", "A", "the folder of its bundle, emu-A-start1, is that of candidate emu, stage A, too"),
        ("A 1", "A/1", "the folder of its bundle, emu-A-1-start1, is that of candidate emu, stage A 1, too"),
        ("A", "x" * 300, "the folder of its bundle, emu-x+, has too long a name"),
    ],
)
def test_a_plan_whose_bundles_would_not_lie_apart_is_refused(tmp_path: Path, first: str, second: str, why: str) -> None:
    points = [point("small"), point("large")]
    stages = [{"name": first, "points": ["small"]}, {"name": second, "points": ["large"]}]
    with pytest.raises(InputError, match=why):
        run_started(plan(candidate(1), points=points, stages=stages), tmp_path)


def test_a_point_ends_with_its_victims_and_does_not_wait_for_prompts_that_would_disturb_nobody(tmp_path: Path) -> None:
    late = {"aggressors": 2, "aggressor_at_s": 900, "aggressor_input_tokens": 100}
    manifest, records = only_bundle(run_attached(FAST, tmp_path, points=[point(shape="interference", **late)]))
    assert "aggressor" not in {r.cohort for r in records}
    assert (manifest.repeats[0].stop_reason, manifest.repeats[0].ok) == ("", 6)
    assert manifest.repeats[0].duration_s < 60


@pytest.mark.parametrize("name", ["n", "max_tokens", "model", "stream", "n_predict"])  # the last is llama-server's
def test_a_sampling_that_would_change_the_load_is_refused(tmp_path: Path, name: str) -> None:
    # With n = 2 every chunk of two answers would count as one user's, and the speed per user would be double.
    with pytest.raises(InputError, match=f"sampling: {name} is no sampling"):
        run_started(plan(candidate(1), sampling={"temperature": 0.0, name: 2.0}), tmp_path)


def test_a_file_system_that_knows_no_locks_takes_results_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("bench.resume.fcntl.flock", no_locks)
    assert run_attached(FAST, tmp_path).state == "finished"


def test_a_folder_that_cannot_be_made_wants_rights_and_not_room(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written: Not a directory\. Make it writable; the same command"):
        run_attached(FAST, tmp_path / "file" / "out")


def test_two_benches_that_attach_to_a_server_do_not_measure_into_one_folder_at_once(tmp_path: Path) -> None:
    with alone_in(tmp_path), pytest.raises(NotAllowed, match="another bench is measuring into this folder"):
        run_attached(FAST, tmp_path)
    assert not list(tmp_path.iterdir())  # nothing of the other's was touched
    assert run_attached(FAST, tmp_path).state == "finished"


def test_stage_b_of_an_attached_server_runs_unchanged_and_says_so(tmp_path: Path) -> None:
    rule = {"setting": "max_num_seqs", "from_stage": "A", "keeps": {
        "metric": "ttft_ms", "statistic": "p50", "comparison": "<=", "threshold": 50.0}}  # fmt: skip
    stages = [{"name": "A", "points": ["parallel-2"]}, {"name": "B", "points": ["parallel-2"], "rule": rule}]
    result = run_attached(FAST, tmp_path, stages=stages)
    assert any("it cannot be restarted" in f for f in open_bundle(result.bundles[1]).findings)


def test_candidates_take_turns_in_going_first() -> None:
    made = plan(candidate(1, "--slots", "1", name="a"), candidate(2, "--slots", "1", name="b"), starts=3)
    assert [(j.candidate.id, j.start) for j in jobs_of(made)] == [
        ("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)]  # fmt: skip


def test_a_server_that_is_not_there_is_said_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"the server is not there: it refused the connection. Start it"):
        run_started(plan(candidate(free_port())), tmp_path)


def test_a_command_that_is_no_engine_is_not_run_without_consent(tmp_path: Path) -> None:
    evil = candidate(free_port(), command=["sh", "-c", f"touch {tmp_path}/ran"])
    with pytest.raises(NotAllowed, match=r"not the command of a known engine.*--allow-command"):
        run_started(plan(evil), tmp_path / "out")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "out").exists()


def test_another_server_at_the_address_is_never_measured_in_place_of_ours(tmp_path: Path) -> None:
    def run(emulator: Emulator) -> Awaitable[RunResult]:
        return run_plan(plan(candidate(emulator.port, "--slots", "4")), tmp_path)

    with pytest.raises(NotAllowed, match="something already answers there"):
        with_emulator(FAST, run)


def test_a_rule_that_looks_at_a_later_stage_is_refused(tmp_path: Path) -> None:
    rule = {"setting": "max_num_seqs", "from_stage": "B", "keeps": {
        "metric": "ttft_ms", "statistic": "p50", "comparison": "<=", "threshold": 50.0}}  # fmt: skip
    stages = [{"name": "A", "points": ["parallel-2"], "rule": rule}, {"name": "B", "points": ["parallel-2"]}]
    made = plan(candidate(1), stages=stages)
    with pytest.raises(InputError, match="looks at stage 'B', which does not come before it"):
        run_started(made, tmp_path)


def test_an_unknown_fault_of_the_emulator_is_told_the_near_one() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'stall'"):
        Settings(fault="stal")
