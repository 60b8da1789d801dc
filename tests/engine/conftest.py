"""One measurement of a real vLLM for every test that asks about it: 1-2-4-8 in flight, then 12 where 8 fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.poc import Plan, Stage
from tests.engine.plans import bench_run, closed, shared_contract, vllm_candidate
from tests.engine.server import ENGINE_PYTHON, MODEL, ROOT, free_port

MAX_NUM_SEQS = 8
SWEEP = ("single", "parallel-2", "parallel-4", "parallel-8")
OVERLOAD = "overload"
STARTS = 3


@pytest.fixture(scope="session")
def engine() -> None:
    """The engine's environment and the model are there; `make test-vllm` makes both."""
    for needed in (ENGINE_PYTHON, MODEL / "config.json"):
        if not (ROOT / needed).exists():
            pytest.fail(f"{needed} is missing: run these tests with 'make test-vllm', which makes it.", pytrace=False)


@pytest.fixture(scope="session")
def measured_plan(engine: None) -> Plan:
    """Each point lasts about five seconds, so that the server's gauges are read several times in it."""
    return Plan(
        case="two-cores",
        title="A tiny model on two cores",
        shared_contract=shared_contract(),
        candidates=(vllm_candidate(free_port(), max_num_seqs=MAX_NUM_SEQS),),
        load_points=(
            closed("single", 1, 40),
            closed("parallel-2", 2, 60),
            closed("parallel-4", 4, 100),
            closed("parallel-8", 8, 150),
            closed(OVERLOAD, 12, 150),
        ),
        stages=(Stage(name="A", points=(*SWEEP, OVERLOAD)),),
        starts=STARTS,
    )


@pytest.fixture(scope="session")
def bundle_folder(measured_plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m bench run` left: one bundle per start."""
    out = tmp_path_factory.mktemp("real-vllm") / "results"
    done = bench_run(measured_plan, out)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return out
