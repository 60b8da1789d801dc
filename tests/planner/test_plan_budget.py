"""Minutes and tokens of a plan, worked out on paper for a server whose step takes 10.02 ms."""

from __future__ import annotations

import pytest

from bench.asking import tail_reserve
from bench.inputs import NO_INPUTS
from bench.runner import jobs_of
from planner.loads import LoadPoint
from planner.plan_budget import STARTUP_S, batch_limit, ladder_up_to, plan_cost, predicted_setting, tail_requests
from planner.poc import Launch, Stop
from planner.throughput import MFU
from tests.planner.planned import FAST, LADDER, SLOW, STEP_S, candidate, closed, plan, speed_of


def cost_at(point: LoadPoint, **more: object):
    one = {"name": "A", "points": (point.name,)}
    alone = plan(load_points=(point,), stages=(one,), hypotheses=(), candidates=(candidate("fast", "favourite"),),
                 starts=1, repeats=1, **more)  # fmt: skip
    return plan_cost(alone, speed_of).points[0]


def test_one_request_after_another_takes_its_tokens_times_a_step():
    # 20 requests x 100 tokens x 10.02 ms
    assert cost_at(closed(1)).seconds == pytest.approx(20 * 100 * STEP_S)


def test_a_closed_loop_is_kept_up_by_one_more_request_a_slot():
    # 20 + 4 in 4 slots: 6 rounds of 100 tokens
    found = cost_at(closed(4))
    assert found.seconds == pytest.approx(6 * 100 * STEP_S)
    assert (found.prompt_tokens, found.output_tokens) == (24 * 50, 24 * 100)


def test_two_rounds_of_warm_up_come_before_it():
    found = cost_at(closed(4, warmup_requests=4))
    assert found.seconds == pytest.approx((6 + 2) * 100 * STEP_S)
    assert found.output_tokens == (24 + 8) * 100


def test_an_open_loop_takes_as_long_as_it_sends_and_its_last_answer():
    # 20 requests at 0.5/s, and 100 tokens of the last
    point = LoadPoint(name="peak", shape="open", rate_per_s=0.5, input_tokens=50, output_tokens=100, requests=20,
                      warmup_requests=0)  # fmt: skip
    assert cost_at(point).seconds == pytest.approx(40 + 100 * STEP_S)


def test_a_server_that_cannot_keep_up_takes_longer_than_the_sending():
    # one at a time by its contract: 20 x 1.002 s, though all were sent within 2 s
    point = LoadPoint(name="peak", shape="open", rate_per_s=10, input_tokens=50, output_tokens=100, requests=20,
                      warmup_requests=0)  # fmt: skip
    one = candidate("fast", "favourite", contract={"max_num_seqs": "1"})
    alone = plan(load_points=(point,), stages=({"name": "A", "points": ("peak",)},), hypotheses=(), candidates=(one,))
    assert plan_cost(alone, speed_of).points[0].seconds == pytest.approx(20 * 100 * STEP_S)


def test_each_candidate_is_counted_at_its_own_speed():
    found = plan_cost(plan(), speed_of)
    single = {p.candidate: p.seconds for p in found.points if p.point == "single"}
    # 16 GB instead of 8: 20.02 ms a step
    assert single["slow"] / single["fast"] == pytest.approx(20.02 / 10.02)


def test_starts_stages_and_repeats_multiply():
    found = plan_cost(plan(), speed_of)
    assert all(p.times == 4 * 2 for p in found.points)
    # 2 candidates x 2 stages x 4 starts of five minutes
    assert found.start_minutes == 2 * 2 * 4 * STARTUP_S / 60
    assert found.minutes == pytest.approx(found.minutes_of("fast") + found.minutes_of("slow"))


def test_an_attached_server_has_one_start_that_takes_no_time():
    attached = candidate("fast", "favourite", launch=Launch())
    found = plan_cost(plan(candidates=(attached,), hypotheses=()), speed_of)
    assert found.start_minutes == 0
    assert {p.times for p in found.points} == {2}


def test_the_rule_of_a_stage_limits_the_batch_behind_it():
    # 90 tok/s are kept at every rung by the fast server (99.8), at none by the slow one (50): 16 and 1
    p = plan()
    assert [predicted_setting(p, c, p.stages[1], speed_of) for c in p.candidates] == [16, 1]
    busy = {x.candidate: x.seconds for x in plan_cost(p, speed_of).points if x.point == "busy"}
    assert busy["slow"] == pytest.approx(20 * 100 * 0.02002)  # one after another; no tail below two rounds


def test_a_point_ends_at_the_plans_limit():
    found = cost_at(closed(1), stop=Stop(max_point_s=10))
    assert (found.seconds, found.ends) == (10, "stop rule")


