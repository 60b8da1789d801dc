"""The hypotheses of a case: what is known beforehand, what can be added at which price, and what saving leaves."""

from __future__ import annotations

import pytest

from planner.condition_line import format_condition
from planner.errors import InputError, UnknownName
from services.hypotheses import Words, add_own, add_template, change, take_out, view
from services.plans import choices_of, draft_plan, save_plan
from services.verdicts import case_state
from tests.services.made import CASE


@pytest.fixture
def state(shipped):
    return case_state(shipped, CASE)


def words(lines, **more):
    return Words(**{"statement": "Ours.", "lines": lines, "method": "", "if_rejected": "Shorter answers.",
                    "stakes": "changes the plan", **more})  # fmt: skip


def test_what_was_imported_speaks_before_a_prediction(shipped, state):
    found = view(shipped, state, state.requirements, state.plan)
    priors = {r.hypothesis.id: r.prior for r in found.order.ranked}
    assert priors["H4"] == "expected to fail"  # 8.13 s against 2 s, as imported
    assert found.known["H4"].startswith("As imported: vllm: ttft p95 <= 2 s")
    assert priors["H3"] == "expected to fail"  # 8.2 tok/s against 20, the planning value
    assert priors["H6-3"] == "expected to hold"
    assert priors["H1"] == "open"
    assert found.order.ranked[0].hypothesis.id == "H1"


def test_a_stated_regular_load_is_what_an_offer_costs_more(shipped, state):
    offers = {o.id: o for o in view(shipped, state, state.requirements, state.plan).offers}
    assert set(offers) == {"H-prefix", "H-json", "H-gap", "H-answers", "H-beside"}
    assert offers["H-beside"].adds.minutes == 0  # the same runs, the embedding model beside them
    # another 16-user point on both candidates: as long as parallel-16, and a start of each for its stage
    assert offers["H-prefix"].adds.minutes > offers["H-json"].adds.minutes > 0


def test_a_template_is_stored_with_its_point_and_offered_no_more(shipped, state):
    add_template(shipped, state.case.id, state.requirements, state.plan, "H-gap", "Kim")
    again = case_state(shipped, CASE)
    assert again.plan.point("interference").aggressors == 2
    found = view(shipped, again, again.requirements, again.plan)
    assert "H-gap" not in {o.id for o in found.offers}
    with pytest.raises(UnknownName, match="Did you mean 'H-gap'"):
        add_template(shipped, state.case.id, state.requirements, again.plan, "H-gapp", "Kim")


def test_an_own_one_is_told_what_is_predicted(shipped, state):
    line = "vllm: user_tok_s p5 >= 25 tok/s at parallel-8"
    add_own(shipped, state.case.id, state.requirements, state.plan, words(line), "Kim")
    h = case_state(shipped, CASE).plan.hypotheses[-1]
    assert (h.id, h.author, format_condition(h.conditions[0])) == ("OWN-1", "Kim", line)
    assert h.warning.startswith("Already doubtful: predicted to fail")


@pytest.mark.parametrize(
    ("typed", "author", "sentence"),
    [
        (words(""), "Kim", "hypothesis H3: there is no condition"),
        (words("vllm: ttft p95 <= 2 s at pek"), "Kim", "unknown load point 'pek'. Did you mean 'peak'"),
        (words("vllm: tft p95 <= 2 s at peak"), "Kim", "unknown metric 'tft'. Did you mean 'ttft'"),
        (words("vllm: started is true", statement=" "), "Kim", "the statement is empty"),
        (words("vllm: started is true", if_rejected=""), "Kim", "the consequence is empty"),
        (words("vllm: started is true", depends_on=("H77",)), "Kim", "depends_on: unknown hypothesis 'H77'"),
        (words("vllm: started is true"), "", "nobody is named"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_stored(shipped, state, typed, author, sentence):
    with pytest.raises(InputError, match=sentence) as refused:
        change(shipped, state.case.id, state.requirements, state.plan, "H3", typed, author)
    assert "\n" not in str(refused.value)
    assert case_state(shipped, CASE).stored_plan == state.stored_plan


def test_what_was_taken_out_stays_out_of_the_next_draft(shipped, state):
    take_out(shipped, state.case.id, state.plan, "H5", "Kim")
    drafted = draft_plan(shipped, CASE, state.requirements).plan
    assert "H5" not in {h.id for h in drafted.hypotheses}
    again = case_state(shipped, CASE)
    assert "H5" in {o.id for o in view(shipped, again, again.requirements, again.plan).offers}


def test_a_hypothesis_that_the_next_draft_cannot_hold_is_named(shipped, state):
    typed = words("vllm: e2e p95 <= 60 s at parallel-32")
    add_own(shipped, state.case.id, state.requirements, state.plan, typed, "Kim")
    again = case_state(shipped, CASE)
    fewer = again.requirements.model_copy(update={"peak_users_max": 20})
    drafted = draft_plan(shipped, CASE, fewer).plan
    assert view(shipped, again, fewer, drafted).left_behind == ("OWN-1",)


def test_a_plan_without_the_regular_point_offers_nothing_and_says_why(shipped, state):
    few = tuple(h for h in state.plan.hypotheses if h.id in ("H1", "H4"))
    keep = [p for p in state.plan.load_points if p.name != "parallel-16"]
    stages = [s.model_copy(update={"points": tuple(n for n in s.points if n != "parallel-16")})
              for s in state.plan.stages]  # fmt: skip
    small = state.plan.model_copy(update={"hypotheses": few, "load_points": tuple(keep), "stages": tuple(stages)})
    save_plan(shipped, state.case.id, small, "Kim")
    assert view(shipped, state, state.requirements, small).offers == ()
    with pytest.raises(InputError, match="lacks the load point at which the speed is promised"):
        add_template(shipped, state.case.id, state.requirements, small, "H-json", "Kim")


@pytest.mark.parametrize("template", ["H-prefix", "H-json", "H-gap", "H-answers", "H-beside"])
def test_deriving_the_plan_again_gives_the_plan_that_stands(shipped, state, template):
    stored = add_template(shipped, state.case.id, state.requirements, state.plan, template, "Kim")
    take_out(shipped, state.case.id, stored.plan(), "H2", "Kim")
    standing = case_state(shipped, CASE).plan
    again = draft_plan(shipped, CASE, state.requirements, choices_of(standing))
    assert choices_of(standing) == choices_of(state.plan)
    assert again.plan.sha256() == standing.sha256()
