"""The knee of a sweep, on a public rate sweep of one GB10 and on sweeps that have holes or contradict themselves.

TTFT p95 against offered rate: djangodevreng/dgx-spark-benchmarks@5636536 (CC-BY-4.0), qwen3.6-35b-a3b-fp8,
11-rate-sweep under vLLM 0.26, prompts of 4,098 tokens, answers of 489.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.condition_line import parse_condition
from planner.conditions import Condition, Evidence, Exceedance, Kind
from planner.knee import Knee, Sweep, batch_limit, find_knee, sweeps
from planner.loads import LoadPoint
from tests.planner.made import CONTRACT, context, speed, ttft

TTFT_P95_MS = {0.1: 2808.25, 0.2: 3481.45, 0.3: 4395.74, 0.5: 5257.39, 0.7: 8130.86, 1.0: 66083.03}


def level(seconds: float) -> Condition:
    return parse_condition(f"ttft p95 <= {seconds:g} s")


def rate(r: float) -> LoadPoint:
    return LoadPoint(name=f"rate-{r:g}", shape="open", rate_per_s=r, input_tokens=4098, output_tokens=489)


def closed(n: int) -> LoadPoint:
    return LoadPoint(name=f"parallel-{n}", in_flight=n, input_tokens=512, output_tokens=128)


def imported(r: float, value_ms: float) -> Evidence:
    return ttft(n=100, value=value_ms, id=f"imported/{r}", kind=Kind.IMPORTED, source="rate sweep", exceedances=(),
                load_point=f"rate-{r:g}", load_hash=None, contract=None)  # fmt: skip


def at(n: int, value_ms: float, start: int = 1, requests: int = 200, **more: object) -> Evidence:
    """A measured start at `n` in flight: all requests below the limit of 2 s, or all above it."""
    beyond = requests if value_ms > 2000 else 0
    return ttft(n=requests, value=value_ms, start=start, id=f"{n}/{start}", load_point=f"parallel-{n}", load_hash=None,
                exceedances=(Exceedance(threshold=2000, comparison="<=", beyond=beyond),), **more)  # fmt: skip


def rate_knee(seconds: float, figures: Mapping[float, float] = TTFT_P95_MS) -> Knee:
    points = [rate(r) for r in figures]
    known = context(points={p.name: p for p in points})
    return find_knee("vllm", sweeps(points)[0], [level(seconds)], [imported(*x) for x in figures.items()], known)


def closed_knee(amounts: Sequence[int], evidence: Sequence[Evidence]) -> Knee:
    points = [closed(n) for n in amounts]
    known = context(points={p.name: p for p in points})
    return find_knee("vllm", sweeps(points)[0], [level(2)], evidence, known)


def test_no_offered_rate_keeps_2_s_on_the_seeds_machine() -> None:
    # The benchmark's own README: p95 TTFT stays within 2 s at no offered rate, 2.8 s at 0.1 req/s already.
    knee = rate_knee(2)
    assert knee.at is None
    assert knee.kind is Kind.IMPORTED
    assert knee.sentence == "No load keeps every level: 0.1 req/s fails already (ttft p95 <= 2 s reads 2.81 s)."


def test_5_s_are_kept_up_to_0_3_requests_a_second() -> None:
    knee = rate_knee(5)
    assert knee.at is not None and knee.at.amount == 0.3
    assert knee.fails_at is not None and knee.fails_at.amount == 0.5
    assert knee.sentence == (
        "0.3 req/s keeps every level, 0.5 req/s does not (ttft p95 <= 5 s reads 5.26 s). "
        "Between 0.3 and 0.5 nothing was measured."
    )


def test_a_level_that_nothing_breaks_leaves_the_knee_open_upwards() -> None:
    knee = rate_knee(120)
    assert knee.at is not None and knee.at.amount == 1.0
    assert "no load above it is known to fail" in knee.sentence


def test_what_was_not_measured_between_is_named() -> None:
    knee = closed_knee([1, 8, 12, 16], [at(1, 300), at(8, 900), at(16, 9000)])
    assert knee.at is not None and knee.at.amount == 8
    assert [s.amount for s in knee.open_] == [12]
    assert "Between 8 and 16 not decided: unmeasured at 12." in knee.sentence


def test_too_few_samples_leave_a_step_undecided_and_the_knee_below_it() -> None:
    # 20 requests without one beyond prove nothing about a p95: that takes 59 (0.95^59 < 0.05).
    knee = closed_knee([4, 8, 16], [at(4, 500), at(8, 900, requests=20), at(16, 9000)])
    assert knee.at is not None and knee.at.amount == 4
    assert "Between 4 and 16 not decided: undecided at 8." in knee.sentence


def test_what_holds_again_above_a_failure_is_no_knee() -> None:
    knee = closed_knee([4, 8, 16], [at(4, 500), at(8, 9000), at(16, 900)])
    assert knee.at is not None and knee.at.amount == 4
    assert knee.sentence.endswith("16 in flight holds again above one that fails: measure both once more.")


def test_a_knee_near_the_limit_says_so() -> None:
    near = level(2).model_copy(update={"near": 0.1})
    sweep = Sweep("closed", (closed(8),))
    knee = find_knee("vllm", sweep, [near], [at(8, 1900)], context(points={"parallel-8": closed(8)}))
    assert "That is near the limit." in knee.sentence


def test_without_evidence_no_load_is_decided() -> None:
    knee = closed_knee([1, 2], [])
    assert not knee.decided
    assert knee.sentence == "No load is decided: unmeasured at 1, 2."


def test_simulated_figures_decide_no_knee() -> None:
    assert not closed_knee([1], [at(1, 300, kind=Kind.SIMULATED)]).decided


def test_points_of_other_lengths_and_arrivals_are_other_sweeps() -> None:
    long = closed(4).model_copy(update={"name": "long", "input_tokens": 8192})
    constant = rate(0.1).model_copy(update={"name": "even", "arrival": "constant"})
    found = sweeps([closed(8), closed(1), rate(0.1), long, constant])
    assert [[p.name for p in s.points] for s in found] == [["parallel-1", "parallel-8"], ["rate-0.1"], ["long"],
                                                           ["even"]]  # fmt: skip


def test_the_limit_is_the_knee_and_says_that_the_next_one_waits() -> None:
    evidence = [at(1, 300), at(8, 900), at(16, 9000)]
    knee = closed_knee([1, 8, 16], evidence)
    limit = batch_limit(knee, evidence, {CONTRACT.full_hash(): CONTRACT})
    assert limit.max_num_seqs == 8
    assert "request 9 waits" in limit.reason


def test_more_in_flight_than_the_limit_it_was_measured_under_recommends_that_limit() -> None:
    evidence = [at(32, 900)]  # under max_num_seqs 16: 16 ran, 16 waited
    limit = batch_limit(closed_knee([32], evidence), evidence, {CONTRACT.full_hash(): CONTRACT})
    assert limit.max_num_seqs == 16


def test_a_knee_at_the_very_limit_it_was_measured_under_had_nobody_waiting() -> None:
    evidence = [at(16, 900)]  # under max_num_seqs 16
    limit = batch_limit(closed_knee([16], evidence), evidence, {CONTRACT.full_hash(): CONTRACT})
    assert limit.max_num_seqs == 16
    assert limit.reason == "16 in flight is the most that is known to keep every level; more may do too."


@pytest.mark.parametrize(("ttft_ms", "kind"), [(900, Kind.IMPORTED), (9000, Kind.MEASURED)])
def test_a_knee_is_known_as_its_weakest_figure_is_and_a_failure_as_what_fails(ttft_ms: float, kind: Kind) -> None:
    fast = parse_condition("output_tok_s >= 100 tok/s")
    total = speed(170.0, kind=Kind.IMPORTED, load_point="parallel-8", load_hash=None, contract=None)
    known = context(points={"parallel-8": closed(8)})
    knee = find_knee("vllm", Sweep("closed", (closed(8),)), [level(2), fast], [at(8, ttft_ms), total], known)
    assert knee.kind is kind


@pytest.mark.parametrize(("evidence", "reason"), [([at(1, 9000)], "No limit helps"), ([], "No load is decided")])
def test_no_limit_where_nothing_keeps_the_levels(evidence: list[Evidence], reason: str) -> None:
    limit = batch_limit(closed_knee([1], evidence), evidence, {})
    assert limit.max_num_seqs is None
    assert limit.reason.startswith(reason)


@given(
    figures=st.dictionaries(st.sampled_from(sorted(TTFT_P95_MS)), st.floats(100, 20_000), min_size=1),
    limits=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_a_looser_level_never_gives_a_lower_knee(figures: dict[float, float], limits: tuple[int, int]) -> None:
    tight, loose = (rate_knee(s, figures) for s in sorted(limits))
    assert (tight.at.amount if tight.at else 0) <= (loose.at.amount if loose.at else 0)
