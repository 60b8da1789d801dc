"""Servers made by hand for one connection: what they answer, byte by byte, and a pool on them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bench.exchange import Exchange, Origin
from bench.transport import Pool, request_bytes

T = TypeVar("T")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def against(
    handler: Handler, use: Callable[[Pool], Awaitable[T]], *, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
    **pool_options: Any,
) -> T:  # fmt: skip
    """Run `use` with a pool on a server whose every connection is `handler`; `tls` is the server's and the client's."""

    async def go() -> T:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls[0] if tls else None)
        origin = Origin("https" if tls else "http", "127.0.0.1", server.sockets[0].getsockname()[1])
        pool = Pool(origin, tls=tls[1] if tls else None, **pool_options)
        try:
            return await use(pool)
        finally:
            pool.close()
            server.close()

    return asyncio.run(go())


async def get(pool: Pool, timeout_s: float = 60.0) -> Exchange:
    return await pool.exchange(request_bytes(pool.origin, "GET", "/"), timeout_s=timeout_s)


async def run_out(waiting: asyncio.Task[Exchange], when: Callable[[], bool]) -> Exchange:
    """The exchange, whose time-out passes once `when` holds and not before: the loop's clock leaps over it."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    while not when():
        await asyncio.sleep(0)
    loop.time = lambda: clock() + 3600  # type: ignore[method-assign]
    try:
        return await waiting
    finally:
        loop.time = clock  # type: ignore[method-assign]


def replies(*parts: bytes, then_wait: bool = False) -> Handler:
    """Answer the first request of a connection with these bytes, then close."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then_wait:
            await reader.read()
        else:
            writer.close()
            await writer.wait_closed()

    return handler


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(text: str) -> bytes:
    return chunk(b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % text.encode())
