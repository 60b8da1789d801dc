"""Two candidates of a case: a published comparison leads to its author's verdicts, and a third joins or is refused."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from planner.conditions import Evidence, Kind, State
from planner.contract import Contract
from services.comparison import comparison, pairs
from services.shipped import install
from services.verdicts import case_state, judge_hypotheses
from services.workspace import now
from tests.services.conftest import opened

PUBLISHED = Path(__file__).parent.parent / "data" / "vllm-and-sglang.yaml"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """vLLM and SGLang on one model, GPU and client, as TT Lab published them on 2026-10-07: imported figures."""
    workspace = opened(tmp_path_factory.mktemp("published"))
    install(workspace, PUBLISHED)
    state = case_state(workspace, "vllm-and-sglang")
    workspace.store.close()
    return state


@pytest.fixture(scope="module")
def rows(published):
    found = comparison(published, "vllm", "sglang")
    assert found.parity is not None and found.parity.state == "comparable"
    return {(r.metric, r.load_point): r for r in found.rows}


def test_its_author_finds_throughput_equal_at_1_and_8(rows):
    assert [rows["output_tok_s", p].outcome for p in ("single", "parallel-8")] == ["no difference shown"] * 2


@pytest.mark.parametrize(
    ("point", "said"),
    [("single", "vllm 73 ms against sglang 89 ms"), ("parallel-8", "vllm 349 ms against sglang 454 ms")],
)
def test_but_not_the_first_token(rows, point, said):
    row = rows["ttft_ms", point]
    assert (row.higher, row.better) == ("sglang", "vllm")
    assert said in row.sentence and "as imported" in row.sentence


@pytest.mark.parametrize("metric", ["output_tok_s", "ttft_ms"])
def test_the_cell_of_vllm_at_64_conflicts_because_kv_capacity_differed_between_starts(rows, metric):
    row = rows[metric, "parallel-64"]
    assert row.outcome == "conflicting"
    # 64 requests of 512 + 128 tokens
    assert "22,048 to 27,504 tokens, this load asks for 40,960" in row.sentence


def test_gaps_differ_at_32_and_only_the_chunk_settings_explain_it(rows):
    row = rows["itl_ms", "parallel-32"]
    assert (row.higher, row.better) == ("vllm", "sglang")
    assert "vllm 224 ms against sglang 33 ms" in row.sentence
    could, _, ruled_out = row.explanation.partition("ruled out")
    assert "only this could explain it: prefill_chunk: default of 0.31.0, shared with decoding" in could
    # 32 x 640 tokens fit in the smallest start, so neither the KV cache nor what sets its size can be felt.
    assert "this load asks for 20,480 tokens and every start holds 22,048 or more" in ruled_out
    assert "gpu_memory_share: 0.85 -> 0.8" in ruled_out


def test_hypotheses_on_the_published_figures_read_the_same(published):
    verdicts = {v.hypothesis.id: v.verdict for v in judge_hypotheses(published)}
    assert {id: v.state for id, v in verdicts.items()} == {
        "H1": State.HOLDS, "H2": State.HOLDS, "H3": State.CONFLICTING, "H4": State.CONFLICTING, "H5": State.FAILS,
    }  # fmt: skip
    assert {v.kind for v in verdicts.values()} == {Kind.IMPORTED}
    for told in ("start 1: fails, 5.7 s", "start 2: holds, 2.1 s", "start 3: holds, 2.2 s"):
        assert told in verdicts["H3"].sentence
    assert "22,048 to 27,504 tokens" in verdicts["H4"].sentence


# The pair that was measured, and a third beside it.


@pytest.fixture
def pair(with_two_cores, tmp_path):
    """A workspace with the case "two cores"."""
    shutil.copytree(with_two_cores, tmp_path, dirs_exist_ok=True)
    workspace = opened(tmp_path)
    yield workspace
    workspace.store.close()


def test_the_measured_pair_compares_per_token_and_names_the_weight_format_each_time(pair):
    state = case_state(pair, "two-cores")
    found = comparison(state, *pairs(state)[0], all_figures=True)
    assert found.parity is not None and found.parity.state == "comparable with a declared difference"
    compared = [r for r in found.rows if r.outcome not in ("refused", "not measured")]
    assert {r.metric for r in compared} == {"output_tok_s", "user_tok_s", "tpot_ms", "itl_ms"}
    assert all("weight_format: safetensors -> gguf" in r.sentence for r in compared)
    assert {r.metric for r in found.rows if r.outcome == "refused"} >= {"ttft_ms", "e2e_ms", "request_rate"}


def third(workspace, contract: Contract, load_hash: str | None) -> None:
    """Three starts of another candidate at parallel-4, imported under this contract."""
    pieces = [
        Evidence(
            id=f"third/{i}", metric="output_tok_s", value=v, unit="tok/s", kind=Kind.IMPORTED, source=f"third-{i}",
            at=now() - timedelta(hours=1), candidate="third", load_point="parallel-4", load_hash=load_hash,
            contract=contract.full_hash(), n=60,
        )
        for i, v in enumerate((300.0, 310.0, 320.0), 1)
    ]  # fmt: skip
    case = workspace.store.cases.get("two-cores").id
    workspace.store.evidence.add(case, pieces, {contract.full_hash(): contract})


def of_vllm(state, **changes: str) -> Contract:
    """The contract that vLLM was measured under, with what a third candidate has otherwise."""
    used = next(e for e in state.evidence if e.candidate == "vllm" and e.contract)
    base = state.context.contracts[used.contract]
    return base.model_copy(update={"candidate": base.candidate | changes})


def test_a_third_candidate_on_a_4_bit_gguf_is_compared_with_the_declared_difference(pair):
    state = case_state(pair, "two-cores")
    contract = of_vllm(state, weight_format="gguf", quantization="q4_k_m").model_copy(
        update={"declared_differences": ("weight_format", "quantization")}
    )
    third(pair, contract, state.plan.points()["parallel-4"].load_hash())
    (row,) = [r for r in comparison(case_state(pair, "two-cores"), "vllm", "third").rows if r.load_point == "parallel-4"
              and r.metric == "output_tok_s"]  # fmt: skip
    assert row.higher == "vllm"
    assert "weight_format: safetensors -> gguf, quantization: fp32 -> q4_k_m" in row.sentence
    assert row.warning and row.warning in row.sentence  # nobody looked at the quality of the 4-bit answers


def test_a_third_candidate_with_another_output_length_is_refused(pair):
    state = case_state(pair, "two-cores")
    point = state.plan.points()["parallel-4"]
    third(pair, of_vllm(state), point.model_copy(update={"output_tokens": 64}).load_hash())
    (row,) = [r for r in comparison(case_state(pair, "two-cores"), "vllm", "third").rows if r.load_point == "parallel-4"
              and r.metric == "output_tok_s"]  # fmt: skip
    assert row.outcome == "refused"
    assert "third was measured at other lengths or another rate than 'parallel-4'" in row.sentence
