"""Ratios and parity: which differences between two contracts allow one, and what it takes to decide it."""

from __future__ import annotations

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Context, Evidence, Kind, More, State
from planner.contract import Contract
from planner.evaluate import evaluate
from tests.planner.made import ASKED, CONTRACT, SEEN, SHARED, context, speed

THREE_TIMES = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")
GGUF = Contract(shared=SHARED, candidate=ASKED | {"engine": "ollama", "weight_format": "gguf", "quantization": "Q8_0"},
                observed=SEEN)  # fmt: skip


def pair(baseline: Contract) -> tuple[list[Evidence], Context]:
    fast = [speed(v, i) for i, v in enumerate((440, 450, 460), 1)]
    slow = [speed(v, i, "ollama", contract=baseline.full_hash()) for i, v in enumerate((120, 130, 125), 1)]
    contracts = {CONTRACT.full_hash(): CONTRACT, baseline.full_hash(): baseline}
    return fast + slow, context(contracts=contracts)


def test_a_ratio_with_an_undeclared_difference_is_refused_by_field():
    evidence, c = pair(GGUF)
    v = evaluate(THREE_TIMES, evidence, c)
    assert v.state is State.INVALID_RUN
    assert "weight_format: safetensors -> gguf" in v.sentence


def test_a_declared_difference_allows_per_token_ratios_and_is_named():
    declared = GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")})
    evidence, c = pair(declared)
    v = evaluate(THREE_TIMES, evidence, c)
    # slowest over fastest 440 / 130 = 3.385; means 450 / 125 = 3.6
    assert v.state is State.HOLDS
    assert v.value == pytest.approx(3.6)
    assert v.interval == (pytest.approx(440 / 130), pytest.approx(460 / 120))
    assert "quantization: fp8 -> Q8_0" in v.sentence
    ttfts = [e.model_copy(update={"metric": "request_rate", "unit": "req/s"}) for e in evidence]
    refused = evaluate(parse_condition("vllm over ollama: request_rate >= 3 x at parallel-16"), ttfts, c)
    assert refused.state is State.INVALID_RUN
    assert "only figures per token compare" in refused.sentence


def test_an_unstated_field_is_not_equal():
    unstated = GGUF.model_copy(update={
        "candidate": ASKED | {"engine": "ollama"}, "shared": {k: v for k, v in SHARED.items() if k != "model_revision"},
    })  # fmt: skip
    evidence, c = pair(unstated)
    v = evaluate(THREE_TIMES, evidence, c)
    assert v.state is State.INVALID_RUN
    assert "model_revision: r1 -> not stated" in v.sentence


def of_both(ours, theirs, *capacities) -> tuple[list[Evidence], Context]:
    """Starts of the two, under one contract, and what those of the first can hold."""
    held = [
        speed(c, i, metric="kv_capacity_tokens", unit="tokens", load_point=None, load_hash=None, id=f"kv-{i}")
        for i, c in enumerate(capacities, 1)
    ]
    sides = (("vllm", ours), ("ollama", theirs))
    return [*held, *(speed(v, i, who) for who, values in sides for i, v in enumerate(values, 1))], context()


def test_a_side_that_delivered_nothing_gives_no_ratio():
    v = evaluate(THREE_TIMES, *of_both((400, 410, 420), (0, 100, 100)))
    assert v.state is State.UNDECIDED
    assert "ollama delivered nothing" in v.sentence


def test_the_side_with_fewer_starts_says_how_many_more_a_ratio_needs():
    v = evaluate(THREE_TIMES, *of_both((400, 410, 420), (100,)))
    assert (v.state, v.n, v.more) == (State.UNDECIDED, 1, More(n=2, of="starts"))


def test_starts_that_hold_unlike_shares_of_the_load_conflict_only_where_they_leave_the_ratio_open():
    unlike = (8_000, 12_000)  # 16 x (512 + 128) = 10,240 fit in the second only
    open_ = evaluate(THREE_TIMES, *of_both((400, 410), (100, 100), *unlike))
    assert (open_.state, open_.more) == (State.CONFLICTING, None)
    assert "KV capacity of vllm differs between its starts: 8,000 to 12,000 tokens" in open_.sentence
    assert evaluate(THREE_TIMES, *of_both((400, 410, 420), (100, 100, 100), *unlike)).state is State.HOLDS


def test_a_ratio_of_imported_figures_is_decided_by_the_ranges_that_their_source_states():
    fast, slow = pair(GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")}))[0][::3]
    stated = [e.model_copy(update={"kind": Kind.IMPORTED, "interval": (e.value * 0.9, e.value * 1.1)})
              for e in (fast, slow)]  # fmt: skip
    c = pair(GGUF.model_copy(update={"declared_differences": ("weight_format", "quantization")}))[1]
    # 440 / 120 = 3.67; 396 / 132 = 3.0 at the least
    v = evaluate(THREE_TIMES, stated, c)
    assert (v.state, v.kind) == (State.HOLDS, Kind.IMPORTED)
    assert "as imported, 3 x to 4.48 x" in v.sentence
    wider = [e.model_copy(update={"interval": (e.value * 0.8, e.value * 1.2)}) for e in stated]
    assert evaluate(THREE_TIMES, wider, c).state is State.UNDECIDED
