"""What the server itself sees of HTTP: an ASGI middleware that vLLM loads with `--middleware tests.engine.edge.Edge`.

Between our stamps and those of the server's histogram lies its HTTP layer, whose share differs by machine and by load:
it is read at every request, not assumed. Only the standard library is imported, as this runs in the engine's process.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

FILE = "FLIPLINE_TEST_EDGE"  # environment variable: where the middleware appends its lines
ANSWERS = "/v1/chat/completions"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Seen(NamedTuple):
    """One streamed answer at the server's edge, in Unix seconds: the request came, its first text was written."""

    received_s: float
    first_text_s: float


def seen(file: Path) -> list[Seen]:
    """Every answer that the middleware wrote down, in the order of the first texts."""
    return [Seen(*json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


class Edge:
    """Appends one line per answer, when its first text has been handed to the socket."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._file = Path(os.environ[FILE])

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != ANSWERS:
            await self._app(scope, receive, send)
            return
        received, told = time.time(), False

        async def watched(message: Message) -> None:
            nonlocal told
            began = time.time()  # before the write: nothing can have arrived earlier
            await send(message)
            if not told and _has_text(message.get("body", b"")):
                told = True
                with self._file.open("a", encoding="utf-8") as f:
                    f.write(json.dumps([received, began]) + "\n")

        await self._app(scope, receive, watched)


def _has_text(body: bytes) -> bool:
    """A text that is empty is a token all the same, of half a character; beside a role it is none."""
    events = (json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {"))
    deltas = (choice["delta"] for event in events for choice in event["choices"])
    return any("content" in delta and not delta.get("role") for delta in deltas)
