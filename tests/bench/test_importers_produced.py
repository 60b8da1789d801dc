"""Files that the tools wrote: against our emulator, whose timing is known, and a third party's on a real GPU."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from bench.importers.foreign import Stated
from bench.importers.take import Choices, import_file
from bundle.manifest import Manifest
from bundle.summary import summarise
from planner.conditions import Evidence, Kind

FOREIGN = Path(__file__).parents[1] / "golden" / "foreign"
DAY = Stated(day=date(2026, 11, 29))
NOTHING = Stated()
Taken = tuple[Manifest, dict[tuple[str | None, str, str], Evidence]]


def taken(tmp_path: Path, name: str, stated: Stated = NOTHING) -> Taken:
    file = FOREIGN / name if "/" in name else FOREIGN / "produced" / name
    folder, manifest, _ = import_file(file, tmp_path, Choices(candidate="vllm", stated=stated))
    return manifest, {(e.load_point, e.metric, e.statistic): e for e in summarise(folder)}


# file, what is stated beside it, the load read from it, and what of the three times the file can give
SERVED = [
    ("vllm.json", NOTHING, "in-flight-2-24-6", "ttft tpot itl"),
    ("vllm-appended.json", NOTHING, "in-flight-4-24-6", "ttft tpot itl"),
    ("vllm-detailed.json", NOTHING, "rate-10-24-6", "ttft tpot itl"),
    ("vllm-detailed-capped.json", NOTHING, "rate-10-24-6", "ttft tpot itl"),
    ("vllm-detailed-failures.json", NOTHING, "in-flight-2-19-6", "ttft tpot itl"),
    ("sglang.jsonl", DAY, "in-flight-2-64-6", "ttft itl"),
    ("sglang.jsonl", DAY, "in-flight-4-64-6", "ttft itl"),
    ("sglang-details.jsonl", DAY, "in-flight-2-64-6", "ttft tpot itl"),
    ("sglang-details-failures.jsonl", DAY, "in-flight-2-64-6", "ttft tpot itl"),
    ("guidellm-constant.json", NOTHING, "rate-10-25-6", "ttft tpot"),
    ("guidellm-concurrent-failures.json", NOTHING, "in-flight-2-24-6", "ttft tpot"),
    ("aiperf.jsonl", Stated(in_flight=2), "in-flight-2-31-6", "ttft tpot itl"),
    ("aiperf-failures.jsonl", Stated(in_flight=2), "in-flight-2-28-6", "ttft tpot itl"),
    ("llama-benchy.json", NOTHING, "in-flight-2-64-8", "ttft"),
]
METRIC = {"ttft": "ttft_service_ms", "tpot": "tpot_ms", "itl": "itl_ms"}


@pytest.mark.parametrize(("name", "stated", "point", "times"), SERVED)
def test_the_emulators_timing_is_found_again(tmp_path, name, stated, point, times):
    _, found = taken(tmp_path, name, stated)
    middle = {k: e.value for k, m in METRIC.items() if (e := found.get((point, m, "p50")))}
    assert set(middle) == set(times.split())
    assert 100 <= middle["ttft"] < 130  # 100 ms, and the client's own way of 2 to 27 ms
    assert middle.get("tpot", 20) == pytest.approx(20, rel=0.03)
    assert middle.get("itl", 20) == pytest.approx(20, rel=0.03)
    assert {e.kind for e in found.values()} == {Kind.IMPORTED}


@pytest.mark.parametrize(
    ("name", "stated", "share"),
    [
        # two of eight were refused; ours counts those scheduled in the steady window, which of a closed loop leaves the
        # first out, and of an open one begins with the first arrival
        ("vllm-detailed-failures.json", NOTHING, 1 / 5),
        ("sglang-details-failures.jsonl", DAY, 2 / 8),
        ("guidellm-concurrent-failures.json", NOTHING, 2 / 5),
        ("aiperf-failures.jsonl", Stated(rate_per_s=10.0), 2 / 8),
    ],
)
def test_refusals_are_failures_and_beyond_every_percentile(tmp_path, name, stated, share):
    manifest, found = taken(tmp_path, name, stated)
    (repeat,) = manifest.repeats
    assert (repeat.scheduled, repeat.failed) == (8, 2)
    (point,) = manifest.points
    assert found[point.name, "error_share", "value"].value == pytest.approx(share)
    assert found[point.name, "ttft_service_ms", "p99"].value > 1_000_000


@pytest.mark.parametrize("name", ["vllm-detailed.json", "vllm-detailed-capped.json", "vllm-detailed-failures.json"])
def test_the_chunk_of_the_role_is_no_gap(tmp_path, name):
    """The client of vLLM 0.32 counted it: six tokens, six gaps, the first of them 0.006 ms."""
    _, found = taken(tmp_path, name)
    assert min(e.value for (_, metric, _), e in found.items() if metric == "itl_ms") > 16


def test_a_cap_that_nobody_waited_for_leaves_the_load_open(tmp_path):
    """7.9 of 10 req/s went out, as the last answer ends a while after the last of eight requests was sent."""
    manifest, _ = taken(tmp_path, "vllm-detailed-capped.json")
    assert manifest.findings == (
        "rate-10-24-6: at most 4 in flight: a request waited 0.553 ms for a slot on average, so this is an open loop",
    )


def test_guidellm_says_its_model_and_that_its_client_was_late(tmp_path):
    _, found = taken(tmp_path, "guidellm-constant.json")
    late = found["rate-10-25-6", "ttft_ms", "p50"]
    assert late.value > 120 and any(s.startswith("dispatch-lag") for s in late.spoiled_by)
    assert found["rate-10-25-6", "ttft_service_ms", "p50"].valid


ALONE = [
    # tg32 after no prompt: 1303.7 (JSON), 1266 (JSON lines) and 1299.74 tok/s (table), each a run of its own
    ("llama-bench.json", NOTHING, "in-flight-1-1-32", "mean", 1304),
    ("llama-bench.jsonl", NOTHING, "in-flight-1-1-32", "mean", 1266),
    ("llama-bench.md", DAY, "in-flight-1-1-32", "mean", 1299.74),
    ("llama-bench.md", DAY, "in-flight-1-128-32", "mean", 1023.03),  # tg32 @ d128
    ("llama-batched-bench.md", DAY, "in-flight-4-128-32", "p5", 2153.03 / 4),
    ("llama-batched-bench.jsonl", DAY, "in-flight-4-128-32", "p5", 2175.168945 / 4),
    ("llama-batched-bench-shared.jsonl", DAY, "in-flight-2-64-32", "p5", 2160.337402 / 2),
]


@pytest.mark.parametrize(("name", "stated", "point", "statistic", "tok_s"), ALONE)
def test_an_engine_without_a_server_is_of_a_kind_that_decides_nothing(
    tmp_path, name, stated, point, statistic, tok_s
):  # fmt: skip
    manifest, found = taken(tmp_path, name, stated)
    assert found[point, "user_tok_s", statistic].value == pytest.approx(tok_s, rel=1e-3)
    assert {e.kind for e in found.values()} == {Kind.ENGINE_ALONE}
    assert manifest.findings == (
        "the engine alone was timed, so its figures give an expectation and decide nothing",
    )  # fmt: skip


def test_a_saved_table_of_llama_benchy_has_no_date(tmp_path):
    """It prints the date and its version, and saves neither."""
    _, found = taken(tmp_path, "llama-benchy.md", DAY)
    assert found["in-flight-2-64-8", "user_tok_s", "mean"].value == 50.22
    assert found["in-flight-2-64-8", "ttft_service_ms", "mean"].value == 105.57


def test_a_third_partys_rate_point_is_taken_as_it_was_measured(tmp_path):
    manifest, found = taken(tmp_path, "gb10/11-rate-sweep-0.1.json")
    (point,) = manifest.points
    # 420,243 prompt and 49,146 answer tokens of 100 requests; gamma arrivals of shape 0.7
    assert (point.input_tokens, point.output_tokens, point.arrival, point.burstiness) == (4202, 491, "gamma", 0.7)
    assert found[point.name, "ttft_service_ms", "p95"].value == pytest.approx(2808.25)
    assert found[point.name, "user_tok_s", "p5"].value == pytest.approx(1000 / 52.014)
    assert found[point.name, "output_tok_s", "value"].value == pytest.approx(48.286, rel=1e-4)
    assert manifest.contract.shared["model"] == "Qwen/Qwen3.6-35B-A3B-FP8"
    assert manifest.imported is not None
    assert "starts at dispatch" in manifest.imported.refused["e2el_ms"]


def test_a_rate_that_the_cap_held_back_is_a_closed_loop(tmp_path):
    manifest, _ = taken(tmp_path, "gb10/10-monday-peak.json")
    (point,) = manifest.points
    assert (point.shape, point.in_flight) == ("closed", 25)
    assert "of 1.5 req/s asked 0.344 went out, so this is a closed loop" in manifest.findings[0]


def test_a_third_partys_table_in_the_middle_of_its_report(tmp_path):
    manifest, found = taken(tmp_path, "gb10/01-chat.md")
    assert [p.in_flight for p in manifest.points] == [1, 5, 10]
    speed = found["in-flight-10-1024-1024", "user_tok_s", "mean"]
    assert (speed.value, speed.n) == (15.29, 30)  # three runs of ten
    assert found["in-flight-10-1024-1024", "ttft_service_ms", "mean"].value == 1652.46
