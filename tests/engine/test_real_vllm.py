"""What must be true of a measurement of a real server, whatever its speed: our counts and times against its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

from bundle.folder import find_bundles, open_bundle
from bundle.manifest import Manifest, Repeat
from bundle.records import Record, read_records, read_telemetry
from bundle.summary import summarise
from planner.conditions import Kind
from planner.poc import Plan, Stage
from tests.engine.conftest import MAX_NUM_SEQS, OVERLOAD, STARTS, SWEEP
from tests.engine.plans import bench_run, closed, shared_contract, vllm_candidate
from tests.engine.server import ENGINE_VERSION, HTTP_PATH_MS, free_port

pytestmark = pytest.mark.engine

# The server stamps arrival after our dispatch and the first token before we can read it, so ours is never the smaller;
# the sums are floats of another process's clock.
CLOCK_ROUNDING_MS = 1.0


class Pass(NamedTuple):
    """One repeat with its records: every request between the two readings of the counters, the tail included."""

    manifest: Manifest
    repeat: Repeat
    records: list[Record]
    gauges: dict[str, list[float]]

    def grown(self, counter: str) -> float:
        """Increase of a server counter over the repeat."""
        return self.repeat.counters_after[counter] - self.repeat.counters_before[counter]

    def __str__(self) -> str:
        return f"start {self.manifest.start}, {self.repeat.load_point}"


def _passes(root: Path) -> Iterator[Pass]:
    for folder in find_bundles(root):
        manifest = open_bundle(folder)
        for repeat in manifest.repeats:
            gauges: dict[str, list[float]] = {}
            for sample in read_telemetry(folder / (repeat.telemetry or "")):
                gauges.setdefault(sample.name, []).append(sample.value)
            yield Pass(manifest, repeat, read_records(folder / repeat.records), gauges)


@pytest.fixture(scope="session")
def passes(bundle_folder: Path) -> list[Pass]:
    return list(_passes(bundle_folder))


def test_each_start_is_a_whole_bundle_from_the_server_that_was_asked_for(bundle_folder: Path) -> None:
    manifests = [open_bundle(folder) for folder in find_bundles(bundle_folder)]
    assert [m.start for m in manifests] == [1, 2, 3] == list(range(1, STARTS + 1))
    for m in manifests:
        assert (m.kind, m.status, m.engine_start.started) == (Kind.MEASURED, "complete", True)
        assert m.engine_start.version_reported == ENGINE_VERSION
        assert m.contract.observed["engine_version_reported"] == ENGINE_VERSION
        assert m.settings_resolved["max_model_len"] == "2048"
        assert [r.load_point for r in m.repeats] == [*SWEEP, OVERLOAD]


def test_the_kv_capacity_is_read_at_every_start(bundle_folder: Path) -> None:
    # Keys and values x 4 layers x 2 KV heads x 64 wide x 4 bytes = 4,096 bytes a token; 1 GiB / 4,096 = 262,144 tokens.
    capacities = [open_bundle(f).engine_start.kv_capacity_tokens for f in find_bundles(bundle_folder)]
    assert capacities == [262_144] * STARTS


def test_no_request_failed_and_each_had_the_lengths_asked_for(passes: list[Pass]) -> None:
    for p in passes:
        assert {r.outcome for r in p.records} == {"ok"}, p
        assert {(r.prompt_tokens, r.output_tokens, r.finish_reason) for r in p.records} == {(64, 32, "length")}, p
        assert all(sum(r.chunk_tokens) <= 32 and len(r.chunk_s) <= 32 for r in p.records), p


def test_our_token_counts_are_the_servers_to_the_last_token(passes: list[Pass]) -> None:
    """The counters bracket the repeat: warm-up and preflight lie before, the tail that keeps up the load inside."""
    for p in passes:
        assert p.grown("generation_tokens") == sum(r.output_tokens or 0 for r in p.records) == 32 * len(p.records), p
        assert p.grown("prompt_tokens") == sum(r.prompt_tokens or 0 for r in p.records) == 64 * len(p.records), p
        assert p.grown("ttft_count") == len(p.records), p
        assert p.grown("prefix_hits") == 0, f"{p}: the prompts are fresh, so nothing may come from the cache"


def test_our_time_to_first_token_is_the_servers_plus_the_http_path(passes: list[Pass]) -> None:
    for p in passes:
        ours = fmean((r.first_token_s or 0.0) - (r.dispatched_s or 0.0) for r in p.records) * 1000
        servers = p.grown("ttft_sum_s") / p.grown("ttft_count") * 1000
        slack = HTTP_PATH_MS + (p.repeat.loop_lag_p99_ms or 0.0)
        assert servers - CLOCK_ROUNDING_MS <= ours <= servers + slack, f"{p}: {servers:.1f} ms, then {ours:.1f} ms"


def test_the_server_really_ran_as_many_at_once_as_we_kept_in_flight(passes: list[Pass]) -> None:
    in_flight = {"single": 1, "parallel-2": 2, "parallel-4": 4, "parallel-8": 8}
    for p in passes:
        if p.repeat.load_point in in_flight:
            assert max(p.gauges["running"]) == in_flight[p.repeat.load_point], p


def test_what_exceeds_the_batch_limit_waits_in_the_servers_queue(passes: list[Pass]) -> None:
    for p in passes:
        if p.repeat.load_point == OVERLOAD:
            assert max(p.gauges["running"]) == MAX_NUM_SEQS, p
            assert 0 < max(p.gauges["waiting"]) <= 12 - MAX_NUM_SEQS, p


def test_the_evidence_of_a_real_server_is_measured(bundle_folder: Path) -> None:
    for folder in find_bundles(bundle_folder):
        evidence = summarise(folder)
        assert {e.kind for e in evidence} == {Kind.MEASURED}
        assert {e.load_point for e in evidence if e.metric == "output_tok_s"} == {*SWEEP, OVERLOAD}


def test_a_start_that_fails_leaves_a_bundle_with_command_log_and_exit_code(engine: None, tmp_path: Path) -> None:
    plan = Plan(
        case="two-cores", title="A flag that vLLM does not know", shared_contract=shared_contract(),
        candidates=(vllm_candidate(free_port(), "--no-such-flag", max_num_seqs=MAX_NUM_SEQS),),
        load_points=(closed("single", 1, 4),), stages=(Stage(name="A", points=("single",)),), starts=1,
    )  # fmt: skip
    done = bench_run(plan, tmp_path / "results")
    assert done.returncode == 1, f"{done.stdout}\n{done.stderr}"
    [folder] = find_bundles(tmp_path / "results")
    manifest = open_bundle(folder)
    start = manifest.engine_start
    assert (manifest.status, manifest.kind, start.started, manifest.repeats) == ("failed", Kind.MEASURED, False, ())
    assert start.exit_code == 2  # argparse's code for a wrong command line
    assert "--no-such-flag" in start.command
    assert "unrecognized arguments: --no-such-flag" in (folder / (start.log_file or "")).read_text()
    assert [(e.metric, e.value) for e in summarise(folder)] == [("started", 0.0)]
