"""Batch policies step by step: worked examples, and what must hold whatever arrives."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.batching import POLICIES, Limits, Policy, Scheduler, Step
from planner.errors import InputError


class Job(NamedTuple):
    """A request by the step before which it arrives."""

    arrives: int
    prompt: int
    output: int


def served(limits: Limits, jobs: list[Job], *, most: int = 5000) -> list[Step]:
    """Steps until everybody is served; idle ones count too, because time passes in them."""
    scheduler, steps = Scheduler(limits), []
    for t in range(most):
        for i, job in enumerate(jobs):
            if job.arrives == t:
                scheduler.submit(i, job.prompt, job.output)
        if scheduler.empty and all(j.arrives < t for j in jobs):
            return steps
        steps.append(scheduler.step())
        keeps_its_books(scheduler, steps[-1])
    raise AssertionError("not everybody was served")


def keeps_its_books(scheduler: Scheduler, step: Step) -> None:
    """What holds after every step: cache and seats are never exceeded, and the running are older than the waiting."""
    limits = scheduler.limits
    assert scheduler.kv_blocks <= step.kv_blocks <= limits.kv_blocks
    assert scheduler.kv_blocks == sum(s.blocks for s in scheduler.running)
    assert len(scheduler.running) <= limits.max_num_seqs
    assert limits.token_budget is None or sum(step.tokens) <= limits.token_budget
    assert all(s.blocks * limits.block_size >= s.computed for s in scheduler.running)


def tokens_of(steps: list[Step]) -> Counter[int]:
    return Counter(request for s in steps for request in s.produced)


def last_step(steps: list[Step], request: int) -> int:
    return next(t for t, s in enumerate(steps) if request in s.finished)


def test_the_first_token_comes_with_the_last_chunk_of_the_prompt() -> None:
    # 20 prompt tokens at 8 a step: 8 + 8 + 4, the third chunk gives token 1; two more steps give tokens 2 and 3.
    steps = served(Limits(kv_blocks=100, token_budget=8, max_num_seqs=4), [Job(0, 20, 3)])
    assert [s.tokens for s in steps] == [[8], [8], [4], [1], [1]]
    assert [s.produced for s in steps] == [[], [], [0], [0], [0]]
    assert ([s.first for s in steps].index([0]), [s.finished for s in steps].index([0])) == (2, 4)
    assert [s.prefill_tokens for s in steps] == [8, 8, 4, 0, 0]


def test_decode_goes_before_the_prompt_of_a_newcomer() -> None:
    # Request 0 decodes (1 token); request 1 gets the 7 that are left of 8, then its last 3.
    steps = served(Limits(kv_blocks=100, token_budget=8, max_num_seqs=4), [Job(0, 8, 4), Job(1, 10, 1)])
    assert (steps[1].worked, steps[1].tokens) == ([0, 1], [1, 7])
    assert (steps[2].worked, steps[2].tokens) == ([0, 1], [1, 3])


def test_the_youngest_is_preempted_computed_again_and_finishes() -> None:
    # 4 blocks of 4. Two prompts of 4: one block each, two each from the first decode on (5 tokens). At 9 tokens request
    # 0 needs a third block and none is free: request 1 gives its two back with 5 tokens produced, and comes back when
    # its 4 + 5 = 9 tokens (3 blocks) fit, which is when request 0 has ended: 9 tokens computed again in one step.
    limits = Limits(kv_blocks=4, block_size=4, max_num_seqs=2)
    steps = served(limits, [Job(0, 4, 8), Job(0, 4, 8)])
    assert [s.kv_blocks for s in steps] == [2, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3]
    assert [s.preempted for s in steps if s.preempted] == [[1]]
    assert steps[5].preempted == [1]
    again = steps[8]
    assert (again.worked, again.tokens, again.prefill_tokens, again.produced) == ([1], [9], 9, [1])
    assert tokens_of(steps) == {0: 8, 1: 8}
    assert (last_step(steps, 0), last_step(steps, 1)) == (7, 10)


def test_slots_share_the_cache_and_never_preempt() -> None:
    limits = Limits(policy="slots", max_num_seqs=2, kv_blocks=4, block_size=4)
    steps = served(limits, [Job(0, 4, 4), Job(0, 4, 2), Job(0, 4, 2)])
    assert steps[0].kv_blocks == 4  # both slots hold their share from the start
    assert [s.batch for s in steps] == [2, 2, 2, 2]
    assert not any(s.preempted for s in steps)
    with pytest.raises(InputError, match="6 \\+ 4 tokens do not fit the 8 that one request may hold"):
        Scheduler(limits).submit(9, 6, 4)


def test_a_static_batch_waits_for_its_slowest() -> None:
    limits = Limits(policy="static", max_num_seqs=2, kv_blocks=100)
    steps = served(limits, [Job(0, 4, 1), Job(0, 4, 5), Job(0, 4, 1)])
    assert [s.worked for s in steps] == [[0, 1], [1], [1], [1], [1], [2]]
    continuous = served(limits.model_copy(update={"policy": "continuous"}), [Job(0, 4, 1), Job(0, 4, 5), Job(0, 4, 1)])
    assert len(continuous) == 5


def test_a_cancelled_request_leaves_its_blocks() -> None:
    scheduler = Scheduler(Limits(kv_blocks=10, block_size=4))
    scheduler.submit(1, 8, 4)
    scheduler.submit(2, 8, 4)
    scheduler.step()
    assert scheduler.kv_blocks == 4
    scheduler.cancel(1)
    assert scheduler.kv_blocks == 2
    scheduler.cancel(2)
    assert (scheduler.empty, scheduler.kv_blocks) == (True, 0)


def test_an_empty_server_does_nothing() -> None:
    idle = Scheduler(Limits(kv_blocks=1))
    assert (idle.step().batch, idle.calm_steps(), idle.empty) == (0, 0, True)


def test_limits_that_would_starve_somebody_are_refused() -> None:
    with pytest.raises(ValidationError, match="token_budget"):
        Limits(kv_blocks=10, max_num_seqs=8, token_budget=4)
    with pytest.raises(ValidationError, match="kv_blocks"):
        Limits(policy="slots", kv_blocks=3, max_num_seqs=4)
    with pytest.raises(InputError, match="is none"):
        Scheduler(Limits(kv_blocks=1)).submit(0, 0, 1)


def test_decode_is_taken_in_one_go_until_something_happens() -> None:
    # 3 prompts of 4 tokens, 24 blocks of 4: after the prompts 3 blocks are held, 21 are free. Nobody ends before step
    # 40, but blocks last only for 7 rounds of 3 x 4 tokens, and the next token of each needs a block: 28 steps.
    scheduler = Scheduler(Limits(kv_blocks=24, block_size=4, max_num_seqs=3))
    for i in range(3):
        scheduler.submit(i, 4, 41)
    assert scheduler.calm_steps() == 0  # prompts come first
    scheduler.step()
    assert (scheduler.kv_blocks, scheduler.calm_steps()) == (3, 28)
    assert scheduler.jump(28).preempted == []
    assert (scheduler.kv_blocks, scheduler.calm_steps()) == (24, 0)
    assert scheduler.step().preempted == [2]


JOBS = st.lists(st.builds(Job, st.integers(0, 12), st.integers(1, 24), st.integers(1, 14)), min_size=1, max_size=10)


@st.composite
def limits_for(draw: st.DrawFn, policy: Policy, *, chunked: bool = True) -> Limits:
    """Limits in which every job of JOBS fits: 24 + 14 - 1 = 37 tokens are 10 blocks of 4."""
    seqs = draw(st.integers(1, 5))
    blocks = draw(st.integers(10, 24)) * (seqs if policy == "slots" else 1)
    budget = draw(st.none() | st.integers(seqs, 20)) if chunked else None
    return Limits(policy=policy, max_num_seqs=seqs, kv_blocks=blocks, block_size=4, token_budget=budget)


@settings(max_examples=60)
@given(data=st.data(), jobs=JOBS, policy=st.sampled_from(POLICIES))
def test_nobody_is_lost_and_the_cache_never_overflows(data: st.DataObject, jobs: list[Job], policy: Policy) -> None:
    steps = served(data.draw(limits_for(policy)), jobs)  # which checks the books after every step
    assert tokens_of(steps) == {i: j.output for i, j in enumerate(jobs)}  # the preempted ones too, and none twice
    assert Counter(i for s in steps for i in s.first) == Counter(range(len(jobs)))


@settings(max_examples=60)
@given(data=st.data(), jobs=JOBS, policy=st.sampled_from(POLICIES))
def test_who_comes_first_starts_first(data: st.DataObject, jobs: list[Job], policy: Policy) -> None:
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrives, i))
    steps = served(data.draw(limits_for(policy)), jobs)
    assert list(dict.fromkeys(i for s in steps for i in s.worked)) == order
    place = {request: n for n, request in enumerate(order)}
    for s in steps:  # the older stands before the younger in every step
        assert s.worked == sorted(s.worked, key=place.__getitem__)


@settings(max_examples=100)
@given(data=st.data(), jobs=JOBS, policy=st.sampled_from(POLICIES))
def test_a_jump_is_as_many_steps(data: st.DataObject, jobs: list[Job], policy: Policy) -> None:
    limits = data.draw(limits_for(policy))
    one_by_one, jumping = Scheduler(limits), Scheduler(limits)
    ahead = sorted((job.arrives, i) for i, job in enumerate(jobs))
    t = 0
    while ahead or not jumping.empty:
        while ahead and ahead[0][0] <= t:
            _, i = ahead.pop(0)
            for scheduler in (one_by_one, jumping):
                scheduler.submit(i, jobs[i].prompt, jobs[i].output)
        calm = jumping.calm_steps()
        steps = data.draw(st.integers(1, min(calm, ahead[0][0] - t if ahead else calm))) if calm else 1
        taken = [one_by_one.step() for _ in range(steps)]
        assert (jumping.jump(steps) if calm else jumping.step()) == taken[-1]
        assert (jumping.running, jumping.waiting) == (one_by_one.running, one_by_one.waiting)
        assert jumping.kv_blocks == one_by_one.kv_blocks
        if calm:  # all of them alike: the same requests, a token each, nobody out before the last
            assert all((s.worked, s.produced) == (taken[0].worked, taken[0].worked) for s in taken)
            assert not any(s.prefill_tokens or s.preempted or s.first for s in taken)
            assert not any(s.finished for s in taken[:-1])
        t += steps


@settings(max_examples=80)
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
