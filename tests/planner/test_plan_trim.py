"""What goes first when time is short, and what never goes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.errors import InputError
from planner.plan_budget import plan_cost
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.plan_trim import trim
from tests.planner.planned import closed, plan, speed_of

WHOLE = plan_cost(plan(), speed_of).minutes


def least() -> float:
    """The smallest budget that can be kept, as the refusal names it."""
    with pytest.raises(InputError) as refused:
        trim(plan(), 1, speed_of)
    return float(refused.value.fix.split()[2])


def test_a_budget_that_is_enough_costs_nothing():
    found = trim(plan(), WHOLE + 1, speed_of)
    assert found.lost == ()
    assert found.plan.budget_min == WHOLE + 1


def test_the_point_that_nobody_names_goes_first():
    found = trim(plan(), WHOLE - 0.01, speed_of)
    assert [x.what for x in found.lost] == ["load point spare"]
    assert found.lost[0].why == "no hypothesis, service level or stage rule names it"
    assert "spare" not in found.plan.points()


def test_everything_goes_in_the_order_of_the_rule():
    found = trim(plan(), least(), speed_of)
    # spare: nobody. slow at busy: H4 asks the fast one; with it go slow's stage B and its ladder but H2's parallel-4,
    # the longest first. fast keeps 16 by prediction, so of its ladder 1 and 2 are far; 8 is beside it, 4 is H2's. Then
    # the second repeat, and the start beyond three.
    assert [x.what for x in found.lost] == [
        "load point spare", "slow at busy",
        "slow at single", "slow at parallel-2", "slow at parallel-8", "slow at parallel-16",
        "load point single", "load point parallel-2", "repeat 2 within each start", "start 4 of each server",
    ]  # fmt: skip
    assert set(found.plan.points()) == {"parallel-4", "parallel-8", "parallel-16", "busy"}
    assert (found.plan.starts, found.plan.repeats) == (3, 1)


def with_points(*points):
    """The plan with these points, which nobody asks for, at the end of stage B."""
    p = plan()
    stages = (p.stages[0], p.stages[1].model_copy(update={"points": (*p.stages[1].points, *(x.name for x in points))}))
    return p.model_copy(update={"load_points": (*p.load_points, *points), "stages": stages})


def test_of_points_that_nobody_names_the_longest_goes_first():
    more = with_points(closed(1, "long", requests=40))
    found = trim(more, plan_cost(more, speed_of).minutes - 0.01, speed_of)
    assert [x.what for x in found.lost] == ["load point long"]  # 40 x 100 tokens alone against 22 x 100 in two slots


def test_the_other_half_of_a_pair_goes_with_its_point():
    spare = closed(2, "spare")
    more = with_points(closed(2, "spare-json", json_schema={"type": "object"}, pair_of="spare"))
    found = trim(more, plan_cost(more, speed_of).minutes - 0.01, speed_of)
    assert [x.what for x in found.lost] == [f"load point {spare.name}"]
    assert not {"spare", "spare-json"} & set(found.plan.points())
    assert plan_from_yaml(plan_to_yaml(found.plan)) == found.plan


def test_a_service_level_that_names_no_candidate_asks_every_one():
    asked = plan(service_levels=(parse_condition("ttft p95 <= 2 s at spare"),))
    found = trim(asked, plan_cost(asked, speed_of).minutes - 0.01, speed_of)
    assert [x.what for x in found.lost] == ["slow at busy"]


def test_an_impossible_budget_names_the_least_possible():
    with pytest.raises(InputError, match=r"budget: 1 min is not enough: .* with one repeat and 3 starts.*Give it"):
        trim(plan(), 1, speed_of)
    assert trim(plan(), least(), speed_of).cost.minutes <= least()
    with pytest.raises(InputError):
        trim(plan(), least() - 1, speed_of)


@pytest.mark.parametrize("budget", [0, -5])
def test_no_time_is_no_budget(budget):
    with pytest.raises(InputError, match="no time"):
        trim(plan(), budget, speed_of)


def test_without_a_prediction_no_rung_of_the_ladder_is_given_up():
    with pytest.raises(InputError) as refused:
        trim(plan(), 1, lambda c, p: None)
    found = trim(plan(), float(refused.value.fix.split()[2]), lambda c, p: None)
    assert {"single", "parallel-2", "parallel-4", "parallel-8", "parallel-16"} <= set(found.plan.points())


@given(st.floats(0.3, 1.0))
@settings(max_examples=25)
def test_a_trimmed_plan_keeps_its_budget_its_hypotheses_and_can_be_read(share):
    budget = max(least(), share * WHOLE)
    found = trim(plan(), budget, speed_of)
    assert found.cost.minutes <= budget
    assert found.plan.hypotheses == plan().hypotheses
    assert plan_from_yaml(plan_to_yaml(found.plan)) == found.plan
    assert found.cost.minutes + sum(x.minutes for x in found.lost) == pytest.approx(WHOLE)
