"""The emulator's HTTP side: routes, one chat request, and a restart in mid-run."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import httptools

from bench.dialects import dialect
from bench.emulator.answer import RETRY_AFTER, Answer, Truth, name_of, send, send_error, usage
from bench.emulator.batching import Batching
from bench.emulator.fixed import Fixed
from bench.emulator.metrics import Counters, page
from bench.emulator.settings import FIXED, REFUSALS, RESTART_S, VERSION, Settings, count_tokens
from bench.emulator.turns import Asked, Turns

HEALTH = {"/", "/health", "/ready"}
VERSIONS = {"/version", "/api/version", "/props", "/server_info", "/info"}


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
        self._dialect = dialect(settings.engine, settings.facts)
        self._turns, self._counters = self._fresh()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._restarting: asyncio.Task[None] | None = None
        self._truth: list[Truth] = []
        self._chats = 0
        self._host = ""
        self.port = 0

    def _fresh(self) -> tuple[Turns, Counters]:
        return (Fixed if self.settings.timing == FIXED else Batching)(self.settings), Counters()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 lets the system choose."""
        self._server = await asyncio.start_server(self._serve, host, port, backlog=2048)
        self._host, self.port = host, self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop what is in flight."""
        if self._restarting:
            self._restarting.cancel()
            await asyncio.gather(self._restarting, return_exceptions=True)
        await self._drop_all()

    async def _drop_all(self) -> None:
        if self._server:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._turns.stop()

    async def _restart(self) -> None:
        await self._drop_all()
        self._turns, self._counters = self._fresh()
        await asyncio.sleep(RESTART_S)
        await self.start(self._host, self.port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while request := await _read_request(reader):
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.CancelledError, httptools.HttpParserError):
            pass
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answer(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        s, path = self.settings, request.path.partition("?")[0]
        posted = _posted(request.body) if request.method == "POST" else None
        if posted is None and request.method == "POST":
            send_error(writer, 400, "The body is not a JSON object with the fields of a request.")
        elif posted is not None and path == "/v1/chat/completions":
            await self._chat(posted, reader, writer)
        elif path == self._dialect.metrics_path:
            text = "" if s.fault == "no-metrics" else page(self._dialect, s, self._turns, self._counters)
            send(writer, 200, text.encode(), "text/plain")
        elif posted is not None and path == "/tokenize" and self._dialect.tokenize != "none":
            send(writer, 200, self._tokenised(posted))
        elif path in VERSIONS:
            send(writer, 200, {"version": VERSION, self._dialect.version_key: VERSION})
        elif path == "/v1/models":
            send(writer, 200, {"object": "list", "data": [
                {"id": s.model, "object": "model", "max_model_len": s.max_model_len}]})  # fmt: skip
        elif path in HEALTH:
            send(writer, 200, {})
        elif path == "/truth" and s.truth:
            told, self._truth = [t.told() for t in self._truth], []
            send(writer, 200, {"requests": told})
        else:
            send_error(writer, 404, "Not Found")

    def _tokenised(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._dialect.tokenize == "content":  # llama-server: the bare text, without the template
            return {"tokens": list(range(count_tokens(str(body.get("content") or "")) - count_tokens("")))}
        return {"count": count_tokens(_text(body)), "max_model_len": self.settings.max_model_len}

    async def _chat(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def gone() -> bool:
            return reader.at_eof() or reader.exception() is not None or writer.transport.is_closing()

        self._chats += 1
        fault = self.settings.fault_at(self._chats)
        sent = count_tokens(_text(body))
        asked = Asked(self._chats, sent // 2 if fault == "truncate" else sent, _asked_output(body), gone)
        if self._refused(body, asked, fault, writer):
            return
        truth = Truth(asked) if self.settings.truth else None
        if truth:
            self._truth.append(truth)
        answer = Answer(writer, self.settings, self._dialect, body, asked, fault, truth)
        streams = bool(body.get("stream"))
        if streams:
            answer.begin()
        if fault == "error-object" and streams:
            await answer.error("the engine failed before the first token")
            return
        if await self._produce(answer, asked, streams=streams, fault=fault):
            return
        if streams:
            await answer.finish()
        else:
            message = {"role": "assistant", "content": "w " * asked.output_tokens}
            send(writer, 200, {"id": name_of(asked), "object": "chat.completion",
                               "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
                               "usage": usage(asked, asked.output_tokens, fault)})  # fmt: skip
        if fault == "close-idle":
            writer.transport.close()

    async def _produce(self, answer: Answer, asked: Asked, *, streams: bool, fault: str) -> bool:
        """Pass on the tokens as they are due and count them; True when the fault has ended the answer before."""
        clock, counters, turns = asyncio.get_running_loop().time, self._counters, self._turns
        arrived, produced = clock(), 0
        async with aclosing(turns.tokens(asked)) as tokens:
            async for admitted in tokens:
                if asked.gone():
                    raise ConnectionError
                produced += 1
                counters.generation_tokens += 1
                if produced == 1:
                    counters.prompt_tokens += asked.prompt_tokens
                    counters.ttft.add(clock() - arrived)
                    counters.queue_time.add(admitted - arrived)
                if streams:
                    await answer.take()
                if streams and produced == max(1, asked.output_tokens // 3):
                    if fault == "restart":
                        self._restarting = self._restarting or asyncio.create_task(self._restart())
                    if await answer.break_off():
                        return True
        counters.success += 1
        counters.e2e.add(clock() - arrived)
        return False

    def _refused(self, body: dict[str, Any], asked: Asked, fault: str, writer: asyncio.StreamWriter) -> bool:
        s = self.settings
        status = "404" if body.get("model") != s.model else fault
        if status in REFUSALS:
            send_error(writer, int(status), REFUSALS[status].format(model=body.get("model")),
                       extra="" if status == "404" else RETRY_AFTER)  # fmt: skip
            return True
        long = asked.prompt_tokens + asked.output_tokens
        why = self._turns.refusal(asked)
        if long > s.max_model_len:
            why = f"This model's maximum context length is {s.max_model_len} tokens, and {long} were asked for."
        if why:
            send_error(writer, 400, why)
        return bool(why)


def _posted(data: bytes) -> dict[str, Any] | None:
    """The body of a request, an empty one as {}; None where it, or a field that is read here, is of another form."""
    try:
        body: dict[str, Any] = json.loads(data or b"{}")
        _text(body), _asked_output(body)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return body


def _text(body: dict[str, Any]) -> str:
    """The messages' text, which clients send as it is or, as vLLM's does, in parts."""
    contents = [m.get("content") or "" for m in body.get("messages", ())]
    return "".join(c if isinstance(c, str) else "".join(part.get("text") or "" for part in c) for c in contents)


def _asked_output(body: dict[str, Any]) -> int:
    return max(1, int(body.get("max_completion_tokens") or body.get("max_tokens") or 16))


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    request = _Request()
    parser: Any = httptools.HttpRequestParser(request)
    while not request.whole:
        data = await reader.read(65536)
        if not data:
            return None
        parser.feed_data(data)
    request.method = parser.get_method().decode()
    return request
