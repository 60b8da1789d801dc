"""Metrics that only some load shapes have, on records made by hand."""

from __future__ import annotations

import pytest

from bundle.quality import Judged, difference
from bundle.shapes import disturbance, figures
from bundle.summary import summarise
from planner.conditions import Evidence
from planner.statistics import mcnemar_exact
from tests.bundle.made import bundle, request
from tests.bundle.shaped import FIGHT, interference, quality, structured


def by(evidence: list[Evidence], metric: str, statistic: str = "value") -> Evidence:
    return next(e for e in evidence if e.metric == metric and e.statistic == statistic)


def test_a_victims_gaps_are_parted_where_the_long_prompt_comes_and_goes(tmp_path):
    found = summarise(interference(tmp_path))
    # Tokens at 0.2, 0.25, ..., 0.7 s; sent at 0.5, ended at 0.6: six gaps end by then, two lie inside, two after.
    assert by(found, "itl_quiet_ms", "p50").n == 2 * 6
    assert by(found, "itl_disturbed_ms", "p50").n == 2 * 2
    assert by(found, "itl_disturbed_ms", "max").value == pytest.approx(50.0)
    assert by(found, "itl_ms", "p50").n == 2 * 10


def test_a_gap_that_spans_the_whole_long_prompt_is_disturbed():
    victim = request(0, 0.0, cohort="victim")._replace(chunk_s=[0.2, 0.4, 0.9, 1.0])
    long = request(0, 0.5, ttft_s=0.1, tokens=1, cohort="aggressor")
    assert disturbance([victim, long]).disturbed == pytest.approx([500.0])
    assert disturbance([victim, long]).quiet == pytest.approx([200.0])


def test_long_prompts_that_found_nobody_decoding_are_said(tmp_path):
    late = [request(0, 0.0, cohort="victim"), request(0, 5.0, tokens=1, cohort="aggressor")]
    found = summarise(bundle(tmp_path, late, point=FIGHT))
    assert not [e for e in found if e.metric == "itl_disturbed_ms"]
    assert "no-interference: the long prompts found no victim" in by(found, "itl_quiet_ms", "p50").note


def test_a_pass_rate_carries_the_exact_interval(tmp_path):
    rate = by(summarise(quality(tmp_path)), "pass_rate")
    assert (rate.value, rate.n) == (0.75, 4)
    # Clopper-Pearson for 3 of 4 (R: binom.test(3, 4)): 0.1941 to 0.9937.
    assert rate.interval == pytest.approx((0.1941, 0.9937), abs=5e-4)


def test_a_schema_costs_what_the_same_prompts_take_longer_per_token(tmp_path):
    found = summarise(structured(tmp_path))
    cost, valid = by(found, "structured_cost"), by(found, "json_valid")
    # From dispatch to the end: 0.2 + 10 x 0.06 = 0.8 s against 0.2 + 10 x 0.05 = 0.7 s, 11 tokens each.
    assert (cost.value, cost.n, cost.load_point) == (pytest.approx(0.8 / 0.7), 4, "json")
    assert (valid.value, valid.n) == (0.75, 4)


def test_a_grammar_that_holds_tokens_back_still_has_its_price(tmp_path):
    # 11 tokens whose first three chunks come late; dispatched at 0 and ended at 0.84 s against 0.7 s without.
    held = [request(i, 0.0, json_valid=True)._replace(chunk_s=[0.6, 0.7, 0.84], chunk_tokens=[0, 0, 0], end_s=0.84)
            for i in range(4)]  # fmt: skip
    (_, cost) = figures(held, [request(i, 0.0) for i in range(4)], ())
    assert (cost.value, cost.n) == (pytest.approx(0.84 / 0.7), 4)


def test_only_items_that_both_sides_answered_are_paired():
    def side(**passed: bool) -> list[Judged]:
        return [Judged(id=i, expects="exact", passed=p, answer="") for i, p in passed.items()]

    found = difference(side(a=True, b=True, c=False, d=True), side(a=True, b=False, c=True, e=True))
    assert (found.items, found.passed, found.only, found.p_value) == (3, (2, 2), (1, 1), 1.0)


@pytest.mark.parametrize(
    ("left", "right", "p"),
    # 2 x P(X <= smaller) for n tosses of a fair coin: 5 of 5 2/32; 1 of 10 2 x 11/1024; even sides 1.
    [(5, 0, 2 / 32), (9, 1, 22 / 1024), (3, 3, 1.0), (0, 0, 1.0)],
)
def test_mcnemar_is_the_sign_test_on_the_pairs_that_differ(left, right, p):
    assert mcnemar_exact(left, right) == mcnemar_exact(right, left) == pytest.approx(p)
