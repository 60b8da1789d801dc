"""One unit of a machine with several devices: whoever speaks of it speaks of the same one."""

from __future__ import annotations

import pytest

from planner.requirements import Hardware, ModelPlan
from services.cases import favourite_sizing
from services.plan_costs import cost_of, predicted_speed
from services.plans import draft_plan
from services.scores import case_score, case_what_if
from services.verdicts import case_state
from tests.services.made import CASE


@pytest.fixture
def big(shipped):
    """141 GB of weights on eight H100: one device does not hold them, four hold the peak of 50 (test_cases)."""
    model = ModelPlan(id="X", label="X", model="meta-llama/Llama-3.3-70B-Instruct", quantization="bf16")
    machine = Hardware(gpu="nvidia-h100-80gb-sxm", count=8, in_house=True)
    r = case_state(shipped, CASE).requirements
    return shipped, r.model_copy(update={"model_plans": (model,), "hardware": (machine,)})


def test_a_plan_is_costed_on_the_devices_that_it_starts_servers_on(big):
    ws, r = big
    plan = draft_plan(ws, CASE, r).plan
    assert {c.contract["tensor_parallel"] for c in plan.candidates} == {"4"}
    assert {p.ends for p in cost_of(ws, r, plan).points if p.point == "single"} == {"predicted"}
    speed, point = predicted_speed(ws, r), plan.points()["single"]
    of_devices = {
        n: speed(plan.candidates[0].model_copy(update={"contract": {"tensor_parallel": n}}), point)
        for n in ("1", "4", "3", "many")
    }
    assert [n for n, found in of_devices.items() if found] == ["4"]  # 64 heads are not split by three


def test_what_one_unit_holds_is_the_same_in_the_score_as_in_the_sizing(big):
    ws, r = big
    fits = favourite_sizing(ws, r).requests_that_fit
    assert fits > r.peak_users_max
    found = case_what_if(ws, r, case_score(ws, r)).enough
    assert {e.by_memory for e in found if e.engine == "vllm"} == {fits}
