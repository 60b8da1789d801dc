"""Stamped bytes -> server-sent events -> what one answer held. Pure: no socket, no clock.

Rules that public clients were seen to break (tests/bench/test_sse.py has one test each) are marked with the
word *rule*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

DONE = "[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_ONE_EVENT = re.compile(rb"data: ?([^\r\n]*)\n\n")
_read_json = json.JSONDecoder().raw_decode  # json.loads looks for white space at both ends first
_TEXT_FIELDS = ("content", "reasoning", "reasoning_content", "text")
LARGEST_COUNT = 2**31 - 1  # of tokens, that a record holds


class Event(NamedTuple):
    """One event: the time of the read that held its last byte, its `event:` name and its data."""

    t: float
    name: str
    data: str


class EventReader:
    """Cuts stamped reads into events; keeps the unfinished rest between reads.

    Rule: lines end in LF, CR LF or CR; `data:` needs no space; comment lines are skipped; text is decoded only when
    its event is whole, so a character split over two reads survives.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name = ""

    def feed(self, t: float, data: bytes) -> Iterable[Event]:
        """The events that this read completes."""
        if not (self._rest or self._data or self._name) and (one := _ONE_EVENT.fullmatch(data)):
            return (Event(t, "", one[1].decode("utf-8", "replace")),)  # as nearly every read is
        return self._events_of(t, data)

    def _events_of(self, t: float, data: bytes) -> Iterator[Event]:
        buffer = self._rest + data
        start = 0
        for end in _LINE_END.finditer(buffer):
            if end.group() == b"\r" and end.end() == len(buffer):
                break  # the LF of this CR may be in the next read
            line, start = buffer[start : end.start()], end.end()
            if line:
                self._take(line)
            elif self._data:
                yield self._event(t)
            else:
                self._name = ""  # an event without data is none, and its name goes with it (HTML standard, 9.2.6)
        self._rest = buffer[start:]

    def finish(self, t: float) -> Iterator[Event]:
        """Yield a last event whose closing blank line never came."""
        if self._rest.strip():
            self._take(self._rest.rstrip(b"\r\n"))
        self._rest = b""
        if self._data:
            yield self._event(t)

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"error":  # llama.cpp's server names the field itself so
            self._name = "error"
            self._data.append(value)

    def _event(self, t: float) -> Event:
        event = Event(t, self._name, b"\n".join(self._data).decode("utf-8", "replace"))
        self._data, self._name = [], ""
        return event


class Chunk(NamedTuple):
    """A token-bearing chunk: time, tokens in it (0: not known), and whether a reader of the answer sees it."""

    t: float
    tokens: int
    visible: bool


class Answer(NamedTuple):
    """One streamed answer. Usage values are the last ones that came; `error` is the server's own error object.

    `text` is what a reader of the answer sees: neither reasoning nor tool calls.
    """

    chunks: tuple[Chunk, ...]
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    finish_reason: str
    error: str
    malformed: str
    done: bool
    timings: str
    text: str = ""

    @property
    def whole(self) -> bool:
        """The server said that it had finished."""
        return self.done or bool(self.finish_reason)


class _Seen(NamedTuple):
    t: float
    usage_total: int | None  # completion tokens so far, where this chunk's own usage says so
    visible: bool


