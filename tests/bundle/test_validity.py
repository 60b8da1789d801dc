"""Rules about arrival times: what was merged, dropped or held back spoils what it touches, and the run says so."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bundle.records import Record, Sample, read_records, write_records
from bundle.run_data import read_run
from bundle.samples import itl_ms, merged
from bundle.summary import summarise
from bundle.validity import ALL, RULES, facts
from planner.conditions import Evidence
from planner.contract import Contract
from planner.metrics import METRICS
from tests.bundle.made import POINT, bundle, closed_loop, request


def one(found: list[Evidence], metric: str, statistic: str = "value") -> Evidence:
    return next(e for e in found if e.metric == metric and e.statistic == statistic)


def test_every_gap_that_touches_a_group_is_left_out():
    # Chunks at 0.2 0.25 0.3 0.35 0.4 s; those at 0.25 and 0.3 came in one read with the stamp of the second.
    r = request(0, 0.0, tokens=5, chunk_bound=(False, True, False, False, False))
    assert merged(r) == [False, True, True, False, False]
    assert itl_ms(r) == pytest.approx([50.0])  # 0.35 -> 0.4; the three gaps around the group are gone
    assert itl_ms(r._replace(chunk_bound=())) == pytest.approx([50.0] * 4)


def test_a_few_merged_chunks_are_counted_and_said_and_spoil_nothing(tmp_path):
    records = closed_loop()  # 10 requests of 11 chunks
    records[4] = records[4]._replace(chunk_bound=(True, *[False] * 10))
    found = summarise(bundle(tmp_path, records))
    gaps, ttft = one(found, "itl_ms", "p95"), one(found, "ttft_ms", "p95")
    assert gaps.valid and ttft.valid
    # One of 110 chunks is 0.9 %, under the limit. The steady window holds 7 of the 10 requests, so 70 gaps less two.
    assert gaps.n == 68
    assert "gaps-left-out: 2.86% of the gaps" in gaps.note
    assert "ttft-upper-bound: 14.29% of the TTFTs are upper bounds" in ttft.note


def test_first_tokens_without_a_wait_as_a_coarse_foreign_clock_has_them_have_no_dispatch_lag(tmp_path):
    found = summarise(bundle(tmp_path, closed_loop(ttft_s=0.0)))
    assert one(found, "ttft_ms", "p50").value == 0
    assert not any("dispatch-lag" in s for e in found for s in e.spoiled_by)


@pytest.mark.parametrize(
    ("records", "repeat", "rule", "spoiled", "kept"),
    [
        (closed_loop(chunk_bound=(False, True, *[False] * 9)), {}, "coalesced", "itl_ms", "output_tok_s"),
        (closed_loop(), {"loop_stalled_share": 0.1}, "loop-stalled", "output_tok_s", "started"),
        (closed_loop(), {"receive_buffer_full": 1}, "receive-buffer", "output_tok_s", "started"),
        ([*closed_loop(), request(10, 3.5, outcome="undetermined", error_kind="client", http_status=None)],
         {}, "client-limit", "error_share", "started"),
    ],
)  # fmt: skip
def test_a_client_that_did_badly_spoils_its_own_figures(tmp_path, records, repeat, rule, spoiled, kept):
    found = summarise(bundle(tmp_path, records, **repeat))
    bad = next(e for e in found if e.metric == spoiled)
    assert any(s.startswith(rule) for s in bad.spoiled_by)
    assert all(e.valid for e in found if e.metric == kept)


COUNTED = 110  # tokens of the ten requests of closed_loop()


@pytest.mark.parametrize(
    ("records", "counted", "rule"),
    [
        (closed_loop(), COUNTED, None),
        (closed_loop(), COUNTED + 5, None),  # 4 %
        (closed_loop(rounds=50), 1047, None),  # 53 are 4.8 % of the 1,100 tokens, the larger of the two
        (closed_loop(rounds=50), 1044, "usage-counter"),  # 56 are 5.1 %
        (closed_loop(), 2 * COUNTED, "usage-counter"),  # another client used the server, or usage tells half
        (closed_loop(output_tokens=9), 90, None),  # 11 chunks, 9 tokens: a parser may cut a token in two
        (closed_loop(output_tokens=8), 80, "usage-below-chunks"),
        ([*closed_loop(), request(10, 3.5, outcome="undetermined")], 5 * COUNTED, None),  # what it cost is not known
    ],
)
def test_usage_is_held_against_the_chunks_and_the_servers_own_counter(tmp_path, records, counted, rule):
    counters = ({"generation_tokens": 1000.0}, {"generation_tokens": 1000.0 + counted})
    speed = one(summarise(bundle(tmp_path, records, counters=counters)), "output_tok_s")
    fired = {s.partition(":")[0] for s in speed.spoiled_by} & {"usage-counter", "usage-below-chunks"}
    assert fired == ({rule} if rule else set())


def test_a_server_that_began_anew_gives_no_difference_of_its_counters(tmp_path):
    counters = ({"preemptions": 3.0, "prefix_hits": 10.0, "prefix_queries": 100.0},
                {"preemptions": 5.0, "prefix_hits": 20.0, "prefix_queries": 400.0})  # fmt: skip
    found = summarise(bundle(tmp_path, counters=counters, server_restarts=1))
    assert not {"preemptions", "prefix_hit"} & {e.metric for e in found}
    assert one(found, "restarts").value == 1


def test_a_client_that_only_took_in_refusals_is_not_to_blame(tmp_path):
    refused = [request(i, i * 0.01, outcome="failed") for i in range(10)]
    found = summarise(bundle(tmp_path, refused, client_cpu_share=1.0))
    assert one(found, "error_share").valid
    assert one(found, "error_share").value == 1


def fired(folder: Path, records: list[Record] | None = None, **more: object) -> set[str]:
    """The rules that spoil the time to the first token."""
    return {s.partition(":")[0] for s in one(summarise(bundle(folder, records, **more)), "ttft_ms", "p95").spoiled_by}


@pytest.mark.parametrize(
    ("asked", "came", "rules"),
    [
        (64, 72, set()),  # 8 tokens: a tokenizer counts its special ones otherwise
        (64, 73, {"prompt-length"}),
        (3596, 3667, set()),  # 71 tokens are under 2 %
        (3596, 3668, {"prompt-length"}),
    ],
)
def test_a_prompt_of_another_length_is_off_by_8_tokens_and_2_percent(tmp_path, asked, came, rules):
    assert fired(tmp_path, closed_loop(asked_prompt_tokens=asked, prompt_tokens=came)) == rules


def test_a_late_client_is_seen_in_its_slow_tail_against_what_a_user_usually_waits(tmp_path):
    # One of the seven requests of the window sent 100 ms late: p95 70 ms, 35 % of the median TTFT of 200 ms.
    once = closed_loop()
    once[4] = request(4, 1.4, dispatch_lag_s=0.1)
    assert fired(tmp_path / "once", once) == {"dispatch-lag"}
    # All 30 ms late is 18 % of a median of 170 ms, and one TTFT of 5 s does not change what is usual.
    slow = closed_loop(dispatch_lag_s=0.03)
    slow[4] = request(4, 1.4, ttft_s=5.0, dispatch_lag_s=0.03)
    assert fired(tmp_path / "slow", slow) == {"dispatch-lag"}


@pytest.mark.parametrize(("limit", "rules"), [("2", {"concurrency-not-reached"}), ("1", set())])
def test_a_server_that_may_run_the_load_at_once_has_to(tmp_path, limit, rules):
    asked = Contract(candidate={"output_length": "fixed", "max_num_seqs": limit})
    assert fired(tmp_path, contract=asked, telemetry=[Sample(0.5, "running", 1.0)]) == rules  # 2 in flight


def test_a_prefix_cache_that_helps_as_planned_spoils_nothing(tmp_path):
    counters = ({"prefix_hits": 0.0, "prefix_queries": 0.0}, {"prefix_hits": 380.0, "prefix_queries": 640.0})  # 59 %
    planned = POINT.model_copy(update={"shared_prefix": 0.6})
    assert fired(tmp_path / "planned", counters=counters, point=planned) == set()
    assert fired(tmp_path / "unasked", counters=counters) == {"prefix-cache"}


def test_of_several_client_processes_the_one_that_read_latest_is_judged(tmp_path):
    # Every third request of the odd process has 1 of 11 chunks merged: 3 % there, none in the other, 1.5 % of all.
    records = [
        r._replace(chunk_bound=(False, True, *[False] * 9)) if r.request % 6 == 1 else r
        for r in closed_loop(rounds=25)
    ]  # fmt: skip
    assert fired(tmp_path / "one", records) == set()
    assert fired(tmp_path / "two", records, shards=2) == {"coalesced"}


def test_every_rule_has_a_fact_and_every_fact_a_rule(tmp_path):
    run = read_run(bundle(tmp_path))
    (data,) = run.repeats
    known = facts(run.manifest, data.repeat, data.point, data.records, data.telemetry, data.window)
    assert {rule.fact for rule in RULES} == set(known)
    assert all(m in METRICS for rule in RULES if rule.spoils != ALL for m in rule.spoils)


@pytest.mark.parametrize(
    ("repeat", "note"),
    [
        ({"stamps_dropped": 3}, "stamps-dropped: the wall clock was set: 3 arrival stamps"),
        ({"cpu_wait_share": 0.034}, "other-load: another load on the machine: the client waited for a core 3.4%"),
    ],
)
def test_what_does_no_harm_by_itself_is_said(tmp_path, repeat, note):
    ttft = one(summarise(bundle(tmp_path, **repeat)), "ttft_ms", "p95")
    assert ttft.valid
    assert note in ttft.note


@pytest.mark.parametrize(
    ("shared", "caching", "hits", "said"),
    [
        (0.9, "on", 100.0, "prefix-cache-missed: the prefix cache served 80% of the prompt tokens less than"),
        (0.9, "off", 0.0, ""),  # as stated
        (0.9, "on", 750.0, ""),  # whole blocks, and the first of every slot misses
        (0.0, "on", 0.0, ""),
    ],
)
def test_a_common_beginning_that_the_cache_did_not_find_is_said(tmp_path, shared, caching, hits, said):
    counters = ({"prefix_hits": 50.0, "prefix_queries": 500.0}, {"prefix_hits": 50 + hits, "prefix_queries": 1500.0})
    contract = Contract(candidate={"output_length": "fixed", "prefix_caching": caching})
    point = POINT.model_copy(update={"shared_prefix": shared})
    ttft = one(summarise(bundle(tmp_path, counters=counters, contract=contract, point=point)), "ttft_ms", "p95")
    assert ttft.valid
    assert said in ttft.note
    assert bool(said) == ("prefix-cache-missed" in ttft.note)


def test_marks_survive_the_file_and_older_files_have_none(tmp_path: Path):
    marked = request(0, 0.0, chunk_bound=(True, *[False] * 10))
    path = tmp_path / "r.parquet"
    write_records(path, [marked, request(1, 0.0)])
    assert [r.chunk_bound for r in read_records(path)] == [marked.chunk_bound, ()]
    pq.write_table(pq.read_table(path).drop_columns(["chunk_bound"]), path)
    assert [r.chunk_bound for r in read_records(path)] == [(), ()]
