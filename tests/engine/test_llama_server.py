"""llama.cpp's server tells per request how fast it decoded: our TPOT against its own.

Collected where `make test-llamacpp` has installed it (tests/engine/conftest.py): compiling it takes many minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from bundle.samples import tpot_ms
from planner.poc import Plan, Stage
from tests.engine.live import measured
from tests.engine.plans import closed, llama_candidate, shared_contract
from tests.engine.server import free_port

pytestmark = pytest.mark.engine

AGREES_WITHIN = 0.03


def test_time_per_token_is_the_servers_own(tmp_path: Path) -> None:
    """predicted_ms runs from the first token to the last, so it spans one gap less than it counts tokens."""
    points = (closed("single", 1, 30, output_tokens=64), closed("parallel-4", 4, 60, output_tokens=64))
    plan = Plan(
        case="two-cores", title="llama-server's own timings", shared_contract=shared_contract(),
        candidates=(llama_candidate(free_port(), slots=8),), load_points=points,
        stages=(Stage(name="A", points=tuple(p.name for p in points)),), starts=1,
    )  # fmt: skip
    _, passes = measured(plan, tmp_path / "results")
    for p in passes:
        assert {(r.outcome, r.output_tokens) for r in p.records} == {("ok", 64)}
        told = [json.loads(r.server_timings) for r in p.records]
        servers = fmean(t["predicted_ms"] / (t["predicted_n"] - 1) for t in told)
        ours = fmean(v for r in p.records if (v := tpot_ms(r)) is not None)
        said = f"{p.repeat.load_point}: ours {ours:.3f} ms, the server's {servers:.3f} ms"
        assert ours == pytest.approx(servers, rel=AGREES_WITHIN), said
