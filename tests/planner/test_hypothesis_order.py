"""What testing costs, and in which order: worked out by hand beside the assertions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.hypothesis_cost import Run, effort, runs_of
from planner.hypothesis_order import order
from planner.plan_budget import PlanCost, PointCost, StartCost
from planner.poc import Hypothesis, Plan, Stage, StageRule
from tests.planner.test_hypotheses import plan

MINUTES = {"single": 10.0, "parallel-2": 5.0, "parallel-4": 5.0, "parallel-8": 5.0, "parallel-16": 5.0,
           "parallel-32": 5.0, "parallel-50": 20.0, "peak": 30.0, "overload": 40.0}  # fmt: skip
START_MIN = 15.0  # three starts of five minutes


def cost(p: Plan) -> PlanCost:
    """Every point with its minutes from the table, 100 prompt and 10 answer tokens; three starts."""
    points = [
        PointCost(candidate=c.id, stage=s.name, point=n, times=1, seconds=60 * MINUTES[n], prompt_tokens=100,
                  output_tokens=10, ends="predicted")
        for c in p.candidates for s in p.stages for n in s.points
    ]  # fmt: skip
    starts = [StartCost(candidate=c.id, stage=s.name, times=3) for c in p.candidates for s in p.stages]
    return PlanCost(points=tuple(points), starts=tuple(starts))


def hypothesis(id: str, line: str, **more: object) -> Hypothesis:
    fields = {"id": id, "statement": "s", "conditions": (parse_condition(line),), "method": "m", "if_rejected": "r"}
    return Hypothesis.model_validate(fields | more)


def of(*hypotheses: Hypothesis) -> Plan:
    return plan().model_copy(update={"hypotheses": hypotheses})


def test_a_hypothesis_costs_its_points_its_starts_and_the_stage_that_sets_it_up() -> None:
    p = of(hypothesis("H3", "vllm: user_tok_s p5 >= 20 tok/s at parallel-16"))
    assert runs_of(p, p.hypotheses[0]) == {Run("vllm", "A"), Run("vllm", "A", "parallel-16")}
    alone = effort(cost(p), runs_of(p, p.hypotheses[0]))
    assert (alone.minutes, alone.tokens) == (START_MIN + 5, 110)
    p = of(hypothesis("H4", "vllm: ttft p95 <= 2 s at peak"))  # stage B; its limit comes from the sweep of A
    assert effort(cost(p), runs_of(p, p.hypotheses[0])).minutes == 2 * START_MIN + 30 + (10 + 5 * 5)


def test_a_ratio_is_run_on_both_and_a_start_figure_needs_no_load() -> None:
    p = of(
        hypothesis("H2", "vllm over ollama: output_tok_s >= 3 x at parallel-16"),
        hypothesis("H-kv", "vllm: kv_capacity_spread <= 10 %"),
        hypothesis("D", "peak_in_flight max <= 5 over 28 days"),
    )
    assert [effort(cost(p), runs_of(p, h)).minutes for h in p.hypotheses] == [2 * (START_MIN + 5), START_MIN, 0]


def test_a_pair_is_run_with_its_point_in_the_first_stage_that_has_it() -> None:
    p = of(hypothesis("J", "vllm: structured_cost <= 1.2 x at json"))
    single = p.point("single")
    json = single.model_copy(update={"name": "json", "json_schema": {"type": "object"}, "pair_of": "single"})
    keeps = parse_condition("vllm: user_tok_s p5 >= 20 tok/s")
    rule = StageRule(setting="max_num_seqs", from_stage="A", keeps=keeps)
    stages = (
        Stage(name="A", points=("single", "json")), Stage(name="B", points=("json", "parallel-2")),
        Stage(name="C", points=("parallel-4",), rule=rule),
    )  # fmt: skip
    p = p.model_copy(update={"load_points": (*p.load_points, json), "stages": stages})
    assert runs_of(p, p.hypotheses[0]) == {Run("vllm", "A"), Run("vllm", "A", "json"), Run("vllm", "A", "single")}
    # a start is that of the first stage, and a rule needs the stage that it reads, not what lies between
    assert runs_of(p, hypothesis("H1", "vllm: started is true")) == {Run("vllm", "A")}
    behind = runs_of(p, hypothesis("C", "vllm: oom <= 0 at parallel-4"))
    assert {r.stage for r in behind} == {"A", "C"}


def test_shared_runs_are_counted_once_and_what_each_adds_makes_the_total() -> None:
    p = plan()
    found = order(p, cost(p))
    assert found.total.minutes == pytest.approx(sum(r.adds.minutes for r in found.ranked))
    assert found.total.minutes < sum(r.alone.minutes for r in found.ranked)
    assert found.total.minutes + found.unasked.minutes == pytest.approx(cost(p).minutes)
    assert found.total.tokens + found.unasked.tokens == (9 * 2) * 110


def test_no_speed_is_tested_before_starts_even_where_nothing_states_it() -> None:
    fast = hypothesis("S", "vllm: user_tok_s p5 >= 20 tok/s at parallel-16", warning="Already doubtful")
    slow_start = hypothesis("H1", "vllm: started is true")
    ranked = order(of(fast, slow_start), cost(of(fast, slow_start))).ranked
    assert [r.hypothesis.id for r in ranked] == ["H1", "S"]
    assert ranked[0].reason == "First: one other waits for it."
    assert ranked[1].waits_for == ("H1",)


def test_doubt_times_stakes_a_minute_decides() -> None:
    """With the start of 15 min and a minute to look: .8 x 2 / 46 = .035 for PEAK, .5 / 21 = .024, 1 / 56 = .018.

    The start is paid then: .5 / 6 = .083 for QUICK comes before 1 / 41 = .024 for OVER.
    """
    peak = hypothesis("PEAK", "vllm: completed_share >= 95 % at peak", warning="Already doubtful")
    over = hypothesis("OVER", "vllm: completed_share >= 95 % at overload")
    quick = hypothesis("QUICK", "vllm: completed_share >= 95 % at parallel-32", stakes="changes a setting")
    p = of(peak, over, quick)
    flat = p.model_copy(update={"stages": (Stage(name="A", points=tuple(MINUTES)),)})
    assert [r.hypothesis.id for r in order(flat, cost(flat)).ranked] == ["PEAK", "QUICK", "OVER"]
    decided = order(flat, cost(flat), {"QUICK": "decided"}).ranked
    assert decided[-1].reason == "Decided already: nothing is gained by testing it again."


def test_a_rule_that_reads_a_later_or_its_own_stage_ends() -> None:
    keeps = parse_condition("vllm: user_tok_s p5 >= 20 tok/s")
    own = Stage(name="A", points=("single",), rule=StageRule(setting="max_num_seqs", from_stage="A", keeps=keeps))
    p = of(hypothesis("S", "vllm: completed_share >= 95 % at single")).model_copy(update={"stages": (own,)})
    assert effort(cost(p), runs_of(p, p.hypotheses[0])).minutes == START_MIN + 10


LINES = ("vllm: started is true", "vllm: user_tok_s p5 >= 20 tok/s at parallel-16", "vllm: oom <= 0 at overload",
         "vllm over ollama: output_tok_s >= 3 x at parallel-8", "vllm: ttft p95 <= 2 s at every point",
         "vllm: kv_capacity_spread <= 10 %", "peak_in_flight max <= 5 over 28 days")  # fmt: skip


@settings(max_examples=30)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=7, unique=True), st.randoms(use_true_random=False))
def test_every_hypothesis_stands_once_behind_what_it_waits_for_and_the_sum_is_the_total(
    lines: list[str], random: object
) -> None:
    hs = [hypothesis(f"X{i}", line) for i, line in enumerate(lines)]
    p = of(*hs)
    found = order(p, cost(p))
    place = {r.hypothesis.id: i for i, r in enumerate(found.ranked)}
    assert place.keys() == {h.id for h in hs}
    for r in found.ranked:
        assert all(place[x] < place[r.hypothesis.id] for x in r.waits_for)
    assert found.total.minutes == pytest.approx(sum(r.adds.minutes for r in found.ranked))
