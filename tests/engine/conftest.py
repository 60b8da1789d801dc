"""What the tests share: one measurement of a real vLLM (1-2-4-8 in flight, then 12 where 8 fit), one that stays up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.dialects import dialect
from bench.engines import Server
from bundle.folder import find_bundles
from bundle.summary import summarise
from planner.plan_file import plan_to_yaml
from planner.poc import Plan, PlanCandidate
from services.cases import begin_case
from services.plans import Drafted, PlanChoices, draft_plan, upload_plan
from services.workspace import Workspace, open_workspace
from tests.engine.drafted import REQUIREMENTS, edited
from tests.engine.edge import FILE, Edge
from tests.engine.plans import bench_run, closed, shared_contract, vllm_candidate
from tests.engine.server import ENGINE_PYTHON, ENVIRONMENT, GGUF, GGUF_Q4, LLAMA_SERVER, MODEL, ROOT, free_port
from tests.engine.tiny_model import revision_of

# llama-server is compiled for many minutes by `make test-llamacpp`; where it is missing its tests are not collected.
WITH_LLAMA = all((ROOT / needed).exists() for needed in (LLAMA_SERVER, GGUF, GGUF_Q4))
collect_ignore = [] if WITH_LLAMA else ["test_llama_server.py", "test_llama_flags.py", "test_pair.py"]

MAX_NUM_SEQS = 8
SWEEP = ("single", "parallel-2", "parallel-4", "parallel-8")
OVERLOAD = "overload"
STARTS = 3
TRIES = 3
# Limits that no machine of two cores comes near, so that each verdict is known beforehand.
HYPOTHESES = {
    "H-starts": "vllm: started is true",
    "H-slow": "vllm: user_tok_s p50 >= 1 tok/s at parallel-4",
    "H-fast": "vllm: user_tok_s p50 >= 100000 tok/s at parallel-4",
}
AUTHOR = "Kim"


@pytest.fixture(scope="session")
def engine() -> None:
    """The engine's environment and the model are there; `make test-vllm` makes both."""
    for needed in (ENGINE_PYTHON, MODEL / "config.json"):
        if not (ROOT / needed).exists():
            pytest.fail(f"{needed} is missing: run these tests with 'make test-vllm', which makes it.", pytrace=False)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = tmp_path_factory.mktemp("walk")
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    yield ws
    ws.store.close()


@pytest.fixture(scope="session")
def case(workspace: Workspace) -> str:
    """A case with its requirements and nothing else yet."""
    return begin_case(workspace, "Two cores", REQUIREMENTS, AUTHOR, slug="two-cores").id


@pytest.fixture(scope="session")
def drafted(engine: None, workspace: Workspace, case: str) -> Drafted:
    """The plan that the PoC plan page shows for these requirements."""
    slug = workspace.store.cases.get(case).slug
    return draft_plan(workspace, slug, REQUIREMENTS, PlanChoices(revision_of(ROOT / MODEL), starts=STARTS))


@pytest.fixture(scope="session")
def measured_plan(workspace: Workspace, case: str, drafted: Drafted) -> Plan:
    """The draft's file, edited for this machine and uploaded; a point takes about five seconds, a few gauges' reads."""
    points = (
        closed("single", 1, 40), closed("parallel-2", 2, 60), closed("parallel-4", 4, 100),
        closed("parallel-8", 8, 150), closed(OVERLOAD, 12, 150),
    )  # fmt: skip
    own = [
        {"id": id, "statement": line, "conditions": [line], "method": "closed loop", "if_rejected": "look again"}
        for id, line in HYPOTHESES.items()
    ]
    here = vllm_candidate(free_port(), max_num_seqs=MAX_NUM_SEQS)
    text = edited(plan_to_yaml(drafted.plan), here, shared_contract(), points, own)
    return upload_plan(workspace, case, "edited.yaml", text, AUTHOR).plan()


@pytest.fixture(scope="session")
def bundle_folder(measured_plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m bench run` left: one bundle per start.

    Where the machine stood still in every start, as the rules of validity then say, a person would measure anew.
    """
    for _ in range(TRIES):
        out = tmp_path_factory.mktemp("real-vllm") / "results"
        done = bench_run(measured_plan, out)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        judged = [e for folder in find_bundles(out) for e in summarise(folder) if e.metric == "user_tok_s"]
        if {e.load_point for e in judged if e.valid} == {*SWEEP, OVERLOAD}:
            break
    return out


@pytest.fixture(scope="session")
def edge_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the live server's HTTP layer writes when each request came and its first text went (edge.py)."""
    return tmp_path_factory.mktemp("edge") / "seen.jsonl"


@pytest.fixture(scope="session")
def live(engine: None, edge_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlanCandidate]:
    """A server that runs while its tests do: up to 32 requests at once over 40 KV blocks, 5,120 tokens."""
    more = ("--num-gpu-blocks-override", "40", "--middleware", f"{Edge.__module__}.{Edge.__qualname__}")
    candidate = vllm_candidate(free_port(), *more, max_num_seqs=32)
    launch = candidate.launch.model_copy(update={"environment": {**ENVIRONMENT, FILE: str(edge_file)}})
    server = Server(launch, dialect("vllm"), tmp_path_factory.mktemp("live-vllm") / "server.log")
    asyncio.run(server.start())
    yield candidate
    asyncio.run(server.stop())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    if not WITH_LLAMA:
        terminalreporter.write_line("llama-server is not installed: its tests are left out (make test-llamacpp).")
