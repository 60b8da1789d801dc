"""A real pair: vLLM and llama.cpp's server on the same model, judged as a team would judge them.

Collected where `make test-llamacpp` has installed llama-server (tests/engine/conftest.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bundle.folder import find_bundles
from planner.condition_line import parse_condition
from planner.conditions import Kind, State, Verdict
from planner.poc import Hypothesis, Plan, PlanCandidate, Stage
from planner.requirements import Hardware, ModelPlan, Requirements
from services.cases import begin_case
from services.evidence import take_in_all
from services.plans import save_plan
from services.verdicts import asked_conditions, case_state, judge_hypotheses
from services.workspace import open_workspace
from tests.engine.greedy import differing_texts
from tests.engine.plans import bench_run, closed, llama_candidate, shared_contract, vllm_candidate
from tests.engine.server import free_port
from tests.engine.tiny_model import NAME

pytestmark = pytest.mark.engine

SEATS = 16
AGAINST = {"H-same": "llama-server", "H-four-bits": "llama-server-q4", "H-other-length": "llama-server-free"}


def candidates() -> tuple[PlanCandidate, ...]:
    """vLLM; llama-server with the same weights, with four bits, and with answers as long as it likes."""
    same = llama_candidate(free_port(), slots=SEATS)
    free = {"id": "llama-server-free", "role": "challenger", "contract": {**same.contract, "output_length": "free"}}
    return (
        vllm_candidate(free_port(), max_num_seqs=SEATS, prefix_caching="off"),
        same,
        llama_candidate(free_port(), slots=SEATS, four_bits=True),
        same.model_copy(update=free),
    )


@pytest.fixture(scope="module")
def verdicts(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Verdict]]:
    """Plan, run, taken in, judged: by hypothesis id."""
    compared = candidates()
    assert differing_texts(compared[:2]) == ""
    plan = Plan(
        case="pair", title="A real pair", shared_contract=shared_contract(), candidates=compared,
        declared_differences=("weight_format", "quantization"),
        load_points=(closed("parallel-16", SEATS, 160),), stages=(Stage(name="A", points=("parallel-16",)),), starts=3,
        hypotheses=tuple(
            Hypothesis(id=id, statement=f"vLLM gives three times the tokens of {other}.",
                       conditions=(parse_condition(f"vllm over {other}: output_tok_s >= 3 x at parallel-16"),),
                       method="closed loop", if_rejected="suspect the settings before the engine")
            for id, other in AGAINST.items()
        ),
    )  # fmt: skip
    home = tmp_path_factory.mktemp("pair")
    done = bench_run(plan, home / "results")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    requirements = Requirements(
        peak_users_min=SEATS, peak_users_max=SEATS, user_tok_s_promise=1, user_tok_s_target=2, ttft_s=30,
        input_tokens=64, output_tokens=32, context_tokens=2048,
        model_plans=(ModelPlan(id="T", label="tiny", model=NAME, quantization="fp32", kv_cache_dtype="fp32",
                               favourite=True),),
        hardware=(Hardware(gpu="two-cpu-cores", in_house=True),),
    )  # fmt: skip
    case = begin_case(ws, "A real pair", requirements, "Kim", slug=plan.case)
    save_plan(ws, case.id, plan, "Kim")
    taken = take_in_all(ws, case.id, home / "results", "Kim", asked_conditions(plan, ()), plan.service_levels)
    assert len(taken) == len(find_bundles(home / "results")) == len(compared) * plan.starts
    yield {v.hypothesis.id: v.verdict for v in judge_hypotheses(case_state(ws, case.id))}
    ws.store.close()


@pytest.mark.parametrize(("id", "declared"), [("H-same", {"weight_format"}),
                                              ("H-four-bits", {"weight_format", "quantization"})])  # fmt: skip
def test_the_ratio_is_decided_by_what_was_measured_and_names_what_differs(
    verdicts: dict[str, Verdict], id: str, declared: set[str]
) -> None:
    found = verdicts[id]
    assert found.state in (State.HOLDS, State.FAILS), found.sentence
    assert found.kind is Kind.MEASURED
    assert {d.split(":")[0] for d in found.differences} == declared
    for field in declared:
        assert field in found.sentence


def test_another_output_length_is_refused(verdicts: dict[str, Verdict]) -> None:
    found = verdicts["H-other-length"]
    assert found.state is State.INVALID_RUN
    assert "output_length: fixed -> free" in found.sentence
