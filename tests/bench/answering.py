"""A plain OpenAI-compatible server that answers as a function says, and keeps every request body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.runner import RunResult, run_plan
from tests.bench.helpers import candidate, plan

TOKEN_S = 0.001
Answer = Callable[[dict[str, Any]], list[str]]


def text_of(body: dict[str, Any]) -> str:
    """The prompt of a request."""
    return str(body["messages"][0]["content"])


class AnsweringServer:
    """One token a word; `answer` gives the pieces that are streamed, `counted` how many tokens usage says they are."""

    def __init__(self, answer: Answer, counted: Callable[[list[str]], int] = len) -> None:
        self._answer, self._counted = answer, counted
        self.bodies: list[dict[str, Any]] = []
        self.port = 0

    async def start(self) -> asyncio.Server:
        """Listen on a port of loopback that the system chooses."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                               if line.startswith(b"content-length:")), 0)  # fmt: skip
                body = await reader.readexactly(length)
                path = head.split(b" ")[1].decode()
                for part in self._response(path, json.loads(body) if body else {}):
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(TOKEN_S)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _response(self, path: str, body: dict[str, Any]) -> list[bytes]:
        if path == "/v1/models":
            return _http(200, "application/json", json.dumps({"data": [{"id": "emulated"}]}))
        if path != "/v1/chat/completions":
            return _http(404, "application/json", "{}")
        self.bodies.append(body)
        pieces = self._answer(body)
        usage = {"prompt_tokens": len(text_of(body).split()), "completion_tokens": self._counted(pieces)}
        if not body.get("stream"):
            return _http(200, "application/json", json.dumps({"choices": [], "usage": usage}))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        deltas = [{"index": 0, "delta": {"content": p}} for p in pieces]
        events = [{"choices": [d]} for d in deltas]
        events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        lines = [f"data: {e}\n\n" for e in [*map(json.dumps, events), "[DONE]"]]
        return [head, *(f"{len(line):x}\r\n{line}\r\n".encode() for line in lines), b"0\r\n\r\n"]


def _http(status: int, kind: str, text: str) -> list[bytes]:
    payload = text.encode()
    return [f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload]


def run_answered(
    answer: Answer, out: Path, folder: Path, *, counted: Callable[[list[str]], int] = len, **more: Any
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Run a plan against such a server; `folder` is where the plan's files lie."""

    async def go() -> tuple[RunResult, list[dict[str, Any]]]:
        answering = AnsweringServer(answer, counted)
        server = await answering.start()
        try:
            made = plan(candidate(answering.port, engine="openai"), **more)
            return await run_plan(made, out, folder=folder), answering.bodies
        finally:
            server.close()

    return asyncio.run(go())
