"""A draft that guesses ahead and layers spread over stages: by hand, by the paper's table, and what must hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.conditions import Kind
from planner.decode_options import Speculation, pipeline_step_s, speculative_token_s
from planner.errors import InputError
from planner.throughput import KINDS, MeasuredRatio, ThroughputInputs, step_s
from tests.planner.test_throughput import CASE, inputs

DENSE = CASE.model_copy(update={"n_experts": 0, "experts_per_token": 0, "experts_gb": 0.0, "always_read_gb": 3.0})


@pytest.mark.parametrize(("draft", "acceptance", "tokens"), [(2, 0.6, 1.96), (2, 0.8, 2.44), (5, 0.8, 3.69), (7, 0, 1)])
def test_tokens_of_one_verification(draft: int, acceptance: float, tokens: float) -> None:
    # By hand: (1 - 0.6^3) / 0.4 = 1.96, (1 - 0.8^3) / 0.2 = 2.44, (1 - 0.8^6) / 0.2 = 3.69; nothing accepted gives 1.
    assert Speculation(draft_tokens=draft, acceptance=acceptance).tokens_per_step == pytest.approx(tokens, abs=0.005)


def test_everything_accepted_gives_every_guess_and_one_more() -> None:
    assert Speculation(draft_tokens=4, acceptance=1).tokens_per_step == 5


def test_a_dense_model_reads_the_same_bytes_for_five_tokens() -> None:
    # The step is bytes: verification = plain step. 4 guesses at 0.05 each: 1.2 steps for 3.36 tokens.
    guess = Speculation(draft_tokens=4, acceptance=0.8)
    plain = step_s(DENSE, Kind.BOUND, 1)
    assert speculative_token_s(DENSE, Kind.BOUND, 1, guess) == pytest.approx(plain * 1.2 / 3.3616)


def test_a_mixture_pays_for_the_experts_of_every_guess() -> None:
    # Batch 1, 4 guesses: 5 tokens touch 1 - (1 - 8/128)^5 = 27.6 % of the experts instead of 6.25 %.
    guess = Speculation(draft_tokens=4, acceptance=0.8, draft_cost=0)
    read = 1.188 + 28.991 * 0.27580 + 4096 * 98_304 / 1e9
    assert speculative_token_s(CASE, Kind.COVERAGE, 1, guess) == pytest.approx(read / 273 / 3.3616, rel=1e-3)


def test_measurements_scale_the_verification_too() -> None:
    guess = Speculation(draft_tokens=4, acceptance=0.8)
    own = DENSE.model_copy(update={"measured": (MeasuredRatio(batch=1, ratio=0.4, n=3, spread=0.0),)})
    scale = step_s(own, Kind.PLANNING, 1) / step_s(DENSE, Kind.PLANNING, 1)
    gained = [speculative_token_s(i, Kind.PLANNING, 1, guess) for i in (own, DENSE)]
    assert gained[0] / gained[1] == pytest.approx(scale)


def test_two_stages_take_the_kv_of_others_out_of_the_way() -> None:
    # Batch 8 on two stages: two parts of 4, each token passes both; one hop of 50 us.
    assert pipeline_step_s(DENSE, Kind.PLANNING, 8, 2) == pytest.approx(step_s(DENSE, Kind.PLANNING, 4) + 50e-6)
    assert pipeline_step_s(DENSE, Kind.PLANNING, 8, 1) == step_s(DENSE, Kind.PLANNING, 8)
    with pytest.raises(InputError, match="do not spread"):
        pipeline_step_s(DENSE, Kind.PLANNING, 8, 49)


@given(given_inputs=inputs(), kind=st.sampled_from(KINDS), batch=st.integers(1, 64), draft=st.integers(1, 8))
@settings(max_examples=40)
def test_a_draft_that_is_never_right_never_helps_and_a_better_one_is_never_slower(
    given_inputs: ThroughputInputs, kind: Kind, batch: int, draft: int
) -> None:
    token = [
        speculative_token_s(given_inputs, kind, batch, Speculation(draft_tokens=draft, acceptance=a))
        for a in (0.0, 0.5, 0.9)
    ]
    slack = 1 + 1e-9
    assert token[0] * slack >= step_s(given_inputs, kind, batch)
    assert token[0] * slack >= token[1] and token[1] * slack >= token[2]


@given(given_inputs=inputs(), kind=st.sampled_from(KINDS), batch=st.integers(1, 200))
@settings(max_examples=40)
def test_stages_never_make_one_request_alone_faster(given_inputs: ThroughputInputs, kind: Kind, batch: int) -> None:
    assert pipeline_step_s(given_inputs, kind, 1, 1) == step_s(given_inputs, kind, 1)
    if given_inputs.layers > 1:
        assert pipeline_step_s(given_inputs, kind, batch, 2) * (1 + 1e-9) >= step_s(given_inputs, kind, 1)
