"""Queueing in virtual time: worked examples, the textbook's one server, and what must hold whatever arrives."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.batching import POLICIES, Limits, Policy, Scheduler
from planner.errors import InputError
from planner.queue_load import Lengths, Load, Process, Source, TraceRow
from planner.queue_result import Simulation
from planner.queue_theory import batch_means, mean_waiting_s, simulated_waiting
from planner.queueing import simulate
from planner.step_time import StepTime

ONE = Lengths(input_tokens=1, output_tokens=1)
ONE_SLOT = Limits(max_num_seqs=1, kv_blocks=10)
CHAT = Lengths(input_tokens=300, output_tokens=100, shape="lognormal", context_tokens=2048)
SERVER = StepTime(base_s=0.015, per_request_s=0.0004, prefill_s_per_token=2e-5)


def rows(*requests: tuple[float, int, int]) -> Load:
    return Load(process="trace", trace=tuple(TraceRow(at_s=a, input_tokens=i, output_tokens=o) for a, i, o in requests))


def test_the_second_waits_for_the_only_slot_or_joins_at_the_next_step() -> None:
    # Steps of 1 s. One slot: the first answers from 0 to 3 s, so the second, there since 0.5 s, starts at 3 and has its
    # tokens at 4 and 5. Two slots: it starts with the step at 1 s and has them at 2 and 3.
    load, step = rows((0.0, 1, 3), (0.5, 1, 2)), StepTime(base_s=1.0)
    _, second = simulate(load, ONE_SLOT, step).served
    assert (second.waiting_s, second.ttft_s, second.e2e_s) == (2.5, 3.5, 4.5)
    run = simulate(load, Limits(max_num_seqs=2, kv_blocks=10), step)
    assert (run.served[1].waiting_s, run.served[1].ttft_s, run.served[1].e2e_s) == (0.5, 1.5, 2.5)
    assert run.served[1].user_tok_s == 1.0
    # Both within 1.5 s to the first token; at most 1 tok/s for whoever has a second token.
    assert run.summary(ttft_s=1.5, user_tok_s=1.0).goodput == 1.0
    assert run.summary(ttft_s=1.2, user_tok_s=1.0).goodput == 0.5
    assert run.summary(ttft_s=1.5, user_tok_s=1.1).goodput == 0.0


@pytest.mark.parametrize("seed", range(1, 11))
def test_one_server_waits_as_long_as_the_textbook_says(seed: int) -> None:
    utilisation = 0.3 + 0.6 * (seed - 1) / 9  # ten seeds from 0.3 to 0.9; perf/queueing.py crosses all with all
    for exponential, cv in ((True, 1.0), (False, 0.0)):
        found = simulated_waiting(utilisation, exponential=exponential, seed=seed)
        assert found.low < mean_waiting_s(utilisation, 1.0, cv) < found.high
        assert found.mean == pytest.approx(mean_waiting_s(utilisation, 1.0, cv), rel=0.35)  # and it is not far off


def test_theory_by_hand() -> None:
    # Utilisation 0.75 and 0.25 s: M/D/1 0.75 x 0.25 / (2 x 0.25) = 0.375 s, M/M/1 twice that.
    assert mean_waiting_s(3, 0.25, 0.0) == pytest.approx(0.375)
    assert mean_waiting_s(3, 0.25, 1.0) == pytest.approx(0.75)
    with pytest.raises(InputError, match="grows without end"):
        mean_waiting_s(4, 0.25, 0.0)
    # Batches of one value: 0, 1, ... 9 have mean 4.5 and variance 55/6; 4.781 x sqrt(55/60).
    found = batch_means(list(range(10)))
    assert (found.mean, found.high) == (4.5, pytest.approx(4.5 + 4.781 * (55 / 60) ** 0.5))
    with pytest.raises(InputError, match="do not make 10 batches"):
        batch_means([1.0] * 9)


def demonstration(load: Load, requests: int = 4000) -> Simulation:
    """The case's demonstration: one server, 0.25 s a request, so 4 requests per second at most."""
    return simulate(load, ONE_SLOT, StepTime(base_s=0.25), requests=requests, seed=1)


