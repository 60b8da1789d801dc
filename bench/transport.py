"""HTTP/1.1 over sockets of our own: every read carries its arrival, and nothing is parsed beyond the framing.

Arrivals are the kernel's where it gives them, else the moment of the read; `Pool.clock_facts` says which, and over
which path. What went wrong with an exchange is a word of ERROR_KINDS, never an exception, because a server's failure
is a result.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import math
import os
import resource
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from bench.arrivals import Arrivals, ask_for_stamps
from bench.connection import Connection, Tls
from bench.exchange import Exchange, Origin
from bench.readiness import Readiness
from bench.sse import storable
from planner.errors import FliplineError, NotAllowed, ServerError

Clock = Callable[[], float]
AT_ONCE = 64
SPARE_FILES = 128  # for logs, the bundle, telemetry and the loop itself
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
PROXIES = ("nginx", "envoy", "haproxy", "traefik", "caddy", "apache", "cloudflare")


class Pool:
    """Keep-alive connections to one origin; grows when more are in flight than were opened before.

    `spare_files` of this process's file handles are left to others: a bundle must be written whatever the load took.
    """

    def __init__(
        self, origin: Origin, *, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None,
        kernel_stamps: bool = True, spare_files: int = SPARE_FILES,
    ) -> None:  # fmt: skip
        self.origin, self._spare_files = origin, spare_files
        self.clock: Clock = time.monotonic
        self.arrivals = Arrivals()
        self._readiness = Readiness()
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls or (ssl.create_default_context() if origin.scheme == "https" else None)
        self._kernel_stamps = kernel_stamps
        self._addresses: list[tuple[Any, ...]] = []
        self._peer = self._proxy = ""
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._cancelled = 0
        self._cancel_kind = "cancelled"

    async def open(self, n: int) -> None:
        """Open connections until `n` are idle.

        Raises ServerError when the server does not take them, NotAllowed when this machine gives no more sockets.
        """
        _allow_files(n + SPARE_FILES)
        missing = n - len(self._idle)
        for start in range(0, missing, AT_ONCE):
            dialled = (self._connect() for _ in range(min(AT_ONCE, missing - start)))
            found = await asyncio.gather(*dialled, return_exceptions=True)
            self._idle += [c for c in found if isinstance(c, Connection)]
            for failed in (e for e in found if isinstance(e, BaseException)):
                raise failed

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
            except FliplineError as e:
                exchange.fail("client" if isinstance(e, NotAllowed) else "connect", self.clock(), str(e))
                return exchange
            exchange.connected = self.clock()
            if generation != self._cancelled:  # cancel_all came while this one was connecting
                self._idle.append(connection)
                exchange.fail(self._cancel_kind, exchange.connected)
                return exchange
            await self._run(connection, exchange, request, deadline)
            stale = kept and exchange.error_kind in ("closed", "reset") and exchange.first_byte is None
            if not stale:
                self._proxy = self._proxy or _proxy_in(exchange.headers)
                return exchange
            self._drop_idle()
            exchange.reconnected, exchange.error_kind, exchange.error = True, "", ""
            exchange.connected = exchange.sent = exchange.end = None

    async def _run(self, connection: Connection, exchange: Exchange, request: bytes, deadline: float) -> None:
        self._busy.add(connection)
        whole = connection.start(exchange, request)
        # A bare timer: asyncio.timeout() costs more than the send itself when many requests are due at once.
        timer = asyncio.get_running_loop().call_later(deadline - self.clock(), connection.give_up, "timeout")
        try:
            await whole
        except asyncio.CancelledError:
            connection.give_up("cancelled")
            raise
        finally:
            timer.cancel()
            self._busy.discard(connection)
            if connection.reusable:
                self._idle.append(connection)

    def cancel_all(self, kind: str = "cancelled") -> None:
        """End every exchange in flight, or still connecting, from our side; `kind` is a word of ERROR_KINDS."""
        self._cancelled += 1
        self._cancel_kind = kind
        for connection in list(self._busy):
            connection.give_up(kind)

    def in_flight(self) -> list[Exchange]:
        """Exchanges that were dispatched and have not ended."""
        return [c.exchange for c in self._busy if c.exchange]

    def close(self) -> None:
        """Close all connections."""
        self.cancel_all()
        self._drop_idle()

    def clock_facts(self) -> dict[str, str]:
        """How arrivals were taken and over which path, for the manifest."""
        seen = self.arrivals
        kernel = seen.reads > seen.unstamped
        facts = {
            "kind": "kernel" if kernel else "user-space",
            "source": "SO_TIMESTAMPNS, brought to CLOCK_MONOTONIC by the offset read at each wake-up" if kernel
            else "CLOCK_MONOTONIC",
            "stamped": "when the network stack takes in the last segment of a read" if kernel
            else "when the event loop hands over a read",
            "reads": str(seen.reads), "reads_without_kernel_stamp": str(seen.unstamped),
            "stamps_dropped": str(seen.dropped), "path": self._path(),
        }  # fmt: skip
        if self._peer and ipaddress.ip_address(self._peer).is_loopback:
            facts["path_limit"] = "loopback: stamped inside the sender's call, no network card is in the figure"
        if self._proxy:
            facts["proxy"] = f"{self._proxy}: measured up to there"
        return facts

    def _path(self) -> str:
        if not self._peer:
            return "not connected"
        peer = ipaddress.ip_address(self._peer)
        place = "loopback" if peer.is_loopback else "LAN" if peer.is_private else "network"
        return f"{place}, TLS" if self._tls else place

    def _take_idle(self) -> tuple[Connection | None, bool]:
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

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                sock = await self._dial()
                try:
                    tls = Tls(self._tls, self.origin.host) if self._tls else None
                    if tls:
                        await tls.handshake(sock)
                    return Connection(sock, self.arrivals, self._readiness, tls)
                except BaseException:
                    sock.close()
                    raise
        except (OSError, TimeoutError) as e:
            if e.errno in OUR_LIMITS:
                raise NotAllowed(
                    f"this machine gives no more connections: {os.strerror(e.errno or 0)}.",
                    where=str(self.origin), fix="Raise `ulimit -n`, or offer less at once.",
                ) from None  # fmt: skip
            refused = isinstance(e, ConnectionRefusedError)
            why = "it refused the connection" if refused else str(e) or "no answer in time"
            raise ServerError(f"the server is not there: {why}.", where=str(self.origin),
                              fix="Start it, or correct the url in the plan.") from None  # fmt: skip

    async def _dial(self) -> socket.socket:
        """A connected socket that stamps, on the first address of the host that answers; raises OSError."""
        loop = asyncio.get_running_loop()
        if not self._addresses:
            found = await loop.getaddrinfo(self.origin.host, self.origin.port, type=socket.SOCK_STREAM)
            self._addresses = list(found)
        last: OSError = OSError(f"no address for {self.origin.host}")
        for family, kind, protocol, _, address in self._addresses:
            sock = socket.socket(family, kind, protocol)
            if sock.fileno() >= _handles_for(self._spare_files):  # the kernel gives the lowest one that is free
                _allow_files(2 * sock.fileno() + SPARE_FILES)  # an open loop does not know how many it will need
            if sock.fileno() >= _handles_for(self._spare_files):
                sock.close()
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._kernel_stamps:
                    ask_for_stamps(sock)
                await loop.sock_connect(sock, address)
                self._peer = str(address[0]).partition("%")[0]
                return sock
            except OSError as e:
                sock.close()
                last = e
            except BaseException:
                sock.close()
                raise
        raise last


def _allow_files(n: int) -> None:
    """Raise this process's limit of open files to `n` where the hard limit lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = n if hard == resource.RLIM_INFINITY else min(n, hard)
    if soft != resource.RLIM_INFINITY and top > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))


def _handles_for(spare: int) -> float:
    """How many file handles sockets may use; under a low limit at most a quarter is spared."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft - min(spare, soft // 4)


def _proxy_in(headers: dict[str, str]) -> str:
    """What stands between us and the engine, as far as its headers tell."""
    server = headers.get("server", "").lower()
    return headers.get("via", "") or next((p for p in PROXIES if p in server), "")


def request_bytes(origin: Origin, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
    """An HTTP/1.1 request with a JSON body."""
    payload = b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {origin.authority}\r\nUser-Agent: flipline-bench\r\n"
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
    except (ValueError, RecursionError):
        return None
    return json.loads(storable(json.dumps(found, ensure_ascii=False))) if isinstance(found, dict) else None


def error_message(exchange: Exchange) -> str:
    """What the server said about a refused request, in one line, and when it wants to be asked again."""
    body = exchange.body
    try:
        found = json.loads(body)
        error = found.get("error", found) if isinstance(found, dict) else found
        text = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    asked = exchange.headers.get("retry-after", "")
    return " ".join(storable(str(text)).split())[:300] + (f" (Retry-After: {asked[:40]})" if asked else "")
