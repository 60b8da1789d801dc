"""The client over real sockets: what it stamps, and what it says when a server misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from bench.transport import ERROR_KINDS, Exchange, Origin, Pool, error_message, fetch_json, request_bytes
from planner.errors import ServerError
from tests.bench.helpers import free_port

T = TypeVar("T")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def against(handler: Handler, use: Callable[[Pool], Awaitable[T]]) -> T:
    """Run `use` with a pool on a server whose every connection is `handler`."""

    async def go() -> T:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        pool = Pool(Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1]))
        try:
            return await use(pool)
        finally:
            pool.close()
            server.close()

    return asyncio.run(go())


async def get(pool: Pool, timeout_s: float = 5.0) -> Exchange:
    return await pool.exchange(request_bytes(pool.origin, "GET", "/"), timeout_s=timeout_s)


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


def test_times_of_one_exchange_are_in_order() -> None:
    e = against(replies(OK), get)
    assert (e.status, e.body, e.error_kind) == (200, b"{}", "")
    assert e.connected and e.sent and e.first_byte and e.end
    assert e.dispatched <= e.connected <= e.sent <= e.first_byte <= e.end


def test_every_read_of_a_chunked_body_carries_its_own_time() -> None:
    go_on = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await go_on.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        await reader.read()

    async def use(pool: Pool) -> tuple[Exchange, float]:
        running = asyncio.create_task(get(pool))
        while not any(c._exchange and c._exchange.reads for c in pool._busy):
            await asyncio.sleep(0)
        between = pool.clock()
        go_on.set()
        return await running, between

    exchange, between = against(handler, use)
    (first, one), (second, two) = exchange.reads
    assert (one, two) == (b"one", b"two")
    assert first < between < second


def test_a_kept_connection_is_used_again() -> None:
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)

    async def use(pool: Pool) -> list[Exchange]:
        await pool.open(1)
        return [await get(pool) for _ in range(3)]

    assert [e.reconnected for e in against(handler, use)] == [False] * 3
    assert connections == 1


def test_a_stale_connection_is_opened_again_and_the_request_says_so() -> None:
    opened = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await reader.readuntil(b"\r\n\r\n")
        if opened > 1:  # the first connection closes when a request comes, as after a keep-alive time-out
            writer.write(OK)
            await reader.read()

    async def use(pool: Pool) -> Exchange:
        await pool.open(1)
        return await get(pool)

    e = against(handler, use)
    assert (e.status, e.reconnected, e.error_kind) == (200, True, "")
    assert opened == 2


def test_a_server_that_closes_a_new_connection_has_failed() -> None:
    e = against(replies(), get)
    assert (e.error_kind, e.status, e.reconnected) == ("closed", None, False)


def test_a_body_that_breaks_off_is_closed_and_keeps_what_came() -> None:
    e = against(replies(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive."), get)
    assert (e.error_kind, e.body) == ("closed", b"five.")


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    e = against(replies(b"HTTP/1.1 200 OK\r\n\r\nall of it"), get)
    assert (e.error_kind, e.body) == ("", b"all of it")


def test_a_stalled_answer_ends_in_time() -> None:
    e = against(replies(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", then_wait=True), lambda p: get(p, 0.05))
    assert e.error_kind == "timeout"


def test_something_that_is_not_http_is_named() -> None:
    assert against(replies(b"SSH-2.0-OpenSSH\r\n"), get).error_kind == "protocol"


def test_cancelling_ends_what_is_in_flight_from_our_side() -> None:
    async def use(pool: Pool) -> Exchange:
        running = asyncio.create_task(get(pool))
        while not pool._busy:
            await asyncio.sleep(0)
        pool.cancel_all()
        return await running

    assert against(replies(then_wait=True), use).error_kind == "cancelled"


def test_a_server_that_is_not_there_is_one_sentence_with_the_way_out() -> None:
    port = free_port()

    async def use() -> Exchange:
        pool = Pool(Origin("http", "127.0.0.1", port))
        with pytest.raises(ServerError, match=rf"127.0.0.1:{port}: the server is not there.*correct the url"):
            await pool.open(1)
        return await get(pool)

    assert asyncio.run(use()).error_kind == "connect"


def test_only_a_json_object_counts_as_an_answer() -> None:
    async def use(pool: Pool) -> object:
        return await fetch_json(pool, "GET", "/")

    assert against(replies(OK), use) == {}
    assert against(replies(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"), use) is None
    assert against(replies(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"), use) is None
    assert against(replies(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{!"), use) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no such\\nmodel"}}', "no such model"),
        (b'{"error": "plain"}', "plain"),
        (b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"),
    ],
)
def test_a_refusal_is_read_as_one_line(body: bytes, message: str) -> None:
    assert error_message(Exchange(0.0, reads=[(0.0, body)])) == message


def test_urls_give_scheme_host_and_port() -> None:
    assert Origin.of("http://localhost:8000") == ("http", "localhost", 8000)
    assert Origin.of("https://gpu.example") == ("https", "gpu.example", 443)
    assert Origin.of("http://127.0.0.1:1").local
    assert not Origin.of("http://10.0.0.7:8000").local


def test_error_kinds_are_words_for_a_table() -> None:
    assert all(kind == kind.lower() and text for kind, text in ERROR_KINDS.items())
