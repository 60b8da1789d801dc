"""One request and its answer: what was sent when, and the stamped bytes that came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httptools

from planner.errors import InputError

Reads = list[tuple[float, bytes]]

ERROR_KINDS = {
    "connect": "no connection to the server",
    "reset": "the connection broke",
    "closed": "the server closed the connection before the answer was whole",
    "timeout": "the answer was not whole in time",
    "protocol": "the answer is not HTTP",
    "cancelled": "we stopped the request",
    "client": "this client could not send the request",
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
        """Read an http(s) URL; only scheme, host and port are used. Raises InputError for one that names no server."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            host.encode("idna")
        except ValueError:  # UnicodeError too: a name that no resolver takes
            raise InputError(f"{url!r} names no server.", fix="Write it as http://127.0.0.1:8000.") from None
        return cls(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))

    @property
    def local(self) -> bool:
        """The address is this machine's loopback."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL and in the Host header (RFC 3986, 3.2.2): IPv6 in brackets, ASCII."""
        host = f"[{self.host}]" if ":" in self.host else self.host.encode("idna").decode()
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        """Read as a URL."""
        return f"{self.scheme}://{self.authority}"


@dataclass
class Exchange:
    """One request and its answer on the pool's clock, in seconds.

    `wire` holds every read as it came, with its arrival; `unsure` the arrivals that are only upper bounds because the
    wall clock stepped; `full_reads` counts reads that found a receive buffer's worth of bytes waiting.
    """

    dispatched: float
    connected: float | None = None
    sent: float | None = None
    first_byte: float | None = None
    end: float | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    wire: Reads = field(default_factory=list)
    unsure: set[float] = field(default_factory=set)
    full_reads: int = 0
    error_kind: str = ""
    error: str = ""
    reconnected: bool = False

    @property
    def reads(self) -> Reads:
        """The pieces of the body with their arrivals, cut out of the wire anew at each call."""
        return body_reads(self.wire)

    @property
    def body(self) -> bytes:
        """The body, joined."""
        return b"".join(data for _, data in self.reads)

    def fail(self, kind: str, at: float, error: str = "") -> None:
        """End it with a word of ERROR_KINDS."""
        self.end, self.error_kind, self.error = at, kind, error or ERROR_KINDS[kind]


class Framing:
    """Follows one HTTP/1.1 answer to its end; gives no body, so that it costs little.

    `tail_tells` is True while only a read that ends in an empty line can end the message, so others need not be fed.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._parser = httptools.HttpResponseParser(self)
        self._fed = 0
        self._length = self._chunked = False
        self.whole = self.keep_alive = self.tail_tells = False

    def advance(self) -> None:
        """Feed what came since the last call; raises httptools.HttpParserError."""
        wire = self._exchange.wire
        new = wire[-1][1] if self._fed == len(wire) - 1 else b"".join(data for _, data in wire[self._fed :])
        self._fed = len(wire)
        try:
            self._parser.feed_data(new)
        except httptools.HttpParserUpgrade:  # no kind of HttpParserError
            raise httptools.HttpParserError("it changes to another protocol") from None

    @property
    def ends_with_connection(self) -> bool:
        """No length and no chunks: the end of the connection is the end of the body."""
        return self._exchange.status is not None and not self._length and not self._chunked

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header (called by httptools)."""
        lower, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._length |= lower == "content-length"
        self._chunked |= lower == "transfer-encoding"
        self._exchange.headers[lower] = text

    def on_headers_complete(self) -> None:
        """Take the status (called by httptools)."""
        self._exchange.status = self._parser.get_status_code()
        self.tail_tells = not self._length and not self._interim

    def on_message_complete(self) -> None:
        """Note the end (called by httptools); a 1xx answer is not one."""
        if not self._interim:
            self.whole, self.keep_alive = True, self._parser.should_keep_alive()

    @property
    def _interim(self) -> bool:
        return 100 <= (self._exchange.status or 0) < 200


class _Body:
    def __init__(self) -> None:
        self.pieces: Reads = []
        self.t = 0.0

    def on_body(self, data: bytes) -> None:
        self.pieces.append((self.t, data))


def body_reads(wire: Iterable[tuple[float, bytes]]) -> Reads:
    """The body in stamped reads of an HTTP/1.1 answer; each piece has the time of the read that brought it.

    Stops quietly where the bytes cease to be HTTP: the exchange says that.
    """
    body = _Body()
    parser: Any = httptools.HttpResponseParser(body)
    for body.t, data in wire:
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            break
    return body.pieces
