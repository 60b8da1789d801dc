"""Published layouts are recognised as they are; what is broken is named and counted, and nothing is half taken.

First lines as published: AzurePublicDataset data/AzureLLMInferenceTrace_conv.csv, Mooncake FAST25-release/README.md,
BurstGPT README (schema) and data/BurstGPT_3.csv.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.traffic import summarise
from services.traffic_layouts import by_hand
from services.traffic_log import columns_of, read_log

AZURE = b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51.2224670,879,55
"""
MOONCAKE = b"""{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2353, 2354]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2366]}
"""  # noqa: E501
BURSTGPT = b"""Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,API log
"""


def own(*rows: str, head: str = "timestamp,input_tokens,output_tokens") -> bytes:
    return "\n".join([head, *rows]).encode()


def at(log) -> list[float]:
    return [round(t, 6) for t in log.requests.at_s]


def test_the_azure_trace() -> None:
    log = read_log("azure.csv", AZURE)
    assert log.layout == "Azure LLM inference trace"
    assert list(log.requests.input_tokens) == [374, 396, 879]
    assert at(log) == [0, 4.314579, 4.541877]
    assert log.requests.begin == datetime(2023, 11, 16, 18, 15, 46, 680590, tzinfo=UTC)
    assert log.findings == ("Times state no zone: they are read as UTC.",)


def test_the_azure_trace_of_2024_states_its_zone() -> None:
    rows = ("2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-10 00:00:00.017335+00:00,2399,6")
    log = read_log("code.csv", own(*rows, head="TIMESTAMP,ContextTokens,GeneratedTokens"))
    assert (log.findings, at(log)) == ((), [0, 0.007405])


def test_the_mooncake_trace_with_its_shared_blocks() -> None:
    log = read_log("conversation_trace.jsonl", MOONCAKE)
    assert (log.layout, at(log)) == ("Mooncake trace", [0, 3.053])
    # Twelve common blocks of 512 tokens.
    assert list(log.requests.seen_tokens or ()) == [0, 6144]
    assert log.requests.begin is None


def test_the_burstgpt_trace_whose_failures_have_no_answer() -> None:
    log = read_log("BurstGPT_1.csv", BURSTGPT)
    assert (log.layout, at(log), log.requests.clock_s) == ("BurstGPT trace", [0, 40, 113], 5)
    assert summarise(log.requests).unanswered == 1


def test_the_later_burstgpt_trace_has_sessions_and_the_time_taken() -> None:
    head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
    rows = ("19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log", "19440161.0,,2,ChatGPT,36,29,65,API log")
    r = read_log("BurstGPT_3.csv", own(*rows, head=head)).requests
    assert (list(r.at_s or ()), list(r.took_s or ()), list(r.session or ())) == ([0, 51], [43, 2], [0, -1])


def test_sharegpt_has_texts_only_so_lengths_are_estimates() -> None:
    turns = [("human", "a" * 40), ("gpt", "b" * 80), ("human", "c" * 9), ("gpt", "d" * 4)]
    content = json.dumps([
        {"id": "x_0", "conversations": [{"from": who, "value": text} for who, text in turns]},
        {"id": "y", "conversations": [{"from": "gpt", "value": "an answer to nothing"}]},
    ]).encode()  # fmt: skip
    log = read_log("sharegpt.json", content)
    # 40 letters are 10 tokens, 80 are 20, 9 are 3; the second prompt is the whole conversation before it.
    assert list(log.requests.input_tokens) == [10, 33]
    assert list(log.requests.output_tokens) == [20, 1]
    assert list(log.requests.seen_tokens or ()) == [0, 30]
    assert log.estimated and log.requests.at_s is None
    assert "no tokenizer was asked" in log.findings[0]
    assert "aaaa" not in repr(log)


def test_own_columns_with_latency_session_and_cache() -> None:
    head = "timestamp,input_tokens,output_tokens,latency_s,session_id,cached_tokens,prompt"
    rows = (
        '2026-11-02T10:00:00+01:00,100,20,1.5,alice@example.org,,"a, secret"',
        '2026-11-02T09:00:02Z,100,20,,alice@example.org,64,"two\nlines"',
    )
    log = read_log("own.csv", own(*rows, head=head))
    # Zones may differ as long as each row states its own.
    assert at(log) == [0, 2]
    assert log.findings == (
        "Times state 2 zones (1 in UTC+01:00, 1 in UTC): each row counts at the moment that it states.",
    )
    assert list(log.requests.session or ()) == [0, 0]
    assert log.requests.took_s and log.requests.took_s[0] == 1.5 and math.isnan(log.requests.took_s[1])
    assert list(log.requests.seen_tokens or ()) == [0, 64]
    assert "alice" not in repr(log) and "secret" not in repr(log)


