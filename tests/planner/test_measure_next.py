"""What is listed to be measured next, in which order, and what is left out because it is settled."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.conditions import Context, Evidence, Kind, More, State, Verdict
from planner.evaluate import combine, evaluate
from planner.hypothesis_schema import Hypothesis
from planner.measure_next import COULD, Asked, Next, could_change, measure_next
from planner.plan_budget import PlanCost, PointCost, StartCost
from planner.poc import Launch, Plan, PlanCandidate, Stage
from tests.planner.made import NOW, P16, PEAK, speed, ttft


def candidate(id: str, role: str) -> PlanCandidate:
    return PlanCandidate(id=id, role=role, engine="vllm", model_name="m", launch=Launch(command=("serve",)))


PLAN = Plan(
    case="c", title="t", shared_contract={}, load_points=(P16, PEAK.model_copy(update={"requests": 60})),
    candidates=(candidate("vllm", "favourite"), candidate("ollama", "baseline")),
    stages=(Stage(name="A", points=("parallel-16",)), Stage(name="B", points=("peak",))),
)  # fmt: skip
CONTEXT = Context(now=NOW, points=PLAN.points())


def hypothesis(id: str, *lines: str, stakes: str | None = None) -> Hypothesis:
    return Hypothesis(id=id, statement="s", conditions=tuple(map(parse_condition, lines)), method="m",
                      if_rejected=f"after {id}", stakes=stakes)  # fmt: skip


def listed(
    *hypotheses: Hypothesis, evidence: Sequence[Evidence] = (), cost: PlanCost | None = None
) -> tuple[Next, ...]:
    asked = []
    for h in hypotheses:
        parts = tuple(evaluate(c, evidence, CONTEXT) for c in h.conditions)
        asked.append(
            Asked(h.id, "hypothesis", could_change(h), h.conditions, combine("all of", parts), parts, h.if_rejected)
        )
    return measure_next(PLAN, asked, evidence, cost)


STARTS = hypothesis("H1", "vllm: started is true")
RATIO = hypothesis("H2", "vllm over ollama: output_tok_s >= 3 x at parallel-16")
PROMISE = hypothesis("H4", "vllm: ttft p95 <= 2 s at peak")


def told(runs: Sequence[Next]) -> list[tuple[str, str, list[str]]]:
    return [(n.could, n.what, [c.id for c in n.changes]) for n in runs]


def test_what_ends_the_plan_comes_first_and_a_start_rides_along_with_a_run():
    assert told(listed(PROMISE, RATIO, STARTS)) == [
        ("end the plan", "vllm at parallel-16", ["H1", "H2"]),
        ("change the favourite", "ollama at parallel-16", ["H2"]),
        ("change the plan", "vllm at peak", ["H4"]),
    ]
    assert told(listed(STARTS)) == [("end the plan", "start vllm", ["H1"])]


def test_what_is_settled_is_left_out():
    assert listed(PROMISE, evidence=[ttft()]) == ()  # holds: 0 of 100 beyond
    both = hypothesis("H4", "vllm: ttft p95 <= 2 s at peak", "vllm: itl p99 <= 50 ms at peak")
    assert listed(both, evidence=[ttft(beyond=40, value=3000.0)]) == ()  # it fails whatever the gaps are
    assert told(listed(both, evidence=[ttft()])) == [("change the plan", "vllm at peak", ["H4"])]


def test_only_the_side_without_a_figure_has_to_run():
    ours = [speed(400.0, s) for s in (1, 2, 3)]
    assert [n.what for n in listed(RATIO, evidence=ours)] == ["ollama at parallel-16"]


def test_what_is_nearly_decided_says_how_much_is_missing():
    # p95 with one beyond needs 93 requests (0.95^93 + 93 x 0.05 x 0.95^92 = 0.0498), 60 are there: 33 more.
    (run,) = listed(PROMISE, evidence=[ttft(n=60, beyond=1)])
    assert (run.more.n, run.more.of, run.starts, run.amount) == (33, "requests", 1, "1 start, 33 more requests")
    (start, _) = listed(RATIO, evidence=[speed(400.0, 1), speed(100.0, 1, "ollama")])
    assert start.starts == 3  # no contract is stated, so the figures do not count


def test_what_was_never_run_takes_all_starts_however_little_the_other_figures_lack():
    both = hypothesis("H4", "vllm: ttft p95 <= 2 s at peak", "vllm: itl p99 <= 50 ms at peak")
    (run,) = listed(both, evidence=[ttft(n=60, beyond=1)])
    assert (run.more, run.starts) == (None, PLAN.starts)


def test_a_part_of_the_starts_takes_its_part_of_the_time():
    cost = PlanCost(
        points=(PointCost(candidate="vllm", stage="B", point="peak", times=3, seconds=100.0, prompt_tokens=0,
                          output_tokens=0, ends="predicted"),),
        starts=(StartCost(candidate="vllm", stage="B", times=3),),
    )  # fmt: skip
    (run,) = listed(PROMISE, evidence=[ttft(n=60, beyond=1)], cost=cost)
    assert (run.starts, run.minutes) == (1, (300 + 100) / 60)  # one of three starts brings the 33 that are missing


def test_requests_that_are_missing_round_up_to_whole_starts():
    # p99 without one beyond needs 299 (0.99^299 < 0.05); 200 are there, and a start brings 60: two starts
    tight = hypothesis("H4", "vllm: ttft p99 <= 2 s at peak")
    (run,) = listed(tight, evidence=[ttft(n=200, statistic="p99")])
    assert (run.more.n, run.starts) == (99, 2)


def test_of_two_percentiles_the_one_that_lacks_most_says_how_many_starts():
    # p95 with one beyond lacks 33 of 93, p99 without one 239 of 299: 60 a start bring the larger in four starts
    both = hypothesis("H4", "vllm: ttft p95 <= 2 s at peak", "vllm: ttft p99 <= 2 s at peak")
    seen = [ttft(n=60, beyond=1), ttft(n=60, statistic="p99", id="p99")]
    (run,) = listed(both, evidence=seen)
    assert (run.more.n, run.starts) == (239, 4)


def test_items_that_are_missing_take_one_start_of_a_larger_set():
    verdict = Verdict(state=State.UNDECIDED, sentence="s", more=More(n=22, of="items"))
    condition = parse_condition("vllm: pass_rate >= 90 % at peak")
    asked = Asked("Q", "hypothesis", "change the plan", (condition,), verdict, (verdict,), "then")
    (run,) = measure_next(PLAN, [asked], [])
    assert (run.starts, run.amount) == (1, "1 start, 22 more items")


def test_of_any_points_one_that_is_decided_is_enough():
    anywhere = hypothesis("H4", "vllm: ttft p95 <= 2 s at any of parallel-16, peak", "vllm: oom <= 0 at peak")
    runs = listed(anywhere, evidence=[ttft()])  # it holds at peak, so parallel-16 need not run
    assert [n.what for n in runs] == ["vllm at peak"]


def test_a_start_that_rides_along_asks_for_no_more_of_the_load():
    alike = hypothesis("H-kv", "vllm: kv_capacity_spread <= 10 %")
    (run,) = listed(PROMISE, alike, evidence=[ttft(n=60, beyond=1)])
    assert [c.id for c in run.changes] == ["H-kv", "H4"]
    assert (run.more.n, run.starts) == (33, 1)


def test_close_calls_come_last():
    close = hypothesis("H3", "vllm: ttft p95 <= 2 s at peak near 10 %")
    runs = listed(close, RATIO, evidence=[ttft(value=1900.0)])
    assert told(runs)[-1] == ("tip over", "vllm at peak", ["H3"])
    assert runs[-1].changes[0].then == "after H3"


def test_what_is_predicted_to_fail_and_what_is_cheap_come_first():
    doubt = Evidence(id="p", metric="ttft_ms", statistic="p95", value=9000, unit="ms", kind=Kind.PLANNING, source="s",
                     at=NOW, candidate="vllm", load_point="peak")  # fmt: skip
    speeds = hypothesis("H3", "vllm: user_tok_s p5 >= 20 tok/s at parallel-16")

    def point(stage: str, name: str, seconds: float) -> PointCost:
        return PointCost(candidate="vllm", stage=stage, point=name, times=3, seconds=seconds, prompt_tokens=0,
                         output_tokens=0, ends="predicted")  # fmt: skip

    begun = tuple(StartCost(candidate="vllm", stage=s, times=3) for s in "AB")
    cost = PlanCost(points=(point("A", "parallel-16", 100.0), point("B", "peak", 1000.0)), starts=begun)
    cheap, dear = listed(PROMISE, speeds, cost=cost)
    # Three starts of 300 s, and three times 100 s or 1,000 s.
    assert [(n.point, n.minutes) for n in (cheap, dear)] == [("parallel-16", 20.0), ("peak", 65.0)]
    assert [n.point for n in listed(PROMISE, speeds, evidence=[doubt], cost=cost)] == ["peak", "parallel-16"]


def test_demand_is_observed_not_run():
    few = hypothesis("few", "peak_in_flight max <= 5 over 28 days")
    (seen,) = listed(few)
    assert (seen.candidate, seen.what, seen.minutes) == ("", "observe production", None)
    days = Evidence(id="d", metric="peak_in_flight", statistic="max", value=4, unit="count", kind=Kind.OBSERVED,
                    source="logs", at=NOW, window_days=20, coverage=1.0)  # fmt: skip
    (rest,) = listed(few, evidence=[days])
    assert (rest.what, rest.minutes) == ("observe 8 more days", 8 * 24 * 60)


@settings(max_examples=30)
@given(
    st.permutations([STARTS, RATIO, PROMISE, hypothesis("H5", "vllm: oom <= 0 at peak", stakes="changes a setting")])
)
def test_the_order_is_that_of_what_could_change_however_hypotheses_stand(hypotheses):
    ranks = [COULD.index(n.could) for n in listed(*hypotheses)]
    assert ranks == sorted(ranks)
