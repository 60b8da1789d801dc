"""TTFT of a sized server as a range: the case on one unit, on too few, and on as many as planning asks for."""

from __future__ import annotations

import pytest

from planner.batching import POLICIES
from planner.capacity import Sizing, SizingSettings, size
from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.errors import InputError
from planner.queue_ranges import compare, offered, server, waiting_range, window
from planner.requirements import Hardware, ModelPlan, Requirements

CATALOG = load_catalog()
PLAN = ModelPlan(id="B", label="30B, 3B active", model="Qwen/Qwen3-30B-A3B", quantization="fp8")
GX10 = Hardware(gpu="GX-10")
CASE = Requirements(
    peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2, input_tokens=3596,
    output_tokens=500, context_tokens=4096, model_plans=(PLAN,), hardware=(GX10,),
)  # fmt: skip


@pytest.fixture(scope="module")
def sizing() -> Sizing:
    return size(CASE, PLAN, GX10, CATALOG)


def test_a_unit_is_what_the_sizing_says(sizing: Sizing) -> None:
    one = server(sizing, CASE, Kind.BOUND)
    assert one.limits.max_num_seqs == sizing.launch.max_num_seqs == 50
    # 256 blocks of 16 tokens hold a request of 4,096: as many fit as the sizing counts.
    assert one.limits.kv_blocks // 256 == sizing.requests_that_fit
    # The case's printed bound: 59 tok/s for each of 4.
    assert round(1 / one.step.seconds(4)) == 59


def test_the_load_is_the_stated_one(sizing: Sizing) -> None:
    one = server(sizing, CASE, Kind.PLANNING)
    arrivals = offered(one, CASE, "poisson", users=50)
    assert arrivals.rate_per_s == pytest.approx(50 / 60)  # one request per user and minute
    pausing = offered(one, CASE, "closed", users=50)
    assert pausing.think_s + one.answer_s(CASE, 1) == pytest.approx(60)
    assert offered(one, CASE, "closed", users=50, pauses=False).think_s == 0
    span = window(one, CASE, arrivals)
    assert 300 * 60 / 50 <= span.duration_s <= 600


def test_the_range_spans_the_assumptions_and_names_what_grows(sizing: Sizing) -> None:
    found = waiting_range(sizing, CASE)
    assert {c.kind for c in found.cases} == {Kind.BOUND, Kind.PLANNING}
    assert len({c.load for c in found.cases}) == 4
    low, high = found.ttft_p95_s
    assert sizing.first_token is not None
    assert low >= sizing.first_token.floor_ms / 1000  # nobody is faster than a request that waits for nobody
    # By planning one unit finishes about 175 tok/s of the 50/60 x 500 = 417 asked for: its queue grows.
    assert found.grows == ("most users, poisson arrivals",)
    assert high > 60
    assert found == waiting_range(sizing, CASE)


def test_17_units_wait_less_than_one(sizing: Sizing) -> None:
    one, many = waiting_range(sizing, CASE), waiting_range(sizing, CASE, units=17)
    assert many.grows == ()
    assert many.ttft_p95_s[1] < CASE.ttft_s < one.ttft_p95_s[1]
    assert all(c.goodput == 1.0 for c in many.cases if c.kind is Kind.BOUND)


def test_static_batches_finish_less_of_the_same_arrivals(sizing: Sizing) -> None:
    runs = {run.policy: run.summary() for run, _ in compare(sizing, CASE, "poisson", units=4, spread=True)}
    assert tuple(runs) == POLICIES
    waits = {policy: s.waiting_s.p95 for policy, s in runs.items() if s.waiting_s}
    assert waits["static"] > 10 * max(waits["continuous"], 0.1)
    assert runs["continuous"].requests == runs["static"].requests
    # Slots hold their share of the cache from the start, whatever is in them.
    assert runs["slots"].kv_peak_share > runs["continuous"].kv_peak_share


def test_nothing_is_simulated_where_nothing_fits() -> None:
    plan = ModelPlan(id="X", label="32B", model="Qwen/Qwen3-32B", quantization="bf16")
    small = Hardware(gpu="nvidia-l4")
    sizing = size(CASE, plan, small, CATALOG, SizingSettings())
    with pytest.raises(InputError, match="nobody can be simulated"):
        waiting_range(sizing, CASE)
