"""When a decision re-opens, and when it must not (issue 2, item 10: the negative twins)."""

from datetime import date, timedelta

import pytest

from decisions.edits import ConditionFired, ConditionRetired
from decisions.flip_condition import Action, FlipCondition
from decisions.flips import TEMPLATES, FlipState, fired_edit, from_template, judge_flips, new_events, states, template
from decisions.record import Fire
from decisions.view import apply, current
from planner.conditions import Evidence, Kind
from planner.errors import InputError, UnknownName
from tests.decisions.made import NOW, SEEDS_FOUR, accepted_edits, context, nortia, observed_peak

BY = {"at": NOW, "author": "Lee"}


def few_users(*evidence, adr=None):
    verdicts = judge_flips(adr or current(accepted_edits()), evidence, context())
    return next(v for v in verdicts if v.condition == "few-users")


def test_28_days_with_a_peak_of_five_fire_it():
    verdict = few_users(observed_peak(5))
    assert (verdict.state, verdict.value, verdict.distance) == (FlipState.FIRED, 5, 0)
    assert verdict.used == ("peak",)
    assert few_users(observed_peak(3)).distance == -2
    assert str(verdict.distance) == "0.0"  # no room left reads 0, never -0


def test_a_re_check_is_overdue_from_the_day_after():
    for day, overdue in ((NOW.date(), False), (NOW.date() - timedelta(days=1), True)):
        promised = nortia().conditions[1].model_copy(update={"recheck_on": day})
        (verdict,) = judge_flips(nortia().model_copy(update={"conditions": (promised,)}), (), context())
        assert verdict.overdue is overdue


def test_a_peak_of_six_leaves_it_armed_one_away():
    verdict = few_users(observed_peak(6))
    assert (verdict.state, verdict.distance) == (FlipState.ARMED, 1)
    assert verdict.relative_distance == pytest.approx(0.2)


def test_too_short_a_window_decides_nothing():
    assert few_users(observed_peak(5, days=27)).state not in (FlipState.FIRED, FlipState.ARMED, FlipState.NEAR)


def test_an_invalid_observation_decides_nothing():
    spoiled = observed_peak(5).model_copy(update={"spoiled_by": ("clock-step",)})
    assert few_users(spoiled).state is FlipState.INVALID_RUN


def test_a_benchmark_at_four_parallel_is_an_input_not_demand():
    assert few_users(observed_peak(4, kind=Kind.MEASURED)).state is FlipState.UNMEASURED


def test_without_evidence_the_seeds_four_are_unmeasured():
    found = states(judge_flips(nortia(), (), context()))
    assert found == dict.fromkeys(SEEDS_FOUR, FlipState.UNMEASURED)


def test_a_condition_that_fires_when_it_fails():
    def fact(value):
        return Evidence(id="f", metric="format_supported", value=value, unit="bool", kind=Kind.DOCUMENTED,
                        source="catalog", at=NOW, candidate="vllm-b")  # fmt: skip

    for value, state in ((0, FlipState.FIRED), (1, FlipState.ARMED)):
        verdict = next(
            v for v in judge_flips(nortia(), [fact(value)], context()) if v.condition == "format-not-supported"
        )
        assert (verdict.state, verdict.distance) == (state, None)


def test_near_is_only_the_side_that_has_not_fired():
    def with_margin(value):
        flip = FlipCondition.from_line("few", "peak_in_flight max <= 5 over 28 days near 20 %")
        adr = nortia().model_copy(update={"conditions": (flip,)})
        return judge_flips(adr, [observed_peak(value)], context())[0]

    assert with_margin(5).state is FlipState.FIRED
    assert with_margin(6).state is FlipState.NEAR
    assert with_margin(7).state is FlipState.ARMED


def test_retired_conditions_are_not_judged():
    adr = apply(current(accepted_edits()), ConditionRetired(**BY, condition="few-users", reason="r"))
    assert "few-users" not in states(judge_flips(adr, [observed_peak(5)], context()))


def test_what_a_person_judges_fires_by_a_persons_word():
    flip = FlipCondition(id="price", statement="Electricity doubles", owner="finance", recheck_on=date(2026, 8, 31))
    adr = current(accepted_edits()).model_copy(update={"conditions": (flip,)})
    waiting = judge_flips(adr, (), context())[0]
    assert (waiting.state, waiting.overdue) == (FlipState.UNMEASURABLE, True)
    assert "finance judges it by hand by 2026-08-31" in waiting.sentence
    fire = Fire(condition="price", at=NOW, sentence="the new tariff is twice the old")
    fired = judge_flips(apply(adr, ConditionFired(**BY, fire=fire)), (), context())[0]
    assert (fired.state, fired.sentence) == (FlipState.FIRED, "Fired. the new tariff is twice the old")


def test_an_event_is_what_became_fired():
    armed, fired = few_users(observed_peak(6)), few_users(observed_peak(5))
    assert new_events({}, [fired]) == (fired,)
    assert new_events(states([armed]), [fired]) == (fired,)
    assert new_events({"few-users": "fired"}, [fired]) == ()
    assert new_events(states([fired]), [armed]) == ()


def test_the_event_carries_value_distance_and_evidence():
    edit = fired_edit(few_users(observed_peak(5)), at=NOW)
    assert (edit.author, edit.fire.value, edit.fire.distance, edit.fire.evidence) == ("Flipline", 5, 0, ("peak",))
    adr = apply(current(accepted_edits()), edit)
    assert [f.condition for f in adr.fires] == ["few-users"]


def test_every_template_becomes_a_condition():
    for t in TEMPLATES:
        made = from_template(t.id, candidate="vllm-b", point="peak", owner="infrastructure")
        assert (made.id, made.action, made.consequence) == (t.id, t.action, t.consequence)
    assert {t.id for t in TEMPLATES} >= set(SEEDS_FOUR)
    assert template("format-not-supported").action is Action.CHANGE_MODEL_PLAN


def test_a_template_says_what_it_needs():
    assert template("kv-cache-full").needs == ("candidate", "point")
    with pytest.raises(InputError, match="needs a point"):
        from_template("kv-cache-full", candidate="vllm-b")
    with pytest.raises(UnknownName, match="Did you mean 'few-users'"):
        from_template("few-user")


def test_a_flip_condition_is_a_line_or_a_statement():
    with pytest.raises(ValueError, match="either a condition line or a statement"):
        FlipCondition(id="x")
    moved = FlipCondition.from_line("x", "vllm-b: started is true -> go back", fires_when="fails")
    assert (moved.consequence, moved.in_words()) == ("go back", "vllm-b: started is true")
    inside = moved.condition.model_copy(update={"consequence": "go back"})
    with pytest.raises(ValueError, match="beside the condition"):
        FlipCondition(id="x", condition=inside)
