"""An OpenAI-compatible streaming server whose timing is known, with faults on demand.

It calls itself emulator/1 in /version and in every Server header, so that bench marks what it measures here as
simulated. Metrics carry vLLM's names.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import httptools

from bench.admission import Admission, Settings, count_tokens
from planner.errors import InputError

VERSION = "emulator/1"


class _Request:
    """Parses one request after another from a connection."""

    def __init__(self) -> None:
        self.method = self.path = ""
        self.body = b""
        self.whole = False

    def on_url(self, url: bytes) -> None:
        self.path += url.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.whole = True


class Emulator:
    """The server; `port` is known after `start`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._queue = Admission(settings)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._chats = 0
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 lets the system choose."""
        self._server = await asyncio.start_server(self._serve, host, port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop what is in flight."""
        if self._server:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while request := await _read_request(reader):
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answer(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        s, path = self.settings, request.path.partition("?")[0]
        if path == "/v1/chat/completions" and request.method == "POST":
            await self._chat(json.loads(request.body), reader, writer)
        elif path == "/metrics":
            _send(writer, 200, b"" if s.fault == "no-metrics" else self._queue.page().encode(), "text/plain")
        elif path == "/tokenize" and request.method == "POST":
            body = json.loads(request.body)
            text = "".join(m.get("content") or "" for m in body.get("messages", ()))
            _send(writer, 200, {"count": count_tokens(text), "max_model_len": s.max_model_len})
        elif path in ("/version", "/api/version"):
            _send(writer, 200, {"version": VERSION})
        elif path == "/v1/models":
            _send(writer, 200, {"object": "list", "data": [
                {"id": s.model, "object": "model", "max_model_len": s.max_model_len}]})  # fmt: skip
        elif path in ("/health", "/"):
            _send(writer, 200, {})
        else:
            _send(writer, 404, {"error": {"message": "Not Found", "code": 404}})

    async def _chat(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def gone() -> bool:
            return reader.at_eof() or reader.exception() is not None or writer.transport.is_closing()

        s = self.settings
        self._chats += 1
        fault = s.fault if self._chats > s.fault_after else "none"
        refusal = self._refusal(body, fault)
        if refusal:
            _send(writer, refusal[0], {"error": {"message": refusal[1], "code": refusal[0]}},
                  extra="Retry-After: 1\r\n" if refusal[0] == 503 else "")  # fmt: skip
            return
        asked = int(body.get("max_completion_tokens") or body.get("max_tokens") or 16)
        prompt = count_tokens("".join(m.get("content") or "" for m in body["messages"]))
        arrived = asyncio.get_running_loop().time()
        if not await self._queue.enter(prompt + asked, gone):
            raise ConnectionError
        try:
            self._queue.prompt_tokens += prompt
            if body.get("stream"):
                _send_head(writer, 200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked\r\n")
            produced = 0
            async for token in self._tokens(asked, arrived):
                produced += 1
                if gone():
                    raise ConnectionError
                if body.get("stream"):
                    await self._send_token(writer, token, produced, asked)
                    if produced == max(1, asked // 3) and await self._break_off(fault, writer, gone):
                        return
        finally:
            self._queue.leave(prompt + asked)
        usage = {"prompt_tokens": prompt, "completion_tokens": produced + (fault == "lying-usage"),
                 "total_tokens": prompt + produced}  # fmt: skip
        if not body.get("stream"):
            _send(writer, 200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": "w " * produced},
                                             "finish_reason": "length"}], "usage": usage})  # fmt: skip
            return
        if (body.get("stream_options") or {}).get("include_usage") and fault != "no-usage":
            _send_event(writer, {"id": "e", "object": "chat.completion.chunk", "choices": [], "usage": usage})
        _send_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _refusal(self, body: dict[str, Any], fault: str) -> tuple[int, str] | None:
        s = self.settings
        if fault == "404" or body.get("model") != s.model:
            return 404, f"The model `{body.get('model')}` does not exist."
        if fault == "503":
            return 503, "The server is overloaded."
        return None

    async def _tokens(self, n: int, arrived: float) -> AsyncIterator[str]:
        """Yield tokens on absolute deadlines from the moment of admission, so that lateness does not add up."""
        loop, s = asyncio.get_running_loop(), self.settings
        admitted = loop.time()
        for i in range(n):
            due = admitted + (s.ttft_ms + i * s.itl_ms) / 1000
            await asyncio.sleep(max(0.0, due - loop.time()))
            if i == 0:
                self._queue.ttft_sum_s += loop.time() - arrived
                self._queue.ttft_count += 1
            self._queue.generation_tokens += 1
            yield f" w{i}"

    async def _send_token(self, writer: asyncio.StreamWriter, token: str, i: int, asked: int) -> None:
        if i == 1:
            _send_event(writer, _chunk({"role": "assistant", "content": ""}))
        _send_event(writer, _chunk({"content": token}, "length" if i == asked else None))
        await writer.drain()

    async def _break_off(self, fault: str, writer: asyncio.StreamWriter, gone: Callable[[], bool]) -> bool:
        """Do what the fault asks in mid-stream; True ends the answer here."""
        if fault == "error-mid-stream":
            _send_event(writer, {"error": {"message": "the engine failed in mid-stream", "code": 500}})
            _send_chunk(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        if fault == "close-mid-stream":
            writer.transport.close()
            raise ConnectionError
        if fault == "stall":
            while not gone():
                await asyncio.sleep(0.05)
            raise ConnectionError
        if fault == "die":
            print("emulator: dying as told", file=sys.stderr, flush=True)
            os._exit(1)
        return False


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "e", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    request = _Request()
    parser = httptools.HttpRequestParser(request)
    while not request.whole:
        data = await reader.read(65536)
        if not data:
            return None
        parser.feed_data(data)
    request.method = parser.get_method().decode()
    return request


def _send_head(writer: asyncio.StreamWriter, status: int, content_type: str, extra: str) -> None:
    reason = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
    head = f"HTTP/1.1 {status} {reason}\r\nServer: {VERSION}\r\nContent-Type: {content_type}\r\n{extra}\r\n"
    writer.write(head.encode())


def _send(writer: asyncio.StreamWriter, status: int, body: Any, content_type: str = "application/json",
          extra: str = "") -> None:  # fmt: skip
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    _send_head(writer, status, content_type, f"{extra}Content-Length: {len(payload)}\r\n")
    writer.write(payload)


def _send_event(writer: asyncio.StreamWriter, payload: dict[str, Any]) -> None:
    _send_chunk(writer, b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n")


def _send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def serve(settings: Settings, host: str, port: int, *, as_json: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is what the fault asks for. `as_json` says only where it listens."""
    if not as_json:
        print(f"emulator: model {settings.model}, {settings.slots} slots, fault {settings.fault}", flush=True)
    if settings.fault == "start-failure":
        print("emulator: RuntimeError: the model cannot be loaded", file=sys.stderr, flush=True)
        return 1
    if settings.fault == "out-of-memory":
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", file=sys.stderr, flush=True)
        return 1
    emulator = Emulator(settings)
    await emulator.start(host, port)
    if as_json:
        print(json.dumps({"url": f"http://{host}:{emulator.port}", "model": settings.model}), flush=True)
    else:
        print(f"GPU KV cache size: {settings.kv_tokens:,} tokens, Maximum concurrency", flush=True)
        print(f"emulator: listening on http://{host}:{emulator.port}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await emulator.stop()
    return 0


def fault_of(text: str) -> tuple[str, int]:
    """Read NAME or NAME:AFTER; raises InputError."""
    name, colon, number = text.partition(":")
    if colon and not number.isdigit():
        raise InputError(f"fault {text!r}: {number!r} is no number.", fix="Write NAME or NAME:AFTER, such as die:10.")
    return name, int(number or 0)