def test_overload_shows_in_an_open_loop_only() -> None:
    # Printed by the case (its section 5): open 3/s mean 0.64 s, p99 2.26 s; open 4.5/s 57.43 s and 114.55 s; closed
    # with 4 users 1.00 s and 1.00 s. For 5/s the queue gains (0.25 - 0.2) s a request: 100 s on average over 4,000.
    def e2e(load: Load):
        found = demonstration(load).summary().e2e_s
        assert found is not None
        return found

    calm, over, far = (e2e(Load(process="poisson", rate_per_s=rate, lengths=ONE)) for rate in (3, 4.5, 5))
    assert calm.mean == pytest.approx(0.64, rel=0.1)
    assert calm.p99 == pytest.approx(2.26, rel=0.25)
    assert over.mean == pytest.approx(57, rel=0.35)  # the random walk of 4,000 arrivals moves it by some 14 s
    assert over.p99 == pytest.approx(2 * over.mean, rel=0.1)
    assert far.mean == pytest.approx(100, rel=0.2)
    four, sixteen = (e2e(Load(process="closed", users=users, lengths=ONE)) for users in (4, 16))
    assert (four.mean, four.p99) == (pytest.approx(1.0, rel=0.01), 1.0)
    assert (sixteen.mean, sixteen.p99) == (pytest.approx(4.0, rel=0.01), 4.0)


def test_a_longer_overload_waits_longer_and_a_closed_loop_does_not() -> None:
    def mean_e2e(load: Load, requests: int) -> float:
        return fmean(s.e2e_s for s in demonstration(load, requests).served)

    open_loop = Load(process="poisson", rate_per_s=5, lengths=ONE)
    assert mean_e2e(open_loop, 4000) > 1.8 * mean_e2e(open_loop, 2000)
    closed = Load(process="closed", users=4, lengths=ONE)
    assert mean_e2e(closed, 4000) == pytest.approx(mean_e2e(closed, 2000), rel=0.01)


def test_users_who_pause_ask_as_often_as_they_say() -> None:
    # Everybody has a slot: an answer takes 100 steps of 10 ms; with 9 s of pauses 20 users make 2 requests a second.
    load = Load(process="closed", users=20, think_s=9, lengths=Lengths(input_tokens=1, output_tokens=100))
    run = simulate(load, Limits(max_num_seqs=20, kv_blocks=1000), StepTime(base_s=0.01), duration_s=1000)
    assert len(run.served) / 1000 == pytest.approx(2.0, rel=0.05)
    assert run.request_s / 1000 == pytest.approx(2.0, rel=0.05)  # Little: 2 a second, 1 s each


def test_the_more_bursts_the_longer_the_wait() -> None:
    def wait(process: Process) -> float:
        load = Load(process=process, rate_per_s=3, burstiness=0.25, lengths=ONE)
        return fmean(s.waiting_s for s in demonstration(load, 3000).served)

    assert wait("constant") == 0.0
    assert 0.0 < wait("poisson") < wait("gamma")


def test_lengths_have_their_means_and_stay_within_the_context() -> None:
    def drawn(lengths: Lengths, n: int = 5000) -> list[tuple[int, int]]:
        source = Source(Load(process="constant", rate_per_s=1, lengths=lengths), 7, n)
        return [source.take()[1:] for _ in range(n)]

    for shape in ("fixed", "geometric", "lognormal"):
        found = drawn(Lengths(input_tokens=400, output_tokens=100, shape=shape))
        assert fmean(p for p, _ in found) == pytest.approx(400, rel=0.06)
        assert fmean(o for _, o in found) == pytest.approx(100, rel=0.06)
    cut = drawn(Lengths(input_tokens=400, output_tokens=100, shape="lognormal", context_tokens=512))
    assert max(p + o for p, o in cut) == 512
    assert min(min(pair) for pair in cut) >= 1


def test_lengths_can_come_from_a_trace_whose_times_are_not_used() -> None:
    trace = rows((0.0, 10, 1), (1.0, 20, 2)).trace
    run = simulate(Load(process="constant", rate_per_s=1, trace=trace), ONE_SLOT, StepTime(base_s=0.1), requests=50)
    assert {(s.prompt_tokens, s.output_tokens) for s in run.served} == {(10, 1), (20, 2)}
    assert run.served[-1].arrived_s == 50.0


def test_what_cannot_be_simulated_says_why() -> None:
    poisson = Load(process="poisson", rate_per_s=1, lengths=ONE)
    with pytest.raises(InputError, match="nothing ends the arrivals"):
        simulate(poisson, ONE_SLOT, StepTime(base_s=1))
    with pytest.raises(InputError, match="a step takes no time"):
        simulate(poisson, ONE_SLOT, StepTime(), requests=3)
    with pytest.raises(InputError, match="do not fit the 160"):
        simulate(rows((0.0, 100, 100)), ONE_SLOT, StepTime(base_s=1))
    with pytest.raises(InputError, match="duration above 0"):
        simulate(poisson, ONE_SLOT, StepTime(base_s=1), duration_s=0)
    for wrong in ({"process": "closed", "rate_per_s": 1}, {"process": "poisson"}, {"process": "trace"}):
        with pytest.raises(ValidationError):
            Load.model_validate({**wrong, "lengths": ONE})
    with pytest.raises(ValidationError, match="not both"):
        Load(process="constant", rate_per_s=1, lengths=ONE, trace=rows((0.0, 1, 1)).trace)


