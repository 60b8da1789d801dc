"""Which settings could explain a difference at a load, and which are ruled out."""

from __future__ import annotations

import pytest

from planner.contract import Contract
from planner.explaining import explain
from planner.pairing import KvCapacity
from tests.planner.made import ASKED, CONTRACT, P16, SEEN, SHARED


def other(**changes: str) -> Contract:
    return Contract(shared=SHARED, candidate=ASKED | changes, observed=SEEN)


@pytest.mark.parametrize(("limit", "could"), [("64", ()), ("8", ("max_num_seqs: 16 -> 8",))])
def test_a_batch_limit_explains_only_where_one_of_the_two_cannot_hold_the_load(limit, could):
    assert explain(CONTRACT, other(max_num_seqs=limit), P16, []).could == could  # P16: 16 in flight


def test_memory_is_ruled_out_only_where_every_candidate_holds_the_load():
    roomy, tight = KvCapacity("sglang", 20_000, 20_000, 10_240), KvCapacity("vllm", 8_000, 8_000, 10_240)
    share = other(gpu_memory_share="0.8")
    assert explain(CONTRACT, share, P16, [roomy]).could == ()
    assert explain(CONTRACT, share, P16, [roomy, tight]).could == (
        "KV capacity of vllm: 8,000 tokens, this load asks for 10,240", "gpu_memory_share: not stated -> 0.8",
    )  # fmt: skip
    assert explain(CONTRACT, share, P16, []).could == ("gpu_memory_share: not stated -> 0.8",)  # nobody knows


def test_what_is_only_noted_and_the_engine_itself_are_no_explanation():
    assert explain(CONTRACT, other(image="sha256:1", engine="sglang", engine_version="0.5"), P16, []).sentence == ""
