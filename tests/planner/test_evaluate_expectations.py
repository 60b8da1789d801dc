"""What a prediction says while nothing has been measured, and at which lower rate a promise fails already."""

from __future__ import annotations

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind, State
from planner.evaluate import evaluate
from tests.planner.made import NOW, PEAK, POINTS, PROMISE, context, speed, ttft


@pytest.mark.parametrize("kind", [Kind.BOUND, Kind.COVERAGE, Kind.PLANNING, Kind.SIMULATED, Kind.ENGINE_ALONE])
def test_an_estimate_never_decides_it_gives_an_expectation(kind):
    condition = parse_condition("vllm: user_tok_s p5 >= 20 tok/s at parallel-16")
    guess = Evidence(id="p", metric="user_tok_s", statistic="p5", value=10.0, unit="tok/s", kind=kind, source="sizing",
                     at=NOW, candidate="vllm", load_point="parallel-16")  # fmt: skip
    v = evaluate(condition, [guess], context())
    assert v.state is State.UNMEASURED
    assert v.expectation == f"predicted to fail: 10 tok/s against 20 tok/s ({kind.value})"


def test_an_expectation_is_of_the_statistic_that_is_asked_for():
    condition = parse_condition("vllm: user_tok_s p5 >= 20 tok/s at parallel-16")
    rehearsed = [
        speed(v, metric="user_tok_s", statistic=s, kind=Kind.SIMULATED, id=f"r/{s}")
        for s, v in {"p5": 18.0, "p50": 25.0, "p99": 40.0}.items()
    ]
    assert evaluate(condition, rehearsed, context()).expectation.startswith("predicted to fail: 18 tok/s")


def test_what_is_predicted_of_a_ratio_was_predicted_at_this_load_on_both_sides():
    condition = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")
    bound = [speed(v, candidate=c, kind=Kind.BOUND, id=f"b-{c}") for c, v in (("vllm", 300.0), ("ollama", 60.0))]
    elsewhere = speed(900.0, kind=Kind.PLANNING, load_hash="another", id="p-vllm")
    slow = speed(60.0, candidate="ollama", kind=Kind.PLANNING, id="p-ollama")
    # 300 / 60; the 900 tok/s are of other lengths
    told = evaluate(condition, [*bound, elsewhere, slow], context()).expectation
    assert told == "predicted to hold: 5 x against 3 x (bound)"
    nothing = bound[1].model_copy(update={"value": 0.0})
    assert evaluate(condition, [bound[0], nothing], context()).expectation == ""


def test_a_rehearsal_at_another_load_predicts_nothing():
    other = PEAK.model_copy(update={"input_tokens": 100})
    v = evaluate(PROMISE, [ttft(kind=Kind.SIMULATED, load_hash=other.load_hash())], context())
    assert v.expectation == ""


def at_rate(point: str, value: float) -> Evidence:
    return ttft(
        None, value=value, kind=Kind.IMPORTED, load_point=point, load_hash=None, id=point, source=point, exceedances=()
    )


def test_a_failure_in_an_open_loop_names_the_lowest_rate_at_which_it_was_seen():
    rates = {f"rate-{r}": PEAK.model_copy(update={"name": f"rate-{r}", "rate_per_s": r}) for r in (0.1, 0.3, 1.0)}
    seen = [at_rate("peak", 8000), at_rate("rate-0.1", 1900), at_rate("rate-0.3", 4400), at_rate("rate-1.0", 66_000)]
    v = evaluate(PROMISE, seen, context(points=POINTS | rates))
    assert (v.state, v.value) == (State.FAILS, 8000)
    assert v.sentence.endswith("It fails already at 0.3 req/s poisson, 3,596 in / 500 out: 4.4 s.")
    assert "already" not in evaluate(PROMISE, seen[:2], context(points=POINTS | rates)).sentence


def test_a_throughput_that_falls_short_says_nothing_of_lower_rates():
    """What has to be high may be missed for want of load: a lower rate that misses it too is no earlier failure."""
    condition = parse_condition("vllm: request_rate >= 0.5 req/s at peak")
    low = PEAK.model_copy(update={"name": "low", "rate_per_s": 0.1})
    seen = [
        at_rate(p, v).model_copy(update={"metric": "request_rate", "statistic": "value", "unit": "req/s"})
        for p, v in (("peak", 0.4), ("low", 0.1))
    ]
    v = evaluate(condition, seen, context(points=POINTS | {"low": low}))
    assert v.state is State.FAILS
    assert "already" not in v.sentence