LOADS = st.one_of(
    st.builds(Load, process=st.just("closed"), users=st.integers(1, 12), think_s=st.sampled_from([0.0, 0.5, 3.0]),
              lengths=st.just(CHAT)),
    st.builds(Load, process=st.sampled_from(["constant", "poisson", "gamma"]), rate_per_s=st.sampled_from([0.5, 2, 8]),
              burstiness=st.sampled_from([0.2, 1.0]), lengths=st.just(CHAT)),
)  # fmt: skip


@st.composite
def limits_for(draw: st.DrawFn, policy: Policy) -> Limits:
    """Limits in which a request of 2,048 tokens (128 blocks) fits; the cache may be short for all of them."""
    seqs = draw(st.integers(1, 8))
    blocks = draw(st.integers(128, 200)) * (seqs if policy == "slots" else 1)
    return Limits(policy=policy, max_num_seqs=seqs, kv_blocks=blocks, token_budget=draw(st.sampled_from([None, 256])))


@settings(max_examples=40)
@given(data=st.data(), load=LOADS, policy=st.sampled_from(POLICIES), seed=st.integers(0, 99))
def test_whatever_arrives(data: st.DataObject, load: Load, policy: Policy, seed: int) -> None:
    limits = data.draw(limits_for(policy))
    run = simulate(load, limits, SERVER, seed=seed, duration_s=20)
    # Everybody who came is served in the order of arrival, and at the end of arrivals was done, running or waiting.
    assert all(s.arrived_s <= s.started_s < s.first_token_s <= s.finished_s for s in run.served)
    assert [s.started_s for s in run.served] == sorted(s.started_s for s in run.served)
    done = sum(s.finished_s <= run.simulated_s for s in run.served)
    assert len(run.served) == done + run.left_running + run.left_waiting
    # Little's law, exactly: seconds counted by the clock are seconds counted by the requests.
    inside = sum(min(s.finished_s, run.simulated_s) - s.arrived_s for s in run.served)
    assert run.request_s == pytest.approx(inside, abs=1e-6)
    assert run.busy_s <= run.simulated_s + 1e-9
    assert 0 <= run.kv_peak_share <= 1
    assert all(0 <= look.kv_share <= 1 and look.running <= limits.max_num_seqs for look in run.timeline)
    # The same seed gives the same run, and the requests do not depend on the policy when arrivals do not.
    assert simulate(load, limits, SERVER, seed=seed, duration_s=20) == run
    if load.process != "closed":
        alone = Limits(max_num_seqs=1, kv_blocks=200)
        other = simulate(load, alone, SERVER, seed=seed, duration_s=20)
        assert [(s.arrived_s, s.prompt_tokens, s.output_tokens) for s in other.served] == [
            (s.arrived_s, s.prompt_tokens, s.output_tokens) for s in run.served
        ]


@settings(max_examples=25)
@given(data=st.data(), load=LOADS, policy=st.sampled_from(POLICIES))
def test_jumps_change_nothing(data: st.DataObject, load: Load, policy: Policy) -> None:
    limits = data.draw(limits_for(policy))
    jumped = simulate(load, limits, SERVER, duration_s=10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "calm_steps", lambda self: 0)
        stepped = simulate(load, limits, SERVER, duration_s=10)
    assert jumped == stepped


@settings(max_examples=25)
@given(seed=st.integers(0, 999), slots=st.integers(1, 6), rate=st.floats(0.2, 6))
def test_another_slot_never_makes_equal_requests_wait_longer(seed: int, slots: int, rate: float) -> None:
    # Equal lengths, and steps whose time does not grow with the batch: more servers of an M/D/c queue. Whoever comes
    # within a step starts with the next, so a step's time may be lost.
    load = Load(process="poisson", rate_per_s=rate, lengths=Lengths(input_tokens=1, output_tokens=20))

    def wait(n: int) -> float:
        run = simulate(load, Limits(max_num_seqs=n, kv_blocks=100), StepTime(base_s=0.05), seed=seed, requests=150)
        return fmean(s.waiting_s for s in run.served)

    assert wait(slots + 1) <= wait(slots) + 0.05


def test_the_summary_is_json_that_says_what_it_is() -> None:
    run = simulate(Load(process="poisson", rate_per_s=2, lengths=CHAT), Limits(max_num_seqs=8, kv_blocks=500), SERVER,
                   duration_s=60)  # fmt: skip
    told = run.summary(ttft_s=1.0, user_tok_s=20, warmup_s=10).model_dump(mode="json")
    assert told["kind"] == "simulated"
    assert told["ttft_s"]["n"] == told["requests"] == len(run.after(10))
    assert told["ttft_s"]["p50"] <= told["ttft_s"]["p95"] <= told["e2e_s"]["p99"]
    assert len(run.timeline) > 200
