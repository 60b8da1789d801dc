"""HTTP/1.1 over asyncio: every read is stamped, its bytes are kept, and nothing is parsed beyond the framing.

Stamps are taken in user space when the loop hands over a read (clock kind "user-space"). One Exchange is one
request and its answer; what went wrong is a word of ERROR_KINDS, never an exception, because a server's failure
is a result.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from planner.errors import ServerError

Clock = Callable[[], float]
CLOCK = {"kind": "user-space", "source": "CLOCK_MONOTONIC", "stamped": "when the event loop hands over a read"}
READ_LIMIT = 16 * 1024 * 1024

ERROR_KINDS = {
    "connect": "no connection to the server",
    "reset": "the connection broke",
    "closed": "the server closed the connection before the answer was whole",
    "timeout": "the answer was not whole in time",
    "protocol": "the answer is not HTTP",
    "cancelled": "we stopped the request",
    "http": "the server refused the request",
    "stream_error": "the server reported an error in the stream",
    "bad_stream": "the stream is not what the API promises",
    "died": "the server process had ended",
}


class Origin(NamedTuple):
    """Scheme, host and port of a server."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        """Read an http(s) URL; only scheme, host and port are used."""
        parts = urlsplit(url)
        return cls(parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))

    @property
    def local(self) -> bool:
        """The address is this machine's loopback."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        """Read as a URL."""
        return f"{self.scheme}://{self.host}:{self.port}"


@dataclass
class Exchange:
    """One request and its answer on the pool's clock, in seconds; `reads` are the stamped pieces of the body."""

    dispatched: float
    connected: float | None = None
    sent: float | None = None
    first_byte: float | None = None
    end: float | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    error_kind: str = ""
    error: str = ""
    reconnected: bool = False

    @property
    def body(self) -> bytes:
        """The body, joined."""
        return b"".join(data for _, data in self.reads)


