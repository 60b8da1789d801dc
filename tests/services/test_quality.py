"""Quality sets of a case: rates, pairs, the answers behind them, and where a missing result is said."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from planner.conditions import Kind
from planner.errors import BundleError
from services.arrivals import bring_in_table
from services.decisions import begin_draft
from services.exporting import export_markdown
from services.filled import Filled
from services.quality import differing, pairs, precision_warnings, rates
from services.quality_items import with_items
from services.verdicts import case_state, judge_hypotheses
from services.workspace import now
from tests.services.crossing import both_sets, both_speeds, crossing_plan
from tests.services.made import CASE

MISSING = "vllm and ollama differ in quantization (fp8 -> q8_0), and no quality result stands beside their speeds"


@pytest.fixture
def crossing(shipped):
    crossing_plan(shipped)
    return shipped


def test_a_speed_across_precisions_warns_wherever_it_is_told(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    state = case_state(crossing, CASE)
    ratio = judge_hypotheses(state)[0].verdict
    assert MISSING in ratio.warning and MISSING in ratio.sentence
    assert len(precision_warnings(state)) == 1
    draft = begin_draft(crossing, CASE, "Kim").adr
    assert MISSING in draft.confirmation and any(MISSING in bad for bad in draft.consequences.bad)
    assert "no quality result stands beside their speeds" in export_markdown(crossing, draft.id)[1].split("###")[0]


def test_figures_typed_in_for_two_precisions_warn_too(shipped):
    """The shipped plan asks for vLLM in FP8 and for Ollama's family in Q8_0."""
    row = Filled("vllm", "parallel-16", 16, None, 3596, 500, "user_tok_s", "p5", 30.0, 64)
    day = (now() - timedelta(days=3)).date()
    bring_in_table(shipped, CASE, [row, row._replace(candidate="ollama")], by="Kim", source="box", measured_at=day)
    (warning,) = precision_warnings(case_state(shipped, CASE))
    assert "ollama and vllm differ in quantization (q8_0 -> fp8), and no quality result" in warning


def test_with_a_quality_result_the_warning_is_gone_and_the_loss_is_judged(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    both_sets(crossing, tmp_path)
    state = case_state(crossing, CASE)
    ratio, loss = (v.verdict for v in judge_hypotheses(state))
    assert ratio.warning == "" and "no loss shown" in ratio.sentence
    assert precision_warnings(state) == ()
    # 40 of 40 alike: up to 1 - 0.025^(1/40) = 8.81 % could be lost, 5 % are allowed.
    assert (loss.state, loss.interval[1]) == ("undecided", pytest.approx(0.0881, abs=1e-4))
    assert "no quality result" not in export_markdown(crossing, begin_draft(crossing, CASE, "Kim").adr.id)[1]


def test_rates_and_pairs_name_items_and_answers(crossing, tmp_path):
    both_sets(crossing, tmp_path, failing=6)
    state = case_state(crossing, CASE)
    ours, theirs = rates(state)
    assert [(r.candidate, r.value, r.items) for r in (ours, theirs)] == [("vllm", 0.85, 40), ("ollama", 1.0, 40)]
    assert ours.interval == pytest.approx((0.7016, 0.9429), abs=1e-4)  # R: binom.test(34, 40)
    (pair,) = pairs(state)
    assert (pair.found.outcome, pair.found.only) == ("loss shown", (0, 6))
    assert [d.item for d in differing(crossing, state, pair)] == [f"i{i}" for i in range(6)]
    assert differing(crossing, state, pair)[0][2:] == ("ollama", "vllm 0", "ollama 0")


def test_simulated_answers_are_no_quality_result(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    both_sets(crossing, tmp_path, kind=Kind.SIMULATED)
    state = case_state(crossing, CASE)
    assert len(precision_warnings(state)) == 1
    assert [p.left.kind for p in pairs(state)] == [Kind.SIMULATED]


def test_items_that_an_older_store_does_not_hold_come_from_the_bundle(crossing, tmp_path):
    both_sets(crossing, tmp_path)
    state = case_state(crossing, CASE)
    bare = type(state.evidence)(e.model_copy(update={"items": ()}) for e in state.evidence)
    again = with_items(crossing, state.runs, bare)
    assert [e.items for e in again] == [e.items for e in state.evidence]
    assert with_items(crossing, (), bare) is bare  # no bundle, no items


def test_answers_that_were_altered_since_are_refused(crossing, tmp_path):
    both_sets(crossing, tmp_path, failing=6)
    state = case_state(crossing, CASE)
    (pair,) = pairs(state)
    run = next(r for r in state.runs if r.candidate == "vllm")
    kept = crossing.runs / run.path / "q.json"
    kept.write_text(json.dumps(json.loads(kept.read_text())[:1]))
    with pytest.raises(BundleError, match="missing or were altered"):
        differing(crossing, state, pair)
