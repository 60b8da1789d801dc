"""One non-blocking socket with at most one exchange on it.

The reading loop is kept short, because what waits unread is merged by the kernel: read, stamp, append. The answer's
framing is looked at only where a read could end it; its body is taken apart after the load.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from socket import socket

import httptools

from bench.arrivals import CONTROL_BYTES, Arrivals
from bench.exchange import ERROR_KINDS, Exchange, Framing
from bench.readiness import Readiness

# Linux lets a sender have 64 KiB under way before the reader has read anything: a read this long means that the
# client held the server back.
READ_LIMIT = 65536
_END_OF_CHUNKS = b"\r\n\r\n"


class Tls:
    """TLS over memory, so that the socket is ours to read with stamps."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    async def handshake(self, sock: socket) -> None:
        """Agree with the server; raises OSError."""
        loop = asyncio.get_running_loop()
        done = False
        while not done:
            try:
                self._ssl.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            if self._outgoing.pending:
                await loop.sock_sendall(sock, self._outgoing.read())
            if not done:
                data = await loop.sock_recv(sock, READ_LIMIT)
                if not data:
                    raise ConnectionResetError("it closed the connection during the TLS handshake")
                self._incoming.write(data)

    def encrypt(self, data: bytes) -> bytes:
        """Records for the socket."""
        self._ssl.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """What the records that this read completes hold; raises OSError. b"" while none is complete."""
        self._incoming.write(data)
        pieces = []
        try:
            while piece := self._ssl.read(READ_LIMIT):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            pass  # the end of the socket follows
        return b"".join(pieces)


class Connection:
    """An open socket, watched by the running loop from now on."""

    def __init__(self, sock: socket, arrivals: Arrivals, readiness: Readiness, tls: Tls | None = None) -> None:
        self._sock, self._arrivals, self._readiness, self._tls = sock, arrivals, readiness, tls
        self._loop = asyncio.get_running_loop()
        self._exchange: Exchange | None = None
        self._framing: Framing | None = None
        self._whole: asyncio.Future[None] | None = None
        self._unsent = b""
        self._epoch = arrivals.epoch
        self.lost = False
        readiness.add(sock.fileno(), self._on_readable)

    @property
    def exchange(self) -> Exchange | None:
        """What is under way on it."""
        return self._exchange

    @property
    def reusable(self) -> bool:
        """Idle and still open, as far as we know."""
        return not self.lost and self._exchange is None

    def start(self, exchange: Exchange, request: bytes) -> asyncio.Future[None]:
        """Send a request; the future ends with the exchange."""
        self._exchange, self._framing = exchange, Framing(exchange)
        self._epoch = self._arrivals.epoch  # nothing waits on an idle socket
        self._whole = self._loop.create_future()
        self._send(self._tls.encrypt(request) if self._tls else request)
        return self._whole

    def give_up(self, kind: str) -> None:
        """End the exchange from our side; `kind` is a word of ERROR_KINDS."""
        self._end(kind, ERROR_KINDS[kind], time.monotonic())
        self.abort()

    def abort(self) -> None:
        """Close the socket at once."""
        if self.lost:
            return
        self.lost = True
        self._readiness.remove(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()

    def _send(self, data: bytes) -> None:
        try:
            n = self._sock.send(data)
        except BlockingIOError:
            n = 0
        except OSError as e:
            self._on_lost(e)
            return
        self._unsent = data[n:]
        if self._unsent:
            self._loop.add_writer(self._sock.fileno(), self._on_writable)
        elif self._exchange:
            self._exchange.sent = time.monotonic()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        self._send(self._unsent)

    def _on_readable(self) -> None:
        try:
            data, control, _, _ = self._sock.recvmsg(READ_LIMIT, CONTROL_BYTES)
        except BlockingIOError:
            return
        except OSError as e:
            self._on_lost(e)
            return
        arrived, sure = self._arrivals.time_of(control, self._epoch)
        exchange, framing = self._exchange, self._framing
        if not data:
            self._on_lost(None)
            return
        if len(data) == READ_LIMIT and exchange:
            exchange.full_reads += 1
        elif not sure:
            self._epoch = self._arrivals.epoch  # the socket is empty now
        if self._tls:
            try:
                data = self._tls.decrypt(data)
            except OSError as e:
                self._on_lost(e)
                return
            if not data:
                return
        if exchange is None or framing is None:
            self.abort()
            return
        exchange.wire.append((arrived, data))
        if not sure:
            exchange.unsure.add(arrived)
        if framing.tail_tells and len(data) >= len(_END_OF_CHUNKS) and not data.endswith(_END_OF_CHUNKS):
            return
        self._follow(exchange, framing, arrived)

    def _follow(self, exchange: Exchange, framing: Framing, arrived: float) -> None:
        """Look whether the answer is whole."""
        if exchange.first_byte is None:
            exchange.first_byte = arrived
        try:
            framing.advance()
        except httptools.HttpParserError as e:
            self._end("protocol", f"{ERROR_KINDS['protocol']}: {e}", arrived)
            self.abort()
            return
        if framing.whole:
            self._end("", "", arrived)
            if not framing.keep_alive:
                self.abort()

    def _on_lost(self, error: OSError | None) -> None:
        """The connection ended: by the server's wish, or broken."""
        exchange, framing, now = self._exchange, self._framing, time.monotonic()
        self.abort()
        if exchange is None or framing is None:
            return
        if error is not None:
            self._end("reset", f"{ERROR_KINDS['reset']}: {error}", now)
        elif framing.ends_with_connection:
            self._end("", "", now)
        else:
            self._end("closed", ERROR_KINDS["closed"], now)

    def _end(self, kind: str, error: str, at: float) -> None:
        exchange, self._exchange, self._framing, self._unsent = self._exchange, None, None, b""
        if exchange is None:
            return
        exchange.end, exchange.error_kind, exchange.error = at, kind, error
        if self._whole and not self._whole.done():
            self._whole.set_result(None)