def test_a_latency_in_milliseconds_is_read_by_its_name() -> None:
    log = read_log("own.csv", own("1700000000,100,20,1500", head="timestamp,input_tokens,output_tokens,latency_ms"))
    assert list(log.requests.took_s or ()) == [1.5]


def test_a_truth_value_is_no_number_of_tokens() -> None:
    rows = b'{"timestamp": 1700000000, "input_tokens": %s, "output_tokens": 5}\n'
    with pytest.raises(InputError, match=r"1 row whose tokens are no whole number \(first: line 2\)"):
        read_log("own.jsonl", rows % b"4" + rows % b"true")


def test_columns_named_by_hand() -> None:
    content = b"when;who;in;out\n1700000000500;a;10;5\n1700000001500;b;12;6\n"
    with pytest.raises(InputError, match=r"has the columns when, who, in, out.*Name the columns for time, input"):
        read_log("x.csv", content)
    columns = columns_of("x.csv", content)
    layout = by_hand({"time": "when", "input": "in", "output": "out", "session": "who"}, "auto", columns)
    log = read_log("x.csv", content, layout)
    assert (at(log), list(log.requests.session or ())) == ([0, 1], [0, 1])
    with pytest.raises(InputError, match="Did you mean 'when'"):
        by_hand({"time": "wen", "input": "in", "output": "out"}, "s", columns)
    with pytest.raises(InputError, match="no column is named for output"):
        by_hand({"time": "when", "input": "in"}, "s", columns)


@pytest.mark.parametrize("per_second", [1, 10**3, 10**6, 10**9])
def test_seconds_and_milliseconds_since_1970_are_told_by_their_size(per_second: int) -> None:
    log = read_log("x.csv", own(f"{1_700_000_000 * per_second},10,5", f"{1_700_000_002 * per_second},10,5"))
    assert at(log) == [0, 2]
    assert log.requests.begin == datetime.fromtimestamp(1_700_000_000, UTC)


def test_a_clock_of_its_own_needs_a_unit() -> None:
    with pytest.raises(InputError, match=r"nothing tells seconds from milliseconds.*State the unit"):
        read_log("x.csv", own("10,10,5"))
    assert at(read_log("x.csv", own("0,10,5", "2.5,10,5", head="t_s,input_tokens,output_tokens"))) == [0, 2.5]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        # Two kinds of clock in one file: nobody can tell which is right, so nothing is left out.
        (("1700000000,1,1", "1700000001000,1,1"), r"1 row whose time counts in another unit .*\(first: line 3\)"),
        (("2026-01-01T00:00:00Z,1,1", "2026-01-01T00:00:01,1,1"), r"1 row whose time states its zone otherwise"),
    ],
)
def test_mixed_clocks_are_refused_even_without_the_broken_rows(rows: tuple[str, ...], sentence: str) -> None:
    for leave_out in (False, True):
        with pytest.raises(InputError, match=sentence):
            read_log("x.csv", own(*rows), leave_out=leave_out)


BROKEN = own(
    "2026-01-01T00:00:00Z,10,5",
    "2026-01-01T00:00:01Z,-3,5",
    "yesterday,10,5",
    "2026-01-01T00:00:02Z,10",
    '2026-01-01T00:00:03Z,"10"x,5',
    "2026-01-01T00:00:04Z,ten,5",
    "2026-01-01T00:00:05Z,-1,5",
    "",
    "2026-01-01T00:00:06Z,12.0,5",
)


def test_every_fault_is_named_with_its_count_and_first_line_and_nothing_is_taken() -> None:
    with pytest.raises(InputError) as told:
        read_log("x.csv", BROKEN)
    said = str(told.value)
    for fault in ("2 rows with negative tokens (first: line 3)", "1 row without a readable time (first: line 4)",
                  "1 line without 3 cells (first: line 5)", "1 broken line (first: line 6)",
                  "1 row whose tokens are no whole number (first: line 7)", "2 rows are sound"):  # fmt: skip
        assert fault in said
    assert said.endswith("nothing was taken.")


def test_broken_rows_may_be_left_out_and_stay_counted() -> None:
    log = read_log("x.csv", BROKEN, leave_out=True)
    assert (at(log), list(log.requests.input_tokens), len(log.left_out)) == ([0, 6], [10, 12], 5)


