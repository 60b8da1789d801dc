"""A scrubbed log is what the instrument replays: read as a plan's file, scheduled, and sent to the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.inputs import read_inputs
from bench.runner import run_plan
from bench.schedule import send_times
from planner.traffic_replay import Cut, replay, trace_csv, trace_point
from services.traffic_log import read_log
from tests.bench.helpers import FAST, candidate, only_bundle, plan, with_emulator

# Five requests of Azure's published form; the fourth has no answer and cannot be replayed.
LOG = b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.0000000,40,4
2023-11-16 18:15:46.1000000,60,3
2023-11-16 18:15:46.2000000,30,5
2023-11-16 18:15:46.2500000,30,0
2023-11-16 18:15:46.6000000,20,2
"""


def test_a_replayed_log_is_sent_at_its_times_with_its_lengths(tmp_path: Path) -> None:
    # Twice as fast: 0, 50, 100 and 300 ms.
    rows = replay(read_log("azure.csv", LOG).requests, Cut(rate_scale=2))
    (tmp_path / "traffic.csv").write_bytes(trace_csv(rows))
    point = trace_point("traffic", "traffic.csv", rows)
    made = plan(candidate(1), points=[point.stated()])
    trace = read_inputs(made, tmp_path).of(made.point("traffic")).trace
    assert [tuple(row) for row in trace] == [(0.0, 40, 4), (0.05, 60, 3), (0.1, 30, 5), (0.3, 20, 2)]
    assert send_times(point, seed=1, repeat=1, n=4, trace=trace) == [0.0, 0.05, 0.1, 0.3]
    _, records = only_bundle(with_emulator(
        FAST, lambda e: run_plan(plan(candidate(e.port), points=[point.stated()]), tmp_path / "out", folder=tmp_path)
    ))  # fmt: skip
    load = [r for r in records if r.cohort == "load"]
    assert [r.scheduled_s for r in load] == pytest.approx([0.0, 0.05, 0.1, 0.3])
    assert [(r.prompt_tokens, r.output_tokens) for r in load] == [(40, 4), (60, 3), (30, 5), (20, 2)]
