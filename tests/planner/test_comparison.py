"""Which of two candidates is higher: every outcome by example, and how often one is seen where there is none."""

from __future__ import annotations

import random

import pytest

from planner.comparison import Comparison, compare
from planner.conditions import Evidence, Exceedance, Kind
from planner.contract import Contract
from planner.statistics import chance_of_disjoint, difference_interval
from tests.planner.made import ASKED, CONTRACT, SEEN, SHARED, context, speed, ttft

OTHER = Contract(shared=SHARED, candidate=ASKED | {"engine": "sglang"}, observed=SEEN)


def known(*contracts: Contract):
    return context(contracts={c.full_hash(): c for c in (CONTRACT, *contracts)})


def speeds(ours, theirs, contract: Contract = OTHER, metric: str = "output_tok_s", **more: object) -> list[Evidence]:
    sides = (("vllm", ours, CONTRACT), ("sglang", theirs, contract))
    return [
        speed(v, i, name, contract=c.full_hash(), metric=metric, **more)
        for name, values, c in sides
        for i, v in enumerate(values, 1)
    ]


def over(evidence: list[Evidence], *contracts: Contract, metric: str = "output_tok_s", statistic: str = "value",
         point: str = "parallel-16") -> Comparison:  # fmt: skip
    return compare("vllm", "sglang", metric, statistic, point, evidence, known(OTHER, *contracts))


def test_ranges_that_lie_apart_show_a_difference_and_say_how_often_chance_would():
    found = over(speeds((440, 450, 460), (400, 410, 420)))
    assert (found.outcome, found.higher, found.better) == ("higher", "vllm", "vllm")
    # Slowest over fastest and fastest over slowest; of the 20 orders of 3 + 3 starts two lie apart.
    assert found.ratio == pytest.approx(450 / 410)
    assert found.ratio_interval == (pytest.approx(440 / 420), pytest.approx(460 / 400))
    assert found.chance == pytest.approx(2 / 20)
    assert "vllm is higher" in found.sentence and "10% of the time without a difference" in found.sentence


def test_lower_is_better_where_the_metric_says_so():
    pieces = speeds((90, 91, 92), (100, 101, 102), metric="tpot_ms", statistic="p50", unit="ms")
    found = over(pieces, metric="tpot_ms", statistic="p50")
    assert (found.higher, found.better) == ("sglang", "vllm")


def test_ranges_that_overlap_show_no_difference_and_that_is_a_result():
    found = over(speeds((440, 450, 460), (430, 445, 450)))
    assert found.outcome == "no difference shown"
    assert found.higher == found.better == found.explanation == ""


@pytest.mark.parametrize(("ours", "theirs"), [((450,), (300,)), ((450, 455), (300, 301, 302))])
def test_fewer_than_three_starts_a_side_show_no_difference(ours, theirs):
    found = over(speeds(ours, theirs))
    assert found.outcome == "no difference shown"
    assert "from 3 a side their ranges decide" in found.because


def test_from_five_starts_a_t_interval_speaks_where_the_ranges_overlap():
    found = over(speeds((100, 101, 102, 103, 110), (90, 91, 92, 93, 100.5)))
    # Means 103.2 and 93.3, variances 15.7 and 17.45 over 5 each; 7.97 degrees of freedom: 9.9 -/+ 2.365 x sqrt(6.63).
    assert found.outcome == "higher"
    assert "3.81 tok/s to 16 tok/s" in found.because
    assert found.chance is None


def test_a_limit_that_was_asked_for_separates_two_percentiles_by_the_exact_test():
    late = ttft(200, 40, 2600.0, candidate="sglang", id="late", contract=OTHER.full_hash(), source="s-1")
    found = over([ttft(200, 1), late], metric="ttft_ms", statistic="p95", point="peak")
    # 1 of 200 beyond 2 s proves p95 within, 40 of 200 prove it beyond (Binomial(200, 5 %)).
    assert (found.higher, found.better) == ("sglang", "vllm")
    assert "2 s lies between them, by the exact binomial test" in found.because
    early = ttft(200, 1, 1900.0, candidate="sglang", id="early", contract=OTHER.full_hash(), source="s-1")
    assert over([ttft(200, 1), early], metric="ttft_ms", statistic="p95", point="peak").outcome == "no difference shown"


def test_shares_are_held_against_each_other_by_their_exact_intervals():
    def errors(a: int, b: int) -> Comparison:
        pieces = speeds((a / 100,), (b / 100,), metric="error_share", unit="share")
        return over([p.model_copy(update={"n": 100}) for p in pieces], metric="error_share")

    # Clopper-Pearson 95 %: 0 of 100 reaches 3.62 %, 20 of 100 begins at 12.7 %, 5 of 100 at 1.64 %.
    assert (errors(0, 20).higher, errors(0, 20).better) == ("sglang", "vllm")
    assert errors(0, 5).outcome == "no difference shown"


