"""The measurement of the instrument: how a row comes from its repeats, what is void, and a small real burst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.arrivals import STEP_NS
from perf import instrument
from perf.burst_server import ending, token_event
from perf.instrument import LIMITS, OURS, VLLM, as_text, burst_server, dispatch_row, one_repeat, row_of, two_cores


def repeat(**more: Any) -> dict[str, Any]:
    """One repeat as one_repeat gives it."""
    return {"p50": 0.02, "p99": 0.1, "coalesced_share": 0.0, "cpu_ms_per_1000_chunks": 20.0, "rss_mb": 100.0,
            "offered_share": 1.0} | more  # fmt: skip


def test_a_row_is_the_median_of_its_repeats_and_keeps_the_worst() -> None:
    row = row_of(OURS, 256, [repeat(p99=0.1), repeat(p99=0.3), repeat(p99=0.2)])
    assert (row["arrival_error_p99_ms"], row["arrival_error_p99_ms_worst"]) == (0.2, 0.3)
    assert (row["repeats"], row["void"]) == (3, 0)


def test_a_repeat_whose_load_was_not_offered_is_void() -> None:
    row = row_of(OURS, 512, [repeat(p99=0.1), repeat(p99=90.0, offered_share=0.97)])
    assert (row["arrival_error_p99_ms"], row["void"]) == (0.1, 1)
    gone = row_of(OURS, 512, [repeat(offered_share=0.5)])
    assert (gone["arrival_error_p99_ms"], gone["cpu_ms_per_1000_chunks"], gone["offered_share"]) == (None, None, 0.5)


def test_limits_take_the_worst_row_and_the_cpu_beside_vllms_client() -> None:
    report = {
        "rows": [
            row_of(OURS, 64, [repeat(p99=0.4, cpu_ms_per_1000_chunks=60.0)]),
            row_of(OURS, 256, [repeat(cpu_ms_per_1000_chunks=20.0)]),
            row_of(OURS, 1024, [repeat(p99=18.0)]),  # beyond what one process is for
            row_of(VLLM, 64, [repeat(cpu_ms_per_1000_chunks=60.0)]),
            row_of(VLLM, 256, [repeat(cpu_ms_per_1000_chunks=40.0, coalesced_share=None)]),
        ],
        "dispatch": [{"load": "256 at once", "lag_p99_ms": 7.0}],
        "memory_mb": None,
    }
    assert [limit.value(report) for limit in LIMITS] == [0.4, 7.0, None, 0.5, None]


def test_events_are_as_long_as_an_engines() -> None:
    assert 200 <= len(token_event(149, last=False)) <= 260
    assert ending(3).endswith(b"0\r\n\r\n")


def test_a_small_burst_is_measured_against_its_truth() -> None:
    found = one_repeat(two_cores(), OURS, streams=4, chunks=10)
    assert found["offered_share"] > 0
    # No client can report an arrival before its write, and the kernel's stamp comes microseconds after it; its clock is
    # held to the client's within 0.2 ms, which an NTP daemon at work uses.
    assert -STEP_NS / 1e6 <= found["p50"] <= found["p99"]
    assert found["p50"] < 5
    assert found["cpu_ms_per_1000_chunks"] > 0


def test_a_request_reaches_the_server_after_it_was_due() -> None:
    row = dispatch_row(two_cores(), "4 at once", 4)
    assert -STEP_NS / 1e6 < row["lag_p50_ms"] <= row["lag_p99_ms"] <= row["lag_max_ms"]


def test_a_client_that_fails_ends_the_run_with_its_own_words() -> None:
    cores = two_cores()
    with burst_server(cores, 0, 1) as port:
        pass
    with pytest.raises(SystemExit, match=r"flipline on 2 streams: 2 of 2 requests failed: .*it refused the connection"):
        instrument.run_client(cores, OURS, port, 2, 1)


def test_the_report_has_the_fields_that_scripts_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument, "CHUNKS", 5)
    monkeypatch.setattr(instrument, "DISPATCHED", tuple((load, 16, more) for load, _, more in instrument.DISPATCHED))
    monkeypatch.setattr(instrument, "VLLM_PYTHON", instrument.ROOT / "no-such-python")
    report = json.loads(json.dumps(instrument.measure([2], 1, quick=True, say=lambda _: None)))
    (row,) = report["rows"]
    assert {
        "client", "streams", "arrival_error_p50_ms", "arrival_error_p99_ms", "coalesced_share",
        "cpu_ms_per_1000_chunks", "rss_mb", "offered_share",
    } <= row.keys()  # fmt: skip
    text = as_text(report)
    assert "| flipline | 2 |" in text
    missing = [limit.name for limit in LIMITS if f"| {limit.name} | {limit.at_most:g} | – | not measured |" in text]
    arrival, _, _, cpu, memory = (limit.name for limit in LIMITS)
    # No vLLM here, and memory is left to the long run; a machine that could not offer the load measures no arrival.
    assert missing == ([arrival] if row["void"] else []) + [cpu, memory]
