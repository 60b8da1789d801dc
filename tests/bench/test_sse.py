"""The regression list of stream parsers: each of these was seen to break a public client."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sse import Answer, read_answer
from planner.poc import DIALECTS

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def usage(completion: int, prompt: int = 7) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


ROLE = chunk({"role": "assistant", "content": ""})
FINISH = chunk({}, "stop")
DONE = b"data: [DONE]\n\n"


def usage_chunk(completion: int) -> bytes:
    return b"data: " + json.dumps({"choices": [], "usage": usage(completion)}).encode() + b"\n\n"


def answer_of(*reads: bytes) -> Answer:
    """Read n of the stream comes at n + 1 seconds."""
    return read_answer((float(i + 1), data) for i, data in enumerate(reads))


def times(answer: Answer) -> list[float]:
    return [c.t for c in answer.chunks]


def body_of(name: str) -> list[bytes]:
    """The body pieces of a recorded HTTP answer, one per HTTP chunk."""
    pieces: list[bytes] = []

    class Take:
        def on_body(self, data: bytes) -> None:
            pieces.append(data)

    httptools.HttpResponseParser(Take()).feed_data((GOLDEN / name).read_bytes())
    return pieces


def test_the_role_chunk_is_not_the_first_token() -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), chunk({"content": "b"}, "stop"), usage_chunk(2), DONE)
    assert times(answer) == [2.0, 3.0]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_a_token_that_the_reader_does_not_see(field: str) -> None:
    answer = answer_of(ROLE, chunk({field: "hm"}), chunk({"content": "a"}), FINISH, usage_chunk(2), DONE)
    assert [(c.t, c.visible) for c in answer.chunks] == [(2.0, False), (3.0, True)]


@pytest.mark.parametrize("beat", [b"data:\n\n", b"data: \r\n\r\n", b": ping\n\n"])
def test_a_heartbeat_without_data_says_nothing(beat: bytes) -> None:
    answer = answer_of(ROLE, beat, chunk({"content": "a"}), beat, FINISH, usage_chunk(1), DONE)
    assert (times(answer), answer.malformed) == ([3.0], "")


def test_an_error_that_gives_no_reason_is_no_heartbeat() -> None:
    answer = answer_of(chunk({"content": "a"}), b"event: error\ndata:\n\n", FINISH, usage_chunk(1), DONE)
    assert (answer.error, answer.malformed) == ("", "an event is not a JSON object: ''")


def test_an_event_without_data_leaves_no_name_behind() -> None:
    answer = answer_of(b"event: error\n\n", chunk({"content": "a"}), FINISH, usage_chunk(1), DONE)
    assert (answer.error, times(answer)) == ("", [2.0])


@pytest.mark.parametrize("said", [-1, 2**31, 5 * 10**9, 6.0, "6", True, None])
def test_a_count_that_no_answer_can_have_is_none(said: object) -> None:
    told = b"data: " + json.dumps({"choices": [], "usage": {"completion_tokens": said}}).encode() + b"\n\n"
    assert answer_of(chunk({"content": "a"}), FINISH, told, DONE).output_tokens is None


def test_half_a_surrogate_pair_which_json_can_spell_and_no_file_can_hold_is_replaced() -> None:
    half = rb'data: {"choices": [{"delta": {"content": "a\ud800"}, "finish_reason": "stop\udfff"}]}' + b"\n\n"
    answer = answer_of(half, rb'data: {"error": {"message": "bad \ud83d here"}}' + b"\n\n", DONE)
    assert (answer.text, answer.finish_reason, answer.error) == ("a?", "stop?", "bad ? here")


def test_a_tool_call_is_a_token() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}
    assert times(answer_of(ROLE, chunk(call), FINISH, DONE)) == [2.0]


def test_events_may_end_in_cr_lf() -> None:
    stream = (ROLE + chunk({"content": "a"}) + FINISH + usage_chunk(1) + DONE).replace(b"\n", b"\r\n")
    answer = answer_of(stream)
    assert (len(answer.chunks), answer.output_tokens, answer.done, answer.malformed) == (1, 1, True, "")


def test_cr_lf_may_be_split_over_two_reads() -> None:
    answer = answer_of(b'data: {"choices":[{"delta":{"content":"a"}}]}\r\n\r', b"\ndata: [DONE]\r\n\r\n")
    assert times(answer) == [2.0]
    assert answer.done


def test_an_error_object_in_mid_stream_is_an_error() -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), b'data: {"error": {"message": "engine dead"}}\n\n', DONE)
    assert answer.error == "engine dead"
    assert times(answer) == [2.0]


def test_an_error_event_of_llama_cpp_is_an_error() -> None:
    assert answer_of(ROLE, b'error: {"code": 500, "message": "slot unavailable"}\n\n').error == "slot unavailable"


def test_the_usage_chunk_has_no_choices_and_is_no_token() -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), FINISH, usage_chunk(1), DONE)
    assert (answer.prompt_tokens, answer.output_tokens, times(answer)) == (7, 1, [2.0])


def test_usage_may_stand_in_the_last_content_chunk() -> None:
    last = chunk({"content": "b"}, "length", usage=usage(2))
    answer = answer_of(ROLE, chunk({"content": "a"}), last, DONE)
    assert [(c.t, c.tokens) for c in answer.chunks] == [(2.0, 1), (3.0, 1)]
    assert answer.output_tokens == 2


def test_the_last_usage_counts_and_is_never_a_sum() -> None:
    answer = answer_of(*(chunk({"content": "a"}, usage=usage(n)) for n in (1, 2, 3)), FINISH, usage_chunk(3), DONE)
    assert answer.output_tokens == 3


@pytest.mark.parametrize("delta", [{}, {"content": ""}, {"content": None}, {"role": "assistant", "content": ""}])
def test_an_empty_finish_chunk_is_not_a_token(delta: dict[str, Any]) -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), chunk(delta, "stop"), usage_chunk(1), DONE)
    assert times(answer) == [2.0]
    assert answer.finish_reason == "stop"


def test_an_empty_finish_chunk_is_a_token_when_usage_counts_one_more() -> None:
    # vLLM puts the finish reason on the last token, and that token's bytes need not make a character.
    answer = answer_of(ROLE, chunk({"content": "a"}), chunk({"content": ""}, "length"), usage_chunk(2), DONE)
    assert [(c.t, c.tokens) for c in answer.chunks] == [(2.0, 1), (3.0, 1)]


def test_data_needs_no_space_after_the_colon() -> None:
    answer = answer_of(b'data:{"choices":[{"delta":{"content":"a"}}]}\n\n', b"data:[DONE]\n\n")
    assert times(answer) == [1.0]
    assert answer.done


def test_comment_lines_are_skipped() -> None:
    answer = answer_of(b": ping\n\n", b": ping\n" + chunk({"content": "a"}), DONE)
    assert times(answer) == [2.0]
    assert answer.malformed == ""


def test_a_character_may_be_split_over_two_reads() -> None:
    whole = chunk({"content": "語"})
    cut = whole.index("語".encode()) + 1
    answer = answer_of(whole[:cut], whole[cut:], DONE)
    assert times(answer) == [2.0]  # the read that holds the event's last byte
    assert (answer.text, answer.malformed) == ("語", "")


def test_several_tokens_in_a_chunk_are_counted_by_continuous_usage() -> None:
    answer = answer_of(
        chunk({"role": "assistant", "content": ""}, usage=usage(0)), chunk({"content": "a b"}, usage=usage(2)),
        chunk({"content": " c"}, usage=usage(3)), chunk({"content": " d e f"}, "length", usage=usage(6)), DONE,
    )  # fmt: skip
    assert [c.tokens for c in answer.chunks] == [2, 1, 3]


def test_several_tokens_in_a_chunk_stay_unknown_without_continuous_usage() -> None:
    full = chunk({}, "length")
    answer = answer_of(ROLE, chunk({"content": "a b"}), chunk({"content": " c"}), full, usage_chunk(3), DONE)
    assert [c.tokens for c in answer.chunks] == [0, 0]


def test_role_and_first_token_may_come_in_one_read() -> None:
    answer = answer_of(ROLE + chunk({"content": "a"}), chunk({"content": "b"}, "stop"), DONE)
    assert times(answer) == [1.0, 2.0]


def test_role_and_first_token_may_come_in_one_chunk() -> None:
    assert times(answer_of(chunk({"role": "assistant", "content": "a"}), FINISH, DONE)) == [1.0]


def test_empty_content_without_a_role_is_a_token() -> None:
    answer = answer_of(ROLE, chunk({"content": ""}), chunk({"content": "語"}), FINISH, usage_chunk(2), DONE)
    assert [(c.t, c.visible) for c in answer.chunks] == [(2.0, False), (3.0, True)]


def test_the_trailing_usage_chunk_does_not_move_the_last_token() -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), FINISH, usage_chunk(1), DONE)
    assert answer.chunks[-1].t == 2.0


def test_a_stream_that_breaks_off_is_not_whole() -> None:
    assert not answer_of(ROLE, chunk({"content": "a"})).whole


def test_something_that_is_not_json_is_named() -> None:
    assert "<html>" in answer_of(b"data: <html>\n\n").malformed


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"choices": [], "usage": ' + b"9" * 5000 + b"}"])
def test_json_that_no_engine_writes_is_named_and_ends_nothing(data: bytes) -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), b"data: " + data + b"\n\n", DONE)
    assert times(answer) == [2.0]
    assert answer.malformed.startswith("an event is not a JSON object: ")


def test_white_space_around_the_json_is_allowed() -> None:
    answer = answer_of(b'data:  {"choices":[{"delta":{"content":"a"}}]} \n\n', DONE)
    assert times(answer) == [1.0]
    assert answer.malformed == ""


def test_a_last_event_without_a_blank_line_counts() -> None:
    assert answer_of(ROLE, chunk({"content": "a"}, "stop"), b"data: [DONE]").done


def test_recorded_vllm_stream() -> None:
    # The second chunk has content "" and no role: a token whose bytes do not yet make a character.
    answer = answer_of(*body_of("vllm-0.32.0-chat-usage.http"))
    assert (answer.prompt_tokens, answer.output_tokens, len(answer.chunks)) == (19, 24, 24)
    assert [c.tokens for c in answer.chunks] == [1] * 24
    assert times(answer)[0] == 2.0
    assert not answer.chunks[0].visible
    assert (answer.finish_reason, answer.done) == ("length", True)


def test_recorded_vllm_stream_with_continuous_usage() -> None:
    answer = answer_of(*body_of("vllm-0.32.0-chat-continuous-usage.http"))
    assert answer.output_tokens == sum(c.tokens for c in answer.chunks) == len(answer.chunks)


def test_recorded_llama_server_stream() -> None:
    # Role chunk and first token arrive in one HTTP chunk; finish and usage in one too; timings are the server's own.
    answer = answer_of(*body_of("llama-server-b11434-chat-usage.http"))
    assert (answer.prompt_tokens, answer.output_tokens, answer.cached_tokens) == (31, 24, 0)
    assert (len(answer.chunks), times(answer)[0]) == (24, 1.0)
    assert json.loads(answer.timings)["predicted_n"] == 24


@pytest.mark.parametrize(
    ("name", "text", "prompt", "tokens", "counts", "first_visible", "finish"),
    [
        # The stop token is counted and has no chunk: 4 chunks, usage 5. The first two chunks are reasoning.
        ("sglang-chat", "Four.", 11, 5, [1, 1, 1, 1], 2, "stop"),
        ("tensorrt-llm-chat", "One two three four", 11, 4, [1, 2, 1], 0, "length"),
        ("ollama-chat", "1 < 2", 11, 5, [1, 1, 1, 1], 1, "stop"),  # its finish chunk carries the role: no token
        ("tgi-chat", "One two three", 11, 3, [1, 1, 1], 0, "length"),
    ],
)
def test_made_streams_of_the_other_engines(
    name: str, text: str, prompt: int, tokens: int, counts: list[int], first_visible: int, finish: str
) -> None:
    pieces = body_of(f"made/{name}.http")
    for answer in (answer_of(*pieces), answer_of(b"".join(pieces))):
        assert (answer.text, answer.prompt_tokens, answer.output_tokens) == (text, prompt, tokens)
        assert [c.tokens for c in answer.chunks] == counts
        assert next(i for i, c in enumerate(answer.chunks) if c.visible) == first_visible
        assert (answer.finish_reason, answer.done, answer.error, answer.malformed) == (finish, True, "", "")


def test_every_engine_that_a_plan_may_name_has_a_stream() -> None:
    found = [p.name for p in GOLDEN.rglob("*.http")]
    names = {"vllm": "vllm", "sglang": "sglang", "tensorrt_llm": "tensorrt-llm", "tgi": "tgi", "ollama": "ollama",
             "llama-server": "llama-server"}  # fmt: skip
    assert set(names) == set(DIALECTS) - {"openai"}  # which is what the others have in common
    assert all(any(f.startswith(start) for f in found) for start in names.values())


def test_a_stop_token_that_was_counted_and_not_sent_leaves_the_others_one_each() -> None:
    answer = answer_of(ROLE, chunk({"content": "a"}), chunk({"content": "b"}), FINISH, usage_chunk(3), DONE)
    assert [c.tokens for c in answer.chunks] == [1, 1]


@given(cuts=st.lists(st.integers(min_value=1, max_value=6000), max_size=12))
@settings(max_examples=60)
def test_how_the_bytes_are_cut_into_reads_never_changes_what_was_said(cuts: list[int]) -> None:
    stream = b"".join(body_of("vllm-0.32.0-chat-usage.http"))
    edges = [0, *sorted(c for c in cuts if c < len(stream)), len(stream)]
    answer = answer_of(*(stream[a:b] for a, b in itertools.pairwise(edges)))
    assert (answer.output_tokens, len(answer.chunks), answer.malformed, answer.done) == (24, 24, "", True)
    assert times(answer) == sorted(times(answer))