def test_shares_of_requests_that_move_together_count_as_few():
    pieces = speeds((0.0,), (0.20,), metric="error_share", unit="share")
    found = over([p.model_copy(update={"n": 100, "effective_n": 5.0}) for p in pieces], metric="error_share")
    # worth 5 requests: 0 of 5 reaches 52 %, 1 of 5 begins at 0.5 %
    assert found.outcome == "no difference shown"


def test_ranges_that_touch_do_not_lie_apart():
    assert over(speeds((440, 450, 460), (420, 430, 440))).outcome == "no difference shown"


def test_an_undeclared_difference_is_refused_by_field():
    gguf = Contract(shared=SHARED, candidate=ASKED | {"engine": "sglang", "quantization": "q4_k_m"}, observed=SEEN)
    found = over(speeds((440, 450, 460), (100, 110, 120), gguf), gguf)
    assert found.outcome == "refused"
    assert found.ratio is None
    assert "quantization: fp8 -> q4_k_m" in found.sentence


GGUF = Contract(
    shared=SHARED, observed=SEEN, declared_differences=("weight_format", "quantization"),
    candidate=ASKED | {"engine": "sglang", "weight_format": "gguf", "quantization": "q4_k_m"},
)  # fmt: skip


def test_a_4_bit_gguf_is_compared_per_token_with_the_declared_difference_in_every_sentence():
    for ours, theirs in (((440, 450, 460), (100, 110, 120)), ((100, 110, 120), (100, 110, 120))):
        found = over(speeds(ours, theirs, GGUF), GGUF)
        assert "weight_format: safetensors -> gguf" in found.sentence
        assert "quantization: fp8 -> q4_k_m" in found.sentence
        # A speed across precisions without a quality result warns.
        assert "no quality result stands beside" in found.warning and found.warning in found.sentence
    whole = over(
        speeds((4.4, 4.5, 4.6), (1.0, 1.1, 1.2), GGUF, "request_rate", unit="req/s"), GGUF, metric="request_rate"
    )
    assert whole.outcome == "refused"
    assert "with weight_format and quantization declared different, only figures per token compare" in whole.sentence


def test_a_candidate_with_another_output_length_is_refused():
    shorter = [p if p.candidate == "vllm" else p.model_copy(update={"load_hash": "another"})
               for p in speeds((440, 450, 460), (100, 110, 120))]  # fmt: skip
    found = over(shorter)
    assert found.outcome == "refused"
    assert "the load differs: sglang was measured at other lengths" in found.sentence


def test_without_a_contract_nothing_compares():
    found = over([p.model_copy(update={"contract": None}) for p in speeds((440, 450, 460), (1, 2, 3))])
    assert (found.outcome, found.because) == (
        "refused", "not comparable: a side states no contract (vllm and sglang)",
    )  # fmt: skip
    one = [p if p.candidate == "vllm" else p.model_copy(update={"contract": None})
           for p in speeds((440, 450, 460), (1, 2, 3))]  # fmt: skip
    assert over(one).because == "not comparable: a side states no contract (sglang)"


def test_what_was_not_measured_says_what_would():
    found = over([p for p in speeds((440, 450, 460), ()) if p])
    assert found.outcome == "not measured"
    assert "a run of sglang at parallel-16 would decide it" in found.because
    assert found.left.value == 450 and found.right.value is None
    spoiled = speeds((440,), (430,), spoiled_by=("client-cpu: the client used 99 % of its core",))
    assert over(spoiled).because.startswith("vllm: invalid run: client-cpu")


def kv(candidate: str, *capacities: float) -> list[Evidence]:
    return [
        Evidence.model_validate(speed(1, i, candidate).model_dump() | {
            "id": f"kv-{candidate}-{i}", "metric": "kv_capacity_tokens", "value": c, "unit": "tokens",
            "load_point": None, "load_hash": None,
        })
        for i, c in enumerate(capacities, 1)
    ]  # fmt: skip


# 16 in flight of 512 + 128 tokens ask for 10,240 tokens.
@pytest.mark.parametrize(
    ("capacities", "outcome"),
    [
        ((8_000, 10_000, 10_000), "conflicting"),  # a quarter apart, and not all fit
        ((8_000, 8_200, 8_100), "no difference shown"),  # alike, so the spread is chance
        ((12_000, 16_000, 16_000), "no difference shown"),  # all requests fit in every start
    ],
)
def test_starts_that_hold_unlike_shares_of_the_load_conflict(capacities, outcome):
    found = over(speeds((300, 450, 460), (400, 405, 410)) + kv("vllm", *capacities) + kv("sglang", 9_000, 9_000, 9_000))
    assert found.outcome == outcome
    if outcome == "conflicting":
        assert "8,000 to 10,000 tokens, this load asks for 10,240" in found.sentence


