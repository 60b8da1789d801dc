"""A replay has the log's own times and lengths and nothing that names anyone; a proposal says what the log says."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.batching import Limits
from planner.errors import InputError
from planner.queueing import simulate
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.step_time import StepTime
from planner.traffic import Requests, summarise
from planner.traffic_in_flight import LatencyModel
from planner.traffic_proposal import propose
from planner.traffic_replay import Cut, replay, trace_csv, trace_load, trace_point

# Ten requests: slow at first, then five within four seconds, in sessions 7, 9 and none.
LOG = Requests(
    array("q", [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]), array("q", [10, 20, 30, 40, 0, 60, 70, 80, 90, 5]),
    array("d", [0, 60, 120, 180, 240, 241, 242, 243, 244, 300]), session=array("q", [7, 9, 7, -1, 9, 9, 9, 9, 7, 9]),
)  # fmt: skip
CASE = Requirements(
    peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2, input_tokens=100,
    output_tokens=500, context_tokens=4096, hardware=(Hardware(gpu="nvidia-gb10-dgx-spark"),),
    model_plans=(ModelPlan(id="B", label="30B MoE", model="Qwen/Qwen3-30B-A3B", quantization="fp8"),),
)  # fmt: skip


def test_the_whole_log_without_what_cannot_be_sent() -> None:
    rows = replay(LOG, Cut())
    assert [row.t_s for row in rows] == [0, 60, 120, 180, 241, 242, 243, 244, 300]
    # Sessions are numbered in the order in which they come: 7 is 0, 9 is 1.
    assert [row.session for row in rows] == [0, 1, 0, -1, 1, 1, 1, 0, 1]
    assert trace_csv(rows).decode().splitlines()[:3] == ["t_s,input_tokens,output_tokens,session", "0,100,10,0",
                                                         "60,200,20,1"]  # fmt: skip


def test_the_busiest_window_twice_as_fast() -> None:
    # Ten seconds at twice the rate are twenty of the log: from 241 on, four requests, their gaps halved.
    rows = replay(LOG, Cut(duration_s=10, rate_scale=2))
    assert [(row.t_s, row.input_tokens) for row in rows] == [(0, 600), (0.5, 700), (1.0, 800), (1.5, 900)]


def test_a_log_without_times_needs_a_rate() -> None:
    texts = LOG._replace(at_s=None, session=None)
    with pytest.raises(InputError, match="no times"):
        replay(texts, Cut())
    rows = replay(texts, Cut(rate_per_s=5, requests=4))
    assert len(rows) == 4
    assert trace_csv(rows).startswith(b"t_s,input_tokens,output_tokens\n0,")


def test_a_log_without_answers_has_no_replay() -> None:
    with pytest.raises(InputError, match="no request with a prompt and an answer"):
        replay(Requests(array("q", [5]), array("q", [0]), array("d", [0])), Cut())


def test_the_point_of_a_plan_states_the_file_and_the_simulator_takes_the_load() -> None:
    rows = replay(LOG, Cut())
    point = trace_point("real", "traffic.csv", rows)
    assert (point.shape, point.requests, point.input_tokens, point.output_tokens) == ("trace", 9, 600, 40)
    served = simulate(trace_load(rows), Limits(max_num_seqs=8, kv_blocks=1000, token_budget=2048),
                      StepTime(base_s=0.01, per_request_s=0.001, prefill_s_per_token=1e-5), seed=1).served  # fmt: skip
    assert sorted(s.output_tokens for s in served) == sorted(row.output_tokens for row in rows)


@given(st.lists(st.tuples(st.floats(0, 900), st.integers(0, 5000), st.integers(0, 800), st.integers(-1, 9)), min_size=1,
                max_size=50), st.integers(1, 9), st.sampled_from([None, 5.0, 60.0]), st.sampled_from([0.5, 1.0, 3.0]),
       st.sampled_from([None, 1, 7]))  # fmt: skip
def test_a_replay_is_the_same_for_the_same_seed_and_holds_only_requests_of_the_log(
    rows: list[tuple[float, int, int, int]], seed: int, duration: float | None, scale: float, most: int | None
) -> None:
    rows = sorted(rows)
    times, prompts, answers, talks = zip(*rows, strict=True)
    log = Requests(array("q", prompts), array("q", answers), array("d", (t - times[0] for t in times)),
                   session=array("q", talks))  # fmt: skip
    cut = Cut(duration_s=duration, rate_scale=scale, requests=most, seed=seed)
    if not any(a and b for a, b in zip(prompts, answers, strict=True)):
        return
    found = replay(log, cut)
    assert found == replay(log, cut)
    assert found[0].t_s == 0
    assert [r.t_s for r in found] == sorted(r.t_s for r in found)
    assert {(r.input_tokens, r.output_tokens) for r in found} <= set(zip(prompts, answers, strict=True))
    assert all(r.input_tokens and r.output_tokens for r in found)
    assert most is None or len(found) <= most
    assert duration is None or found[-1].t_s <= duration
    seen = [r.session for r in found if r.session >= 0]
    assert list(dict.fromkeys(seen)) == list(range(len(set(seen))))


def test_a_proposal_says_what_the_log_says_and_why() -> None:
    found = {p.field: p for p in propose(CASE, summarise(LOG, LatencyModel(first_s=2, tok_s=25)))}
    # p95 of 100..1000 lies at place 8.55: 900 + 0.55 x 100. The mean of the nine answers is 45.
    assert (found["input_tokens"].now, found["input_tokens"].proposed) == (100, 955)
    assert found["output_tokens"].proposed == 45
    # The largest is 1005 with its answer: four times 256.
    assert found["context_tokens"].proposed == 1024
    # 240: 2 s; 241: 4.4 s; 242: 4.8 s; 243: 5.2 s; 244: 5.6 s: at 244 the first is gone.
    assert (found["peak_users_min"].proposed, found["peak_users_max"].proposed) == (4, 4)
    # The minute from 240 on has five requests, over four in flight.
    assert found["requests_per_user_per_min"].proposed == 1.25
    assert "by the assumed latency" in found["peak_users_max"].why
    # Ten requests are too few to speak about bursts, and no prefix is known.
    assert not {"arrival", "shared_prefix_share"} & set(found)


def test_what_a_log_of_lengths_alone_does_not_say_is_not_proposed() -> None:
    fields = {p.field for p in propose(CASE, summarise(LOG._replace(at_s=None)))}
    assert fields == {"input_tokens", "output_tokens", "context_tokens"}


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 3000)), min_size=1, max_size=40))
def test_everything_proposed_together_are_requirements(tokens: list[tuple[int, int]]) -> None:
    log = Requests(array("q", (a for a, _ in tokens)), array("q", (b for _, b in tokens)),
                   array("d", range(len(tokens))))  # fmt: skip
    found = propose(CASE, summarise(log, LatencyModel(first_s=2, tok_s=25)))
    Requirements.model_validate(CASE.model_dump() | {p.field: p.proposed for p in found})
