"""What was worked out before is the same answer, and never the one to another question."""

from __future__ import annotations

from planner import capacity
from planner.capacity import SizingSettings
from planner.catalog import load_catalog
from services import remembered
from services.scores import case_score
from services.verdicts import case_state
from tests.services.made import CASE


def test_a_sizing_is_worked_out_once_and_again_for_another_question(shipped):
    r = case_state(shipped, CASE).requirements
    asked = (r, r.favourite_plan, r.hardware[0])
    first = remembered.size(*asked, shipped.catalog, SizingSettings())
    assert first == capacity.size(*asked, shipped.catalog)
    assert remembered.size(r.model_copy(), *asked[1:], shipped.catalog, SizingSettings()) is first
    assert remembered.size(*asked, shipped.catalog.model_copy(), SizingSettings()) is not first
    more = r.model_copy(update={"peak_users_max": r.peak_users_max + 1})
    assert remembered.size(more, *asked[1:], shipped.catalog, SizingSettings()) != first
    assert remembered.size(*asked, shipped.catalog, SizingSettings(tensor_parallel=2)) != first


def test_a_score_under_other_points_is_not_the_one_that_was_kept(shipped):
    r = case_state(shipped, CASE).requirements
    kept = case_score(shipped, r)
    assert case_score(shipped, r) is kept
    criterion = kept.weights[0].criterion
    assert case_score(shipped, r, {criterion: 0.0}) != kept
    assert remembered.score(r, load_catalog().model_copy()) == kept
