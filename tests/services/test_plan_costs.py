"""What Nortia's plan takes: each candidate at its own speed, the downloads, and what the hours cost."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.requirements import Budget
from services.plan_costs import cost_of, downloads, price, trimmed
from services.plans import PlanChoices, draft_plan
from services.verdicts import case_state
from tests.services.made import CASE


@pytest.fixture
def case(shipped):
    return shipped, case_state(shipped, CASE)


def test_the_baseline_is_not_counted_at_the_favourites_speed(case):
    ws, state = case
    single = {p.candidate: p.seconds for p in cost_of(ws, state.requirements, state.plan).points if p.point == "single"}
    # 8.5 bits a weight against 8, other weights and KV alike: slower, by less than the ratio of the bits
    assert 1 < single["ollama"] / single["vllm"] < 8.5 / 8


def test_a_format_that_the_catalogue_does_not_know_is_counted_at_the_limit(case):
    ws, state = case
    odd = state.plan.candidates[1].model_copy(update={"contract": {"quantization": "q9_9"}})
    p = state.plan.model_copy(update={"candidates": (state.plan.candidates[0], odd)})
    ends = {x.candidate: x.ends for x in cost_of(ws, state.requirements, p).points if x.point == "single"}
    assert ends == {"vllm": "predicted", "ollama": "no prediction"}


def test_weights_are_fetched_once_in_the_form_that_is_stored(case):
    ws, state = case
    first, second = downloads(ws, state.requirements, state.plan, mbit_s=1000)
    # 30.5 billion weights in 16 bits, which vLLM converts at load; at 8.5 bits as GGUF
    assert first.candidates == ("vllm",) and first.what.endswith("safetensors bf16")
    assert first.size_gb == pytest.approx(61.1, abs=0.3)
    assert second.size_gb == pytest.approx(30.5 * 8.5 / 8, abs=0.3)
    assert first.minutes == pytest.approx(61.1 * 8 / 60, abs=0.1)  # 1 Gbit/s
    with pytest.raises(InputError, match="0 Mbit/s carry nothing"):
        downloads(ws, state.requirements, state.plan, mbit_s=0)


def test_an_hour_costs_what_is_stated_else_its_share_of_the_capital_else_nobody_knows(case):
    ws, state = case
    r = state.requirements
    assert price(ws, r, 10, per_hour=4).amount == 40
    assert price(ws, r, 10).amount is None
    bought = r.model_copy(update={"budget": Budget(capital=4380, years=1)})
    assert price(ws, bought, 10).amount == pytest.approx(5)  # 4380 / 8760 h x 10
    by_day = r.model_copy(update={"budget": Budget(capital=4380, years=1, hours_per_day=12, electricity_per_kwh=0.5)})
    kwh = ws.catalog.gpu(r.hardware[0].gpu).tdp_w * 10 / 1000
    assert price(ws, by_day, 10).amount == pytest.approx(10 + 0.5 * kwh)
    with pytest.raises(InputError, match="no price"):
        price(ws, r, 10, per_hour=-1)


def test_a_budget_takes_the_baseline_away_where_nobody_asks_for_it(case):
    ws, state = case
    found = trimmed(ws, state.requirements, state.plan, 400)
    assert found.cost.minutes <= 400
    assert found.lost[0].what == "ollama at parallel-50"
    assert found.plan.candidates[1].skips and not found.plan.candidates[0].skips
    drafted = draft_plan(ws, CASE, state.requirements, PlanChoices(budget_min=400))
    assert (drafted.plan.budget_min, drafted.lost[0].what) == (400, "ollama at parallel-50")


def test_an_impossible_budget_makes_no_draft(case):
    ws, state = case
    with pytest.raises(InputError, match=r"budget: 1 h is not enough: .* Give it \d+ minutes"):
        draft_plan(ws, CASE, state.requirements, PlanChoices(budget_min=60))