def test_the_limit_of_a_point_is_for_its_load_and_the_warm_up_comes_on_top():
    # 2 rounds of one request, then 10 of the 20.04 s
    assert cost_at(closed(1, warmup_requests=1), stop=Stop(max_point_s=10)).seconds == pytest.approx(
        2 * 100 * STEP_S + 10
    )


def test_fewer_requests_than_slots_take_as_long_as_one_answer():
    assert cost_at(closed(4, requests=2)).seconds == pytest.approx(100 * STEP_S)


def test_long_prompts_beside_the_victims_cost_their_prefill_and_their_tokens():
    prompts = FAST.model_copy(update={"prefill_s": 0.05, "averages_prefill": False})  # of 50 tokens
    victims = closed(4, "beside")
    beside = closed(4, "beside", shape="interference", aggressors=2, aggressor_at_s=1, aggressor_input_tokens=1000)

    def cost(point: LoadPoint):
        alone = plan(load_points=(point,), stages=({"name": "A", "points": ("beside",)},), hypotheses=(),
                     candidates=(candidate("fast", "favourite"),))  # fmt: skip
        return plan_cost(alone, lambda c, p: prompts).points[0]

    # 2 prompts of 1,000 tokens at 1 ms a token on paper, at the share of the matrix rate that is reached
    extra = 2 * 1000 * 0.001 / MFU[prompts.family]
    assert cost(beside).seconds - cost(victims).seconds == pytest.approx(extra)
    assert cost(beside).prompt_tokens - cost(victims).prompt_tokens == 2 * 1000
    assert cost(beside).output_tokens - cost(victims).output_tokens == 2 * beside.aggressor_output_tokens


def test_a_rules_setting_is_the_rung_below_the_first_that_breaks_its_promise():
    by_rung = {1: FAST, 2: FAST, 4: SLOW, 8: FAST, 16: FAST}  # 90 tok/s are broken at 4
    p = plan()
    assert predicted_setting(p, p.candidates[0], p.stages[1], lambda c, at: by_rung[at.in_flight]) == 2


def test_the_smallest_of_all_limits_is_the_batch():
    slow = candidate("slow", "baseline", contract={"max_num_seqs": "8"})
    p = plan(candidates=(candidate("fast", "favourite"), slow))
    assert batch_limit(p, slow, p.stages[0], SLOW, speed_of) == 8  # by its contract
    assert batch_limit(p, slow, p.stages[1], SLOW, speed_of) == 1  # 90 tok/s are kept at no rung
    assert batch_limit(p, slow, p.stages[0], SLOW.model_copy(update={"kv_capacity": 3}), speed_of) == 3


def test_minutes_of_named_points_are_without_the_starts():
    found = plan_cost(plan(), speed_of)
    # 20 x 100 tokens one after another, in 4 starts of 2 repeats
    assert found.minutes_of("fast", ("single",)) == pytest.approx(8 * 20 * 100 * STEP_S / 60)


def test_without_a_prediction_the_limit_is_counted_and_said():
    found = plan_cost(plan(), lambda c, p: None)
    assert {p.ends for p in found.points} == {"no prediction"}
    assert {p.seconds for p in found.points} == {900.0}


def test_a_skipped_point_is_neither_counted_nor_run():
    skipping = candidate("slow", "baseline", skips=("busy", "spare"))
    p = plan(candidates=(candidate("fast", "favourite"), skipping))
    assert {x.stage for x in plan_cost(p, speed_of).starts if x.candidate == "slow"} == {"A"}
    assert {j.stage.name for j in jobs_of(p) if j.candidate.id == "slow"} == {"A"}
    assert {j.stage.name for j in jobs_of(p) if j.candidate.id == "fast"} == {"A", "B"}


@pytest.mark.parametrize("point", [*LADDER, closed(8, requests=16), closed(8, requests=17)], ids=lambda p: p.name)
def test_the_tail_is_that_of_the_instrument(point):
    assert tail_requests(point) == tail_reserve(point, NO_INPUTS)


def test_the_prediction_is_asked_at_the_points_own_lengths():
    seen = []
    plan_cost(plan(), lambda c, p: seen.append((p.input_tokens, p.output_tokens)) or FAST)
    assert set(seen) == {(50, 100)}


def test_a_ladder_ends_where_the_memory_does():
    stages = {s.name: s.points for s in ladder_up_to(plan(), 4).stages}
    assert stages == {"A": ("single", "parallel-2", "parallel-4"),
                      "B": ("parallel-8", "parallel-16", "busy", "spare")}  # fmt: skip
    assert ladder_up_to(plan(), 16) == plan()