class AnswerBuilder:
    """Collects the events of one answer; `answer()` may be called at any time, also for a broken stream."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self._text: list[str] = []
        self._empty_finish: _Seen | None = None
        self._usage: dict[str, Any] = {}
        self._finish_reason = ""
        self._error = ""
        self._malformed = ""
        self._done = False
        self._timings = ""

    def add(self, event: Event) -> None:
        """Take one event."""
        if event.data == DONE:
            self._done = True
            return
        if not event.data.strip() and event.name != "error":  # a heartbeat that says nothing
            return
        payload = _json_in(event.data)
        if not isinstance(payload, dict):
            self._malformed = self._malformed or f"an event is not a JSON object: {event.data[:80]!r}"
            return
        if payload.get("error") or event.name == "error":  # rule: an error in mid-stream is a failure
            self._error = self._error or _error_text(payload)
            return
        if payload.get("timings"):
            self._timings = json.dumps(payload["timings"], sort_keys=True)
        usage = payload.get("usage")
        if isinstance(usage, dict):  # rule: the last usage counts, never a sum, wherever it stands
            self._usage = usage
        total = token_count(usage.get("completion_tokens")) if isinstance(usage, dict) else None
        for choice in payload.get("choices") or ():  # rule: the usage chunk may have no choices
            if isinstance(choice, dict):
                self._take_choice(event.t, choice, total)

    def answer(self) -> Answer:
        """What is known so far."""
        output = token_count(self._usage.get("completion_tokens"))
        details = self._usage.get("prompt_tokens_details")
        return Answer(
            chunks=self._chunks(output),
            prompt_tokens=token_count(self._usage.get("prompt_tokens")),
            output_tokens=output,
            cached_tokens=token_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
            finish_reason=storable(self._finish_reason),
            error=storable(self._error),
            malformed=self._malformed,
            done=self._done,
            timings=self._timings,
            text=storable("".join(self._text)),
        )

    def _take_choice(self, t: float, choice: dict[str, Any], total: int | None) -> None:
        inner = choice.get("delta")
        delta: dict[str, Any] = inner if isinstance(inner, dict) else choice
        finish = choice.get("finish_reason") or ""
        self._finish_reason = str(finish) or self._finish_reason
        texts = [text for f in _TEXT_FIELDS if isinstance(text := delta.get(f), str)]
        visible = delta.get("content") or delta.get("text")
        if isinstance(visible, str):
            self._text.append(visible)
        seen = _Seen(t, total, visible=bool(visible))
        if any(texts) or delta.get("tool_calls"):
            self._seen.append(seen)
        elif texts and not delta.get("role"):  # rule: "" beside a role is the role chunk, "" alone is a token
            if finish:
                self._empty_finish = seen
            else:
                self._seen.append(seen)

    def _chunks(self, output: int | None) -> tuple[Chunk, ...]:
        """Token-bearing chunks with their counts where usage settles them.

        Usage in every chunk counts each by difference. Else as many chunks as tokens means one each. Rule: an
        empty finish chunk is a token only when usage counts exactly one more than the chunks before it. Rule: where
        no such chunk stands, the one more of an answer that stopped by itself is its stop token, which was not sent.
        """
        seen, last = self._seen, self._empty_finish
        if seen and all(s.usage_total is not None for s in seen):
            if last and (last.usage_total or 0) > (seen[-1].usage_total or 0):
                seen = [*seen, last]
            totals = [0, *(s.usage_total or 0 for s in seen)]
            counts = [max(0, b - a) for a, b in pairwise(totals)]
        else:
            if last and output == len(seen) + 1:
                seen = [*seen, last]
            unsent = int(self._finish_reason == "stop" and output == len(seen) + 1)
            counts = [1 if output == len(seen) + unsent else 0] * len(seen)
        return tuple(Chunk(s.t, n, s.visible) for s, n in zip(seen, counts, strict=True))


def read_answer(reads: Iterable[tuple[float, bytes]]) -> Answer:
    """The answer in the stamped body bytes of one response."""
    reader, builder, t = EventReader(), AnswerBuilder(), 0.0
    for t, data in reads:
        for event in reader.feed(t, data):
            builder.add(event)
    for event in reader.finish(t):
        builder.add(event)
    return builder.answer()


def _json_in(text: str) -> Any:
    """What it says; None where it is not JSON, or none that can be read: nested without end, thousands of digits."""
    try:
        found, end = _read_json(text)
        return found if end == len(text) else json.loads(text)
    except (ValueError, RecursionError):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def token_count(value: Any) -> int | None:
    """A count of tokens as usage states it; None for anything that cannot be one."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= LARGEST_COUNT else None


def storable(text: str) -> str:
    """A text without half surrogate pairs: JSON can spell them, UTF-8, and so every file of ours, cannot hold them."""
    return text.encode("utf-8", "replace").decode()


def _error_text(payload: dict[str, Any]) -> str:
    error = payload.get("error") or payload
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or error)[:500]
