"""How an answer is written: shape of the stream, usage, the truth about each write, and the ways it breaks off."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
import time
from typing import Any

from bench.dialects import Dialect
from bench.emulator.settings import VERSION, Settings
from bench.emulator.turns import Asked

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}
LOOK_FOR_CLIENT_S = 0.05
RETRY_AFTER = "Retry-After: 1\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Truth:
    """When one request came and when each of its chunks was written, in nanoseconds of CLOCK_MONOTONIC.

    A write is stamped just before it is handed to the socket; `tokens` are those of each write.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._received_ns = time.monotonic_ns()
        self._written_ns: list[int] = []
        self._tokens: list[int] = []

    def write(self, tokens: int) -> None:
        """Stamp a write now."""
        self._written_ns.append(time.monotonic_ns())
        self._tokens.append(tokens)

    def told(self) -> dict[str, Any]:
        """As JSON tells it."""
        return {"id": name_of(self._asked), "prompt_tokens": self._asked.prompt_tokens,
                "received_ns": self._received_ns, "written_ns": self._written_ns, "tokens": self._tokens}  # fmt: skip


def name_of(asked: Asked) -> str:
    """The id in every chunk of an answer."""
    return f"emulated-{asked.number}"


class Answer:
    """One streamed answer; `take` for each token, then `finish`."""

    def __init__(
        self, writer: asyncio.StreamWriter, settings: Settings, dialect: Dialect, body: dict[str, Any], asked: Asked,
        fault: str, truth: Truth | None,
    ) -> None:  # fmt: skip
        options = body.get("stream_options") or {}
        facts = dialect.facts.streaming if dialect.facts else None
        self._writer, self._settings, self._asked, self._fault, self._truth = writer, settings, asked, fault, truth
        self._usage = bool(options.get("include_usage")) and fault != "no-usage"
        self._continuous_usage = self._usage and bool(options.get("continuous_usage_stats"))
        self._reasoning_field = (facts and facts.reasoning_field) or "reasoning_content"
        self._role_with_token = bool(facts and facts.first_chunk_has_token)
        self._end_of_event = b"\r\n\r\n" if settings.crlf else b"\n\n"
        self._held: list[str] = []
        self.produced = 0

    def begin(self) -> None:
        """Send the head."""
        send_head(self._writer, 200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked\r\n")

    async def take(self) -> None:
        """One more token; it is written once its chunk is full, or its channel or the answer ends."""
        self._held.append(f" w{self.produced}")
        self.produced += 1
        ends = self.produced in (self._settings.reasoning_tokens, self._asked.output_tokens)
        if len(self._held) < self._settings.tokens_per_chunk and not ends:
            return
        text, tokens, self._held = "".join(self._held), len(self._held), []
        reasons = self.produced <= self._settings.reasoning_tokens
        delta = {self._reasoning_field if reasons else "content": text}
        if self.produced == tokens:
            role: dict[str, Any] = {"role": "assistant"}
            if self._role_with_token:
                delta = role | delta
            else:
                self._event(self._chunk(role | {"content": ""}, 0))
        last = self.produced == self._asked.output_tokens
        self._event(self._chunk(delta, self.produced, "length" if last else None), tokens)
        await self._writer.drain()

    async def finish(self) -> None:
        """Send usage where asked, and the end."""
        if self._usage:
            self._event({"id": name_of(self._asked), "object": "chat.completion.chunk", "choices": [],
                         "usage": usage(self._asked, self.produced, self._fault)})  # fmt: skip
        await self._done()

    async def break_off(self) -> bool:
        """Do what the fault asks in mid-stream; True ends the answer, ConnectionError the connection."""
        if self._fault == "error-mid-stream":
            await self.error("the engine failed in mid-stream")
            return True
        if self._fault == "close-mid-stream":
            self._writer.transport.close()
            raise ConnectionError
        if self._fault == "reset":
            reset(self._writer)
            raise ConnectionError
        if self._fault == "stall":
            while not self._asked.gone():
                await asyncio.sleep(LOOK_FOR_CLIENT_S)
            raise ConnectionError
        if self._fault == "die":
            print("emulator: dying as told", file=sys.stderr, flush=True)
            os._exit(1)
        return False

    async def error(self, message: str) -> None:
        """An error object in the stream, and its end."""
        self._event({"error": {"message": message, "code": 500}})
        await self._done()

    async def _done(self) -> None:
        self._send(b"data: [DONE]" + self._end_of_event)
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def _chunk(self, delta: dict[str, Any], produced: int, finish: str | None = None) -> dict[str, Any]:
        chunk: dict[str, Any] = {"id": name_of(self._asked), "object": "chat.completion.chunk",
                 "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip
        if self._continuous_usage:
            chunk["usage"] = usage(self._asked, produced, self._fault)
        return chunk

    def _event(self, payload: dict[str, Any], tokens: int = 0) -> None:
        data = b"data: " + json.dumps(payload, separators=(",", ":")).encode() + self._end_of_event
        if tokens and self._truth:
            self._truth.write(tokens)
        self._send(data)

    def _send(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def usage(asked: Asked, produced: int, fault: str) -> dict[str, int]:
    """The usage object, or the lie that the fault asks for."""
    told = produced + (fault == "lying-usage")
    return {"prompt_tokens": asked.prompt_tokens, "completion_tokens": told,
            "total_tokens": asked.prompt_tokens + told}  # fmt: skip


def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with a TCP reset."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


def send_head(writer: asyncio.StreamWriter, status: int, content_type: str, extra: str) -> None:
    """Status line and headers; every answer says whose it is."""
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nServer: {VERSION}\r\nContent-Type: {content_type}\r\n{extra}\r\n"
    writer.write(head.encode())


def send(writer: asyncio.StreamWriter, status: int, body: Any, content_type: str = "application/json",
         extra: str = "") -> None:  # fmt: skip
    """A whole answer: bytes as they are, anything else as JSON."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    send_head(writer, status, content_type, f"{extra}Content-Length: {len(payload)}\r\n")
    writer.write(payload)


def send_error(writer: asyncio.StreamWriter, status: int, message: str, extra: str = "") -> None:
    """An error object as OpenAI's API has it."""
    send(writer, status, {"error": {"message": message, "code": status}}, extra=extra)