def test_broken_json_lines_and_cells_that_are_no_numbers() -> None:
    good = {"timestamp": "2026-01-01T00:00:00Z", "prompt_tokens": 10, "completion_tokens": 5}
    lines = [json.dumps(good), "{broken", "[1]", json.dumps(good | {"prompt_tokens": None}),
             json.dumps(good | {"prompt_tokens": True}), json.dumps(good | {"completion_tokens": 1e300})]  # fmt: skip
    with pytest.raises(InputError, match=r"2 lines that are no JSON object \(first: line 2\); 3 rows whose tokens"):
        read_log("x.jsonl", "\n".join(lines).encode())
    log = read_log("x.jsonl", "\n".join(lines).encode(), leave_out=True)
    assert log.layout == "request log with OpenAI's usage fields" and len(log.requests.input_tokens) == 1


def test_an_end_before_its_begin_is_a_fault() -> None:
    head = "timestamp,input_tokens,output_tokens,end"
    content = own("2026-01-01T00:00:05Z,1,1,2026-01-01T00:00:04Z", "2026-01-01T00:00:06Z,1,1,2026-01-01T00:00:09Z",
                  head=head)  # fmt: skip
    with pytest.raises(InputError, match=r"1 row that ends before it begins \(first: line 2\)"):
        read_log("x.csv", content)
    log = read_log("x.csv", content, leave_out=True)
    assert list(log.requests.took_s or ()) == [3.0]


@pytest.mark.parametrize("content", [b"", b"\n\n", own(), b"{broken", b"[]", b"[{}]", b"[1, 2", b"\xff\xfe\x00"])
def test_what_holds_no_requests_is_one_sentence(content: bytes) -> None:
    with pytest.raises(InputError) as told:
        read_log("x", content)
    assert str(told.value).startswith("x: ") and "\n" not in str(told.value)


def test_one_request_is_a_log() -> None:
    log = read_log("x.csv", own("2026-01-01T00:00:00Z,10,5"))
    assert at(log) == [0]


def test_rows_out_of_order_are_sorted_and_a_rate_beyond_belief_is_doubted() -> None:
    log = read_log("x.csv", own("3,30,5", "1,10,5", "2,20,5", head="t_s,input_tokens,output_tokens"))
    assert list(log.requests.input_tokens) == [10, 20, 30]
    assert log.findings == ("Rows are not in the order of time (1 times backwards): they were sorted.",)
    fast = own(*(f"{i / 10_000},1,1" for i in range(50)), head="t_s,input_tokens,output_tokens")
    assert "are the times really in seconds?" in read_log("x.csv", fast).findings[0]


@settings(max_examples=60)
@given(st.lists(st.one_of(st.sampled_from(["1,2,3", "2,3,4", "x,1,1", "1,-1,1", "1,1", '"', "1,1.5,2", "nan,1,1"]),
                          st.text(alphabet='12,."\n -x', max_size=12)), max_size=12))  # fmt: skip
def test_every_row_is_taken_or_counted_or_the_log_is_refused(rows: list[str]) -> None:
    content = own(*rows, head="t_s,input_tokens,output_tokens")
    try:
        log = read_log("x.csv", content, leave_out=True)
    except InputError:
        return
    r = log.requests
    assert r.at_s and len(r.at_s) == len(r.input_tokens) == len(r.output_tokens) > 0
    assert min(r.input_tokens) >= 0 and r.at_s[0] == 0 and list(r.at_s) == sorted(r.at_s)
    if not log.left_out:
        assert read_log("x.csv", content).requests == r


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ('TIMESTAMP,"ContextTokens"x,GeneratedTokens', r"x\.csv, line 1: its first line cannot be read"),
        ('TIMESTAMP,"ContextTokens,GeneratedTokens', r"x\.csv, line 1: its first line cannot be read"),
        (f"{'a' * 200_000},b", "none of the known layouts"),
    ],
    ids=["text after a quote", "open quote", "a name of 200,000 letters"],
)
def test_a_first_line_that_cannot_be_read_is_one_sentence(head: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_log("x.csv", f"{head}\n2026-11-01 10:00:00,1,1\n".encode())


def test_a_number_of_thousands_of_digits_is_no_json_object() -> None:
    lines = [f'{{"timestamp":{"1" * 5000},"input_length":1,"output_length":1}}',
             '{"timestamp":5,"input_length":1,"output_length":1}']  # fmt: skip
    with pytest.raises(InputError, match=r"1 line that is no JSON object \(first: line 1\); 1 row is sound"):
        read_log("x.jsonl", "\n".join(lines).encode())
