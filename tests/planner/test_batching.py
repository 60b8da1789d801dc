"""Batch policies step by step: worked examples, and what must hold whatever arrives."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.batching import POLICIES, Limits, Policy, State, Step, StepTime, cancel, step, submit
from planner.conditions import Kind
from planner.errors import InputError
from planner.throughput import ThroughputInputs, user_tok_s

# The case's model: 3.0 GB of active weights, 4,096 tokens of FP16 KV at 98,304 B, 273 GB/s.
CASE = ThroughputInputs(active_weight_gb=3.0, always_read_gb=3.0, kv_gb_per_request=4096 * 98304 / 1e9,
                        bandwidth_gb_s=273, layers=48, output_tokens=256, prefill_s=0.1)  # fmt: skip


class Job(NamedTuple):
    """A request by the step before which it arrives."""

    arrives: int
    prompt: int
    output: int


def served(limits: Limits, jobs: list[Job], *, most: int = 5000) -> list[Step]:
    """Steps until everybody is served; idle ones count too, because time passes in them."""
    state, steps = State(), []
    for t in range(most):
        for i, job in enumerate(jobs):
            if job.arrives == t:
                state = submit(state, limits, i, job.prompt, job.output)
        if state.empty and all(j.arrives < t for j in jobs):
            return steps
        steps.append(step(state, limits))
        state = steps[-1].state
    raise AssertionError("not everybody was served")


def tokens_of(steps: list[Step]) -> Counter[int]:
    return Counter(w.id for s in steps for w in s.work if w.produces)


def last_step(steps: list[Step], request: int) -> int:
    return next(t for t, s in enumerate(steps) for w in s.work if w.id == request and w.finishes)


def test_the_first_token_comes_with_the_last_chunk_of_the_prompt() -> None:
    # 20 prompt tokens at 8 a step: 8 + 8 + 4, the third chunk gives token 1; two more steps give tokens 2 and 3.
    steps = served(Limits(kv_blocks=100, token_budget=8, max_num_seqs=4), [Job(0, 20, 3)])
    assert [w.tokens for s in steps for w in s.work] == [8, 8, 4, 1, 1]
    assert [w.produces for s in steps for w in s.work] == [False, False, True, True, True]
    assert [s.prefill_tokens for s in steps] == [8, 8, 4, 0, 0]


def test_decode_goes_before_the_prompt_of_a_newcomer() -> None:
    # Request 0 decodes (1 token); request 1 gets the 7 that are left of 8, then its last 3.
    steps = served(Limits(kv_blocks=100, token_budget=8, max_num_seqs=4), [Job(0, 8, 4), Job(1, 10, 1)])
    assert [(w.id, w.tokens) for w in steps[1].work] == [(0, 1), (1, 7)]
    assert [(w.id, w.tokens) for w in steps[2].work] == [(0, 1), (1, 3)]


def test_the_youngest_is_preempted_computed_again_and_finishes() -> None:
    # 4 blocks of 4. Two prompts of 4: one block each, two each from the first decode on (5 tokens). At 9 tokens request
    # 0 needs a third block and none is free: request 1 gives its two back with 5 tokens produced, and comes back when
    # its 4 + 5 = 9 tokens (3 blocks) fit, which is when request 0 has ended: 9 tokens computed again in one step.
    limits = Limits(kv_blocks=4, block_size=4, max_num_seqs=2)
    steps = served(limits, [Job(0, 4, 8), Job(0, 4, 8)])
    assert [s.kv_blocks for s in steps] == [2, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3]
    assert [s.preempted for s in steps if s.preempted] == [(1,)]
    assert steps[5].preempted == (1,)
    again = steps[8].work[0]
    assert (again.id, again.tokens, again.prefill, again.produces) == (1, 9, True, True)
    assert tokens_of(steps) == {0: 8, 1: 8}
    assert (last_step(steps, 0), last_step(steps, 1)) == (7, 10)


def test_slots_share_the_cache_and_never_preempt() -> None:
    limits = Limits(policy="slots", max_num_seqs=2, kv_blocks=4, block_size=4)
    steps = served(limits, [Job(0, 4, 4), Job(0, 4, 2), Job(0, 4, 2)])
    assert steps[0].kv_blocks == 4  # both slots hold their share from the start
    assert [len(s.work) for s in steps] == [2, 2, 2, 2]
    assert not any(s.preempted for s in steps)
    with pytest.raises(InputError, match="6 \\+ 4 tokens do not fit the 8 that one request may hold"):
        submit(State(), limits, 9, 6, 4)


def test_a_static_batch_waits_for_its_slowest() -> None:
    limits = Limits(policy="static", max_num_seqs=2, kv_blocks=100)
    steps = served(limits, [Job(0, 4, 1), Job(0, 4, 5), Job(0, 4, 1)])
    assert [sorted(w.id for w in s.work) for s in steps] == [[0, 1], [1], [1], [1], [1], [2]]
    continuous = served(limits.model_copy(update={"policy": "continuous"}), [Job(0, 4, 1), Job(0, 4, 5), Job(0, 4, 1)])
    assert len(continuous) == 5


def test_a_cancelled_request_leaves_its_blocks() -> None:
    limits = Limits(kv_blocks=10, block_size=4)
    state = step(submit(submit(State(), limits, 1, 8, 4), limits, 2, 8, 4), limits).state
    assert (state.kv_blocks, cancel(state, 1).kv_blocks) == (4, 2)
    assert cancel(cancel(state, 1), 2).empty


def test_an_empty_server_does_nothing() -> None:
    idle = step(State(), Limits(kv_blocks=1))
    assert (idle.work, idle.state, StepTime(base_s=1).seconds(idle)) == ((), State(), 0.0)


def test_limits_that_would_starve_somebody_are_refused() -> None:
    with pytest.raises(ValidationError, match="token_budget"):
        Limits(kv_blocks=10, max_num_seqs=8, token_budget=4)
    with pytest.raises(ValidationError, match="kv_blocks"):
        Limits(policy="slots", kv_blocks=3, max_num_seqs=4)
    with pytest.raises(InputError, match="is none"):
        submit(State(), Limits(kv_blocks=1), 0, 0, 1)


def test_step_times_are_stated_or_those_of_the_sizing() -> None:
    limits = Limits(kv_blocks=10_000, max_num_seqs=8)
    first, second = served(limits, [Job(0, 100, 2)] * 4)
    stated = StepTime(base_s=0.010, per_request_s=0.001, prefill_s_per_token=0.0001)
    assert stated.seconds(first) == pytest.approx(0.010 + 4 * 0.001 + 400 * 0.0001)
    assert stated.seconds(second) == pytest.approx(0.014)
    # The case's printed table: 59 tok/s for each of 4, by the bound.
    bound = StepTime.of(CASE, input_tokens=3840, kind=Kind.BOUND)
    assert round(1 / bound.seconds(second)) == 59
    assert 1 / bound.seconds(second) == pytest.approx(user_tok_s(CASE, Kind.BOUND, 4))
    # 0.1 s for a prompt of 3,840 tokens at peak; planning reaches half of it (dense).
    assert StepTime.of(CASE, 3840).prefill_s_per_token == pytest.approx(0.1 / 0.5 / 3840)


JOBS = st.lists(st.builds(Job, st.integers(0, 12), st.integers(1, 24), st.integers(1, 14)), min_size=1, max_size=10)


@st.composite
def limits_for(draw: st.DrawFn, policy: Policy, *, chunked: bool = True) -> Limits:
    """Limits in which every job of JOBS fits: 24 + 14 - 1 = 37 tokens are 10 blocks of 4."""
    seqs = draw(st.integers(1, 5))
    blocks = draw(st.integers(10, 24)) * (seqs if policy == "slots" else 1)
    budget = draw(st.none() | st.integers(seqs, 20)) if chunked else None
    return Limits(policy=policy, max_num_seqs=seqs, kv_blocks=blocks, block_size=4, token_budget=budget)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), jobs=JOBS, policy=st.sampled_from(POLICIES))
def test_nobody_is_lost_and_the_cache_never_overflows(data: st.DataObject, jobs: list[Job], policy: Policy) -> None:
    limits = data.draw(limits_for(policy))
    steps = served(limits, jobs)
    assert tokens_of(steps) == {i: j.output for i, j in enumerate(jobs)}  # the preempted ones too, and none twice
    for s in steps:
        assert s.kv_blocks <= limits.kv_blocks
        assert s.state.kv_blocks <= s.kv_blocks
        assert len(s.state.running) <= limits.max_num_seqs
        assert limits.token_budget is None or sum(w.tokens for w in s.work) <= limits.token_budget
        assert all(r.blocks * limits.block_size >= r.computed for r in s.state.running)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), jobs=JOBS, policy=st.sampled_from(POLICIES))
def test_who_comes_first_starts_first(data: st.DataObject, jobs: list[Job], policy: Policy) -> None:
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrives, i))
    steps = served(data.draw(limits_for(policy)), jobs)
    begun = list(dict.fromkeys(w.id for s in steps for w in s.work))
    assert begun == order
    for s in steps:  # the running are always older than the waiting
        assert [order.index(q.id) for q in (*s.state.running, *s.state.waiting)] == sorted(
            order.index(q.id) for q in (*s.state.running, *s.state.waiting)
        )


@settings(max_examples=80, deadline=None)
@given(data=st.data(), jobs=JOBS)
def test_continuous_batching_is_never_slower_than_static(data: st.DataObject, jobs: list[Job]) -> None:
    # Holds for every request: with prompts whole in one step also through preemptions; with chunks as long as nobody
    # is preempted, since computing again takes budget from others. Induction over the static batches.
    static = data.draw(limits_for("static"))
    continuous = static.model_copy(update={"policy": "continuous"})
    slow, fast = served(static, jobs), served(continuous, jobs)
    if static.token_budget is None or not any(s.preempted for s in fast):
        assert all(last_step(fast, i) <= last_step(slow, i) for i in range(len(jobs)))
        assert len(fast) <= len(slow)
