"""The case that perf/results.py times, at a small part of its size: real bundles, taken in as any bundle is."""

from __future__ import annotations

import pytest

import db.evidence
from perf.large_case import CASE, make
from perf.results import in_words
from planner.conditions import Kind
from services.evidence import manifest_of
from services.run_details import request_details
from services.verdicts import case_state, judge_levels
from services.workspace import Workspace, open_workspace


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    home = tmp_path_factory.mktemp("large")
    make(home, bundles=4, requests=8_000)
    return open_workspace(home)


def test_made_up_bundles_are_taken_in_like_any_and_say_that_they_are_simulated(ws: Workspace) -> None:
    runs = ws.store.runs.of_case(ws.store.cases.get(CASE).id)
    assert len(runs) == 4
    assert {run.kind for run in runs} == {Kind.SIMULATED}
    repeats = manifest_of(runs[0]).repeats
    assert sum(r.scheduled for r in repeats) == 2_000  # 8 closed points of the plan, 250 requests each
    seen = request_details(ws, runs[0], repeats[0])
    assert len(seen.requests) == 250
    assert set(seen.requests.outcome) <= {"ok", "failed"}


def test_a_case_that_was_read_is_read_again_without_its_figures(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = case_state(ws, CASE)
    known = ws.store.evidence.of_case(first.case.id)
    assert ws.store.evidence.of_case(first.case.id) is known
    judged = judge_levels(first)
    monkeypatch.setattr(db.evidence, "_all_of", None)  # what parses figures
    assert judge_levels(case_state(ws, CASE)) == judged


def test_a_missed_limit_is_said() -> None:
    found = {
        "machine": "a machine", "cores": 2, "load_average": 0.1, "bundles": 200, "requests": 2_000_000,
        "visit_ms": {"heading": 100.0, "first paint": 2100.0}, "choice_ms": {"another run": 250.0},
        "server_peak_mb": 500.0, "reached": False,
    }  # fmt: skip
    assert in_words(found).splitlines() == [
        "a machine, 2 cores: 200 bundles, 2,000,000 requests; load average 0.1",
        "  heading                         100 ms",
        "  first paint                   2,100 ms  (limit 2,000)",
        "  another run                     250 ms  (limit 300)",
        "  memory of the app at most       500 MB",
        "a limit was missed",
    ]
