"""The catalogue loads once per process and fast enough, by processor time: other tests run beside this one."""

from __future__ import annotations

from perf.catalog import MOST_MS, in_words, report
from planner.catalog import load_catalog


def test_a_process_reads_the_catalogue_once() -> None:
    assert load_catalog() is load_catalog()


def test_the_report_names_what_was_loaded() -> None:
    found = report(processes=1)
    assert found["entries"] == {"models": 76, "gpus": 32, "engines": 5}
    assert found["again_ms"][0] < found["first_ms"][0]
    assert max(found["first_cpu_ms"]) < MOST_MS == 150
    told = in_words({"machine": "a machine", "entries": {"engines": 5}, "first_ms": [60, 151],
                     "first_cpu_ms": [60, 152], "again_ms": [1, 1], "reached": False})  # fmt: skip
    assert "slowest of 2 151 ms, of processor time 152 ms (limit 150)" in told and "was missed" in told
