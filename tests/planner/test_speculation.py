"""A draft that guesses ahead: by hand, by the paper's table, what memory it takes, and what must hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.capacity import SizingSettings, size
from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.requirements import Hardware, ModelPlan
from planner.speculation import Speculation
from planner.throughput import KINDS, MeasuredRatio, ThroughputInputs, step_s
from planner.tornado import tornado
from tests.planner.test_capacity import GX10, PLANS, nortia
from tests.planner.test_throughput import CASE, inputs

DENSE = CASE.model_copy(update={"n_experts": 0, "experts_per_token": 0, "experts_gb": 0.0, "always_read_gb": 3.0})
CATALOG = load_catalog()


def drafted(plain: ThroughputInputs, **guess: float) -> ThroughputInputs:
    return plain.model_copy(update={"speculation": Speculation.model_validate(guess)})


@pytest.mark.parametrize(("draft", "acceptance", "tokens"), [(2, 0.6, 1.96), (2, 0.8, 2.44), (5, 0.8, 3.69), (7, 0, 1)])
def test_tokens_of_one_verification(draft: int, acceptance: float, tokens: float) -> None:
    # By hand: (1 - 0.6^3) / 0.4 = 1.96, (1 - 0.8^3) / 0.2 = 2.44, (1 - 0.8^6) / 0.2 = 3.69; nothing accepted gives 1.
    assert Speculation(draft_tokens=draft, acceptance=acceptance).tokens_per_step == pytest.approx(tokens, abs=0.005)


def test_everything_accepted_gives_every_guess_and_one_more() -> None:
    assert Speculation(draft_tokens=4, acceptance=1).tokens_per_step == 5


def test_a_dense_model_reads_the_same_bytes_for_five_tokens() -> None:
    # The step is bytes: verification = plain step. 4 guesses at 0.05 each: 1.2 steps for 3.36 tokens.
    guessing = drafted(DENSE, draft_tokens=4, acceptance=0.8)
    assert step_s(guessing, Kind.BOUND, 1) == pytest.approx(step_s(DENSE, Kind.BOUND, 1) * 1.2 / 3.3616)


def test_a_mixture_pays_for_the_experts_of_every_guess() -> None:
    # Batch 1, 4 guesses: 5 tokens touch 1 - (1 - 8/128)^5 = 27.6 % of the experts instead of 6.25 %.
    guessing = drafted(CASE, draft_tokens=4, acceptance=0.8, draft_cost=0)
    read = 1.188 + 28.991 * 0.27580 + 4096 * 98_304 / 1e9
    assert step_s(guessing, Kind.COVERAGE, 1) == pytest.approx(read / 273 / 3.3616, rel=1e-3)


def test_measurements_scale_the_verification_too() -> None:
    own = DENSE.model_copy(update={"measured": (MeasuredRatio(batch=1, ratio=0.4, n=3, spread=0.0),)})
    scale = step_s(own, Kind.PLANNING, 1) / step_s(DENSE, Kind.PLANNING, 1)
    gained = [step_s(drafted(i, draft_tokens=4, acceptance=0.8), Kind.PLANNING, 1) for i in (own, DENSE)]
    assert gained[0] / gained[1] == pytest.approx(scale)


@given(plain=inputs(), kind=st.sampled_from(KINDS), batch=st.integers(1, 64), draft=st.integers(1, 8))
@settings(max_examples=40)
def test_a_draft_that_is_never_right_never_helps_and_a_better_one_is_never_slower(
    plain: ThroughputInputs, kind: Kind, batch: int, draft: int
) -> None:
    token = [step_s(drafted(plain, draft_tokens=draft, acceptance=a), kind, batch) for a in (0.0, 0.5, 0.9)]
    slack = 1 + 1e-9
    assert token[0] * slack >= step_s(plain, kind, batch)
    assert token[0] * slack >= token[1] and token[1] * slack >= token[2]


def test_a_sizing_counts_the_draft_in_speed_memory_and_explanation() -> None:
    guess = Speculation(draft_tokens=4, acceptance=0.8, draft_gb=2.0)
    plain = size(nortia(), PLANS[1], GX10, CATALOG)
    found = size(nortia(), PLANS[1], GX10, CATALOG, SizingSettings(speculation=guess))
    # A draft model of 2.0 GB lies beside the weights and takes as much from the KV cache.
    assert found.memory.weights.total - plain.memory.weights.total == 2_000_000_000
    assert plain.memory.budget.kv - found.memory.budget.kv == 2_000_000_000
    alone = [s.row(Kind.PLANNING, 1).user_tok_s for s in (plain, found)]  # type: ignore[union-attr]
    said = found.derivation("speculation")
    assert said.value.startswith(f"{alone[1] / alone[0]:.2f} times as fast alone")
    assert "tokens of one verification = 3.36" in "\n".join(said.lines())
    assert any("3.36" in i.value for i in found.derivation("planning@1").inputs)
    assert "speculation" not in plain.derivations
    # Which acceptance is true moves the answer, and the tornado says so.
    swings = tornado(nortia(), PLANS[1], GX10, CATALOG, SizingSettings(speculation=guess)).swings
    assert next(s for s in swings if s.key == "acceptance").low.label == "56% accepted"


def test_draft_layers_of_the_model_are_loaded_and_kept() -> None:
    # Qwen3.5-35B-A3B brings one draft layer: its weights, its KV and one state per guess take from the requests.
    plan = ModelPlan(id="Q", label="35B", model="Qwen/Qwen3.5-35B-A3B", quantization="fp8")
    h100, guess = Hardware(gpu="H100 SXM"), Speculation(draft_tokens=2, acceptance=0.7)
    plain = size(nortia(), plan, h100, CATALOG)
    found = size(nortia(), plan, h100, CATALOG, SizingSettings(speculation=guess))
    assert found.memory.weights.total > plain.memory.weights.total
    assert found.requests_that_fit < plain.requests_that_fit
    assert found.largest_context_at_peak <= plain.largest_context_at_peak