class _Connection(asyncio.Protocol):
    """One socket with at most one exchange on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._whole: asyncio.Future[None] | None = None
        self._parser: Any = None
        self._now = 0.0
        self._keep = False
        self._framed = False
        self.lost = False

    @property
    def reusable(self) -> bool:
        """Idle and still open, as far as we know."""
        return not self.lost and self._exchange is None and self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)

    def start(self, exchange: Exchange, request: bytes) -> asyncio.Future[None]:
        """Send a request; the future ends with the exchange."""
        assert self._transport is not None
        self._exchange, self._parser = exchange, httptools.HttpResponseParser(self)
        self._keep, self._framed = False, False
        self._whole = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        if self._transport.get_write_buffer_size() == 0:
            exchange.sent = self._clock()
        return self._whole

    def resume_writing(self) -> None:
        if self._exchange and self._exchange.sent is None:
            self._exchange.sent = self._clock()

    def data_received(self, data: bytes) -> None:
        self._now = self._clock()
        exchange = self._exchange
        if exchange is None:
            self.abort()
            return
        if exchange.first_byte is None:
            exchange.first_byte = self._now
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as e:
            self._end("protocol", f"{ERROR_KINDS['protocol']}: {e}")
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.decode("latin-1").lower()
        self._framed = self._framed or lower in ("content-length", "transfer-encoding")
        if self._exchange:
            self._exchange.headers[lower] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._exchange:
            self._exchange.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        if self._exchange:
            self._exchange.reads.append((self._now, data))

    def on_message_complete(self) -> None:
        if self._exchange and 100 <= (self._exchange.status or 0) < 200:
            return
        self._keep = self._parser.should_keep_alive()
        self._end("", "")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._now = self._clock()
        if self._exchange is None:
            return
        if exc is None and self._exchange.status is not None and not self._framed:
            self._end("", "")  # no length and no chunks: the end of the connection is the end of the body
        elif exc is None:
            self._end("closed", ERROR_KINDS["closed"])
        else:
            self._end("reset", f"{ERROR_KINDS['reset']}: {exc}")

    def _end(self, kind: str, error: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.end, exchange.error_kind, exchange.error = self._now, kind, error
        if self._whole and not self._whole.done():
            self._whole.set_result(None)
        if not self._keep:
            self.abort()

    def give_up(self, kind: str, error: str) -> None:
        """End the exchange from our side."""
        self._now = self._clock()
        self._keep = False
        self._end(kind, error)
        self.abort()

    def abort(self) -> None:
        """Close the socket at once."""
        self.lost = True
        if self._transport:
            self._transport.abort()


class Pool:
    """Keep-alive connections to one origin; grows when more are in flight than were opened before."""

    def __init__(self, origin: Origin, *, clock: Clock = time.monotonic, connect_timeout_s: float = 10.0) -> None:
        self.origin = origin
        self.clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._cancelled = 0
        self._cancel_kind = "cancelled"
        self._tls = ssl.create_default_context() if origin.scheme == "https" else None

    async def open(self, n: int) -> None:
        """Open connections until `n` are idle.

        Raises ServerError when the server does not take them.
        """
        missing = n - len(self._idle)
        for start in range(0, missing, 64):
            self._idle += await asyncio.gather(*(self._connect() for _ in range(min(64, missing - start))))

    async def exchange(self, request: bytes, *, timeout_s: float) -> Exchange:
        """Send a request and wait for the whole answer, an error, or the time-out.

        A kept connection that the server closed while it was idle is opened again once; the time stays in the
        exchange and `reconnected` says so. Never raises for what the server does.
        """
        exchange = Exchange(dispatched=self.clock())
        deadline, generation = exchange.dispatched + timeout_s, self._cancelled
        while True:
            connection, found_lost = self._take_idle()
            kept = connection is not None
            exchange.reconnected |= found_lost
            try:
                connection = connection or await self._connect()
            except ServerError as e:
                exchange.end, exchange.error_kind, exchange.error = self.clock(), "connect", str(e)
                return exchange
            exchange.connected = self.clock()
            if generation != self._cancelled:  # cancel_all came while this one was connecting
                self._idle.append(connection)
                exchange.end, exchange.error_kind = exchange.connected, self._cancel_kind
                exchange.error = ERROR_KINDS[self._cancel_kind]
                return exchange
            await self._run(connection, exchange, request, deadline)
            stale = kept and exchange.error_kind in ("closed", "reset") and exchange.first_byte is None
            if not stale:
                return exchange
            self._drop_idle()
            exchange.reconnected, exchange.error_kind, exchange.error = True, "", ""
            exchange.sent = exchange.end = None

    async def _run(self, connection: _Connection, exchange: Exchange, request: bytes, deadline: float) -> None:
        self._busy.add(connection)
        whole = connection.start(exchange, request)
        try:
            async with asyncio.timeout(max(0.0, deadline - self.clock())):
                await whole
        except TimeoutError:
            connection.give_up("timeout", ERROR_KINDS["timeout"])
        except asyncio.CancelledError:
            connection.give_up("cancelled", ERROR_KINDS["cancelled"])
            raise
        finally:
            self._busy.discard(connection)
            if connection.reusable:
                self._idle.append(connection)

    def cancel_all(self, kind: str = "cancelled") -> None:
        """End every exchange in flight, or still connecting, from our side; `kind` is a word of ERROR_KINDS."""
        self._cancelled += 1
        self._cancel_kind = kind
        for connection in list(self._busy):
            connection.give_up(kind, ERROR_KINDS[kind])

    def close(self) -> None:
        """Close all connections."""
        self.cancel_all()
        self._drop_idle()

    def _take_idle(self) -> tuple[_Connection | None, bool]:
        """An idle connection that is still open, and whether one was found that the server had closed."""
        found_lost = False
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection, found_lost
            found_lost = True
        return None, found_lost

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self.clock), self.origin.host, self.origin.port, ssl=self._tls
                )
        except (OSError, TimeoutError) as e:
            refused = isinstance(e, ConnectionRefusedError)
            why = "it refused the connection" if refused else str(e) or "no answer in time"
            raise ServerError(f"the server is not there: {why}.", where=str(self.origin),
                              fix="Start it, or correct the url in the plan.") from None  # fmt: skip
        return connection


def request_bytes(origin: Origin, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
    """An HTTP/1.1 request with a JSON body."""
    payload = b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {origin.host}:{origin.port}\r\nUser-Agent: flipline-bench\r\n"
    if body is not None:
        head += "Content-Type: application/json\r\nAccept: text/event-stream, application/json\r\n"
        head += f"Content-Length: {len(payload)}\r\n"
    return head.encode() + b"\r\n" + payload


async def fetch_json(pool: Pool, method: str, path: str, body: dict[str, Any] | None = None, *,
                     timeout_s: float = 10.0) -> dict[str, Any] | None:  # fmt: skip
    """The JSON object at a path, or None when there is none or the server answers otherwise."""
    exchange = await pool.exchange(request_bytes(pool.origin, method, path, body), timeout_s=timeout_s)
    if exchange.error_kind or exchange.status != 200:
        return None
    try:
        found = json.loads(exchange.body)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def error_message(exchange: Exchange) -> str:
    """What the server said about a refused request, in one line."""
    try:
        found = json.loads(exchange.body)
        error = found.get("error", found) if isinstance(found, dict) else found
        text = error.get("message", error) if isinstance(error, dict) else error
    except (json.JSONDecodeError, UnicodeDecodeError):
        text = exchange.body.decode("utf-8", "replace")
    return " ".join(str(text).split())[:300]