@pytest.mark.parametrize("elsewhere", [{"kind": Kind.SIMULATED}, {"contract": "another memory share"}])
def test_a_capacity_of_a_rehearsal_or_of_other_settings_makes_no_conflict(elsewhere):
    ours = kv("vllm", 10_000, 10_000, 10_000)
    others = [p.model_copy(update={"id": f"{p.id}-x", **elsewhere}) for p in kv("vllm", 8_000)]
    found = over(speeds((300, 450, 460), (400, 405, 410)) + ours + others)
    assert found.outcome == "no difference shown"


def test_two_runs_that_disagree_conflict():
    first = speeds((440, 450, 460), (400, 410, 420))
    second = [p.model_copy(update={"id": f"{p.id}-2", "source": f"{p.source}-2", "run": "run-2"})
              for p in speeds((380, 385, 390), (400, 410, 420))]  # fmt: skip
    found = over(first + second)
    assert found.outcome == "conflicting"
    assert "run run-1: higher; run run-2: lower" in found.because


def test_settings_that_differ_explain_and_those_below_their_limit_are_ruled_out():
    chunked = Contract(
        shared=SHARED, observed=SEEN,
        candidate=ASKED | {"engine": "sglang", "max_num_seqs": "64", "prefill_chunk": "2048",
                           "gpu_memory_share": "0.8"},
    )  # fmt: skip
    evidence = speeds((440, 450, 460), (400, 410, 420), chunked)
    found = over(evidence + kv("vllm", 20_000) + kv("sglang", 30_000), chunked)
    assert "only this could explain it: prefill_chunk: not stated -> 2048" in found.explanation
    for out in ("max_num_seqs: 16 -> 64, since both batches hold", "KV capacity, since", "gpu_memory_share"):
        assert out in found.explanation.partition("ruled out")[2]


def test_a_range_that_a_source_states_counts_as_its_spread_and_a_bare_figure_shows_nothing():
    stated = [p.model_copy(update={"kind": Kind.IMPORTED, "interval": (p.value * 0.99, p.value * 1.01)})
              for p in speeds((440,), (400,))]  # fmt: skip
    assert over(stated).outcome == "higher"
    assert "as imported" in over(stated).sentence
    bare = [p.model_copy(update={"interval": None}) for p in stated]
    assert over(bare).outcome == "no difference shown"
    assert "how far the starts lie apart is not stated" in over(bare).because


# How often a difference is seen where there is none.


def test_chance_of_ranges_apart_counts_orders():
    # 3 + 3 values stand in 20 orders, 4 + 4 in 70, 3 + 4 in 35; two of them lie apart.
    assert [chance_of_disjoint(*n) for n in ((3, 3), (4, 4), (3, 4))] == [
        0.1,
        pytest.approx(2 / 70),
        pytest.approx(2 / 35),
    ]


def test_difference_interval_by_hand():
    # Means 2 and 5, variances 1 and 1 over 3: -3 -/+ 2.776 x sqrt(2 / 3)
    low, high = difference_interval((1, 2, 3), (4, 5, 6))
    assert (low, high) == (pytest.approx(-3 - 2.776 * (2 / 3) ** 0.5), pytest.approx(-3 + 2.776 * (2 / 3) ** 0.5))
    assert difference_interval((2, 2), (1, 1)) == (1, 1)
    with pytest.raises(ValueError, match="two values"):
        difference_interval((1,), (2, 3))


@pytest.mark.parametrize(("starts", "at_most"), [(3, 0.10), (4, 2 / 70), (5, 0.05), (6, 0.05)])
def test_false_differences_over_starts_stay_at_what_is_stated(starts, at_most):
    rng, tries = random.Random(starts), 400
    wrong = 0
    for _ in range(tries):
        ours, theirs = ([rng.gauss(100, 5) for _ in range(starts)] for _ in range(2))
        wrong += over(speeds(ours, theirs)).higher != ""
    # Two standard errors of a share over 400 tries beside what is stated.
    assert wrong / tries <= at_most + 2 * (at_most * (1 - at_most) / tries) ** 0.5


@pytest.mark.parametrize("share", [0.01, 0.05, 0.12])
def test_false_differences_at_a_limit_stay_under_5_percent(share):
    rng, tries = random.Random(7), 150

    def start(candidate: str, contract: Contract) -> Evidence:
        beyond = sum(rng.random() < share for _ in range(130))
        return ttft(130, beyond, candidate=candidate, id=candidate, source=candidate, contract=contract.full_hash(),
                    exceedances=(Exceedance(threshold=2000, comparison="<=", beyond=beyond),))  # fmt: skip

    wrong = sum(
        over([start("vllm", CONTRACT), start("sglang", OTHER)], metric="ttft_ms", statistic="p95", point="peak").higher
        != ""
        for _ in range(tries)
    )
    assert wrong / tries < 0.05
