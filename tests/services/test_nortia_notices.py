"""What the product has to notice about the shipped example, one test a notice; the figures are the case's own."""

from __future__ import annotations

import pytest

from planner.conditions import Kind, State
from planner.offered import offered_elsewhere, run_points
from planner.outlook import outlook
from planner.requirements import contradictions
from services.hypotheses import view
from services.plans import choices_of, draft_plan
from services.results import rate_knees, results_of, taken_elsewhere
from services.verdicts import case_state, judge_hypotheses, users_served
from tests.services.made import CASE, accepted


@pytest.fixture
def state(shipped):
    return case_state(shipped, CASE)


def verdict(state, id):
    return next(v for v in judge_hypotheses(state) if v.hypothesis.id == id)


def test_1_500_tokens_within_5_s_can_only_mean_short_answers(state):
    # 500 / (5 - 2) = 167 tok/s, 500 / 5 = 100; 500 / 25 = 20 s; 25 x 3 = 75 tokens
    asked = state.requirements.model_copy(update={"completion_answer_tokens": None})
    (found,) = contradictions(asked)
    assert "167 tok/s after a first token at 2 s (100 without the wait); at 25 tok/s they take 20 s" in found.sentence
    assert "State the answer length that the 5 s apply to: about 75 tokens fit at 25 tok/s" in found.way_out
    assert (state.requirements.completion_answer_tokens, state.requirements.output_tokens) == (75, 500)
    assert contradictions(state.requirements) == ()


def test_2_that_nobody_meets_it_on_one_unit_is_said_before_anything_runs(state):
    said = outlook(state.sizing, state.requirements)
    assert (
        '"no candidate meets this on one unit; change units, model plan, promise or hardware" is to be expected' in said
    )
    # 590 tok/s over 50 users by the bound, and the integers of the case
    assert "At 50 users one unit gives each 11.8 tok/s by the bound, 20 tok/s are promised." in said
    assert "3 units by the bound, 13 when experts touched are counted, 17 by the planning value" in said


def test_2_it_is_not_said_where_the_estimates_allow_the_promise(state):
    few = state.requirements.model_copy(update={"peak_users_min": 1, "peak_users_max": 1})
    assert outlook(state.sizing, few) == ""


def test_3_20_tok_s_at_16_in_flight_is_doubtful_by_the_planning_value(state):
    h3 = verdict(state, "H3")
    assert h3.verdict.state is State.UNMEASURED
    assert "8.2 tok/s against 20 tok/s (planning)" in h3.verdict.expectation
    assert h3.hypothesis.warning.startswith("Already doubtful: predicted to fail")


def test_4_the_first_token_fails_as_imported_and_already_at_the_lowest_rate(state):
    h4 = verdict(state, "H4").verdict
    assert (h4.side, h4.kind) == ("fails", Kind.IMPORTED)
    # djangodevreng/dgx-spark-benchmarks@5636536, 11-rate-sweep: p95 2,808 ms at 0.1 req/s, 8,131 ms at 0.7
    assert "fails at 8.13 s; as imported" in h4.sentence
    assert "It fails already at 0.1 req/s gamma, 4,100 in / 490 out: 2.81 s." in h4.sentence


def test_4_a_5_s_level_would_hold_up_to_0_3_req_s_and_2_s_at_no_rate(state):
    # The same sweep: 4,396 ms at 0.3 req/s, 5,257 ms at 0.5
    (knee,) = rate_knees(state, 5.0)
    assert (knee.at.amount, knee.fails_at.amount, knee.kind) == (0.3, 0.5, Kind.IMPORTED)
    (none,) = rate_knees(state, 2.0)
    assert (none.at, none.fails_at.amount) == (None, 0.1)


def test_4_what_stands_in_for_the_peak_is_no_load_of_a_knee(shipped, state):
    # The run at 0.7 req/s, prompts of 4,098 tokens: nobody offered the plan's 0.83 req/s with 3,596
    assert {k.lengths for r in results_of(shipped, state) for k in r.knees} == {"4,100 in / 490 out"}


def test_4_what_could_change_it_is_what_is_tested(shipped, state):
    h4 = verdict(state, "H4").hypothesis
    for way in ("shorter prompts", "prefix caching", "chunk size", "another model plan", "units"):
        assert way in h4.if_rejected
    offered = {o.id for o in view(shipped, state, state.requirements, state.plan).offers if o.hinted}
    assert {"H-prefix", "H-gap"} <= offered  # the gain of prefix caching, and what long prompts cost others in chunks


def test_5_the_decision_for_the_engine_stands_on_other_grounds_with_conditions_that_reopen_it(shipped):
    adr = accepted(shipped)
    chosen = next(o for o in adr.options if o.title == adr.chosen)
    assert adr.chosen == "vLLM"
    drivers = " ".join(adr.drivers).lower()
    assert any(word in drivers for word in ("batching", "metrics", "quantization"))
    assert chosen.pros
    assert {c.id for c in adr.conditions} == {
        "engine-does-not-start", "few-users", "shared-prefix-dominates", "format-not-supported",
    }  # fmt: skip


def test_6_nothing_of_it_was_measured_by_us(state):
    assert state.runs == ()
    assert not [e for e in state.evidence if e.kind in (Kind.MEASURED, Kind.OBSERVED)]
    assert {v.verdict.state for v in judge_hypotheses(state) if v.hypothesis.id != "H4"} == {State.UNMEASURED}
    imported = [e for e in state.evidence if e.kind is Kind.IMPORTED]
    assert imported and all("5636536" in e.source and "CC-BY-4.0" in e.note for e in imported)
    assert users_served(state).sentence.startswith("How many users get the promise on one unit is not measured")
    assert all(p.note.startswith("Stand-in") for p in state.requirements.model_plans)


def test_the_loads_of_the_imported_figures_are_run_by_no_stage_and_outlive_a_new_draft(shipped, state):
    names = [f"rate-{x}" for x in ("0.1", "0.2", "0.3", "0.5", "0.7", "1.0")]
    assert [p.name for p in offered_elsewhere(state.plan)] == names
    assert not {p.name for p in run_points(state.plan)} & set(names)
    again = draft_plan(shipped, CASE, state.requirements, choices_of(state.plan)._replace(model_revision="ad44e777"))
    assert [p.name for p in offered_elsewhere(again.plan)] == names
    assert not {c.point for c in again.cost.points} & set(names)


def test_figures_of_a_source_that_states_no_load_stand_in_for_nothing(state):
    """As workspaces of before 2026-11-30 keep the imported ones."""
    imported = [e for e in state.evidence if e.kind is Kind.IMPORTED]
    assert taken_elsewhere(imported) == {e.id for e in imported if e.load_point == "peak"}
    assert not taken_elsewhere(e.model_copy(update={"load_hash": None}) for e in imported)


def test_a_peak_that_somebody_did_offer_is_a_load_of_a_knee_beside_what_stood_in_for_it(shipped, state):
    stood_in = next(e for e in state.evidence if e.load_point == "peak" and e.metric == "ttft_ms")
    offered = stood_in.model_copy(update={
        "id": "own/1", "source": "own", "kind": Kind.ENTERED, "load_hash": state.plan.points()["peak"].load_hash(),
    })  # fmt: skip
    shipped.store.evidence.add(state.case.id, [offered])
    found = results_of(shipped, case_state(shipped, CASE))
    assert {k.lengths for r in found for k in r.knees} == {"4,100 in / 490 out", "3,596 in / 500 out"}
