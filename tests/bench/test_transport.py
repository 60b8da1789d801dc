"""The client over real sockets: what it stamps, and what it says when a server misbehaves."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.exchange import ERROR_KINDS, Exchange, Framing, Origin, body_reads
from bench.sse import read_answer
from bench.transport import Pool, _proxy_in, error_message, fetch_json
from planner.errors import ServerError
from tests.bench.helpers import free_port
from tests.bench.sockets import CHUNKED, against, chunk, event, get, replies

HERE = Path(__file__).parent
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


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


def test_a_stale_connection_that_cannot_be_opened_again_leaves_a_request_without_one() -> None:
    async def use(pool: Pool) -> Exchange:
        await pool.open(1)
        pool._addresses = [(*pool._addresses[0][:4], ("127.0.0.1", free_port()))]  # nobody takes a second one
        return await get(pool)

    e = against(replies(), use)
    assert (e.error_kind, e.reconnected) == ("connect", True)
    assert (e.connected, e.sent) == (None, None)


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


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "Expected HTTP/"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc", "Invalid character in Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\nabc", "Chunk size overflow"),
    ],
)
def test_something_that_is_not_http_is_named(wire: bytes, why: str) -> None:
    e = against(replies(wire, then_wait=True), get)
    assert e.error_kind == "protocol"
    assert e.error.startswith("the answer is not HTTP: ") and why in e.error
    assert e.body == b""


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
    endless = b"[" * 100_000
    assert against(replies(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(endless), endless)), use) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no such\\nmodel"}}', "no such model"),
        (b'{"error": "plain"}', "plain"),
        (b'{"error": "half \\ud83d a pair"}', "half ? a pair"),
        (b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"),
    ],
)
def test_a_refusal_is_read_as_one_line(body: bytes, message: str) -> None:
    wire = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    assert error_message(Exchange(0.0, wire=[(0.0, wire)])) == message


def test_urls_give_scheme_host_and_port() -> None:
    assert Origin.of("http://localhost:8000") == ("http", "localhost", 8000)
    assert Origin.of("https://gpu.example") == ("https", "gpu.example", 443)
    assert Origin.of("http://127.0.0.1:1").local
    assert not Origin.of("http://10.0.0.7:8000").local


def test_error_kinds_are_words_for_a_table() -> None:
    assert all(kind == kind.lower() and text for kind, text in ERROR_KINDS.items())


def test_the_manifest_names_the_path_and_a_proxy() -> None:
    answer = b"HTTP/1.1 200 OK\r\nServer: nginx/1.27\r\nContent-Length: 2\r\n\r\n{}"

    async def use(pool: Pool) -> dict[str, str]:
        assert pool.clock_facts()["path"] == "not connected"
        await get(pool)
        return pool.clock_facts()

    facts = against(replies(answer), use)
    assert (facts["path"], facts["proxy"]) == ("loopback", "nginx: measured up to there")
    assert "no network card" in facts["path_limit"]


@pytest.mark.parametrize(
    ("peer", "headers", "path", "proxy"),
    [
        ("127.0.0.1", {}, "loopback", None),
        ("10.0.0.7", {"server": "uvicorn"}, "LAN", None),
        ("192.168.1.20", {"via": "1.1 gateway"}, "LAN", "1.1 gateway: measured up to there"),
        ("100.101.102.103", {"server": "envoy"}, "network", "envoy: measured up to there"),
        ("8.8.8.8", {"server": "nginx/1.27"}, "network", "nginx: measured up to there"),
        ("::1", {}, "loopback", None),
    ],
)
def test_the_path_is_told_by_the_address_and_by_what_answers(
    peer: str, headers: dict[str, str], path: str, proxy: str | None
) -> None:
    pool = Pool(Origin("http", "gpu.example", 8000))
    pool._peer, pool._proxy = peer, _proxy_in(headers)
    facts = pool.clock_facts()
    assert (facts["path"], facts.get("proxy")) == (path, proxy)
    assert ("path_limit" in facts) == (path == "loopback")


def test_neither_aiohttp_nor_httpx_is_loaded_by_a_run() -> None:
    code = "import bench.runner, bench.shard, sys; print([m for m in ('aiohttp', 'httpx') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parents[1], check=True)
    assert told.stdout == "[]\n"


def tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(HERE / "tls" / "localhost.crt", HERE / "tls" / "localhost.key")
    return server, ssl.create_default_context(cafile=str(HERE / "tls" / "localhost.crt"))


def test_over_tls_every_event_has_the_time_of_the_read_that_completes_its_record() -> None:
    go_on = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(CHUNKED + event("a"))
            await go_on.wait()
            writer.write(event("b") + b"0\r\n\r\n")

    async def use(pool: Pool) -> tuple[list[Exchange], float, dict[str, str]]:
        running = asyncio.create_task(get(pool))
        while not any(c._exchange and c._exchange.reads for c in pool._busy):
            await asyncio.sleep(0)
        between = pool.clock()
        go_on.set()
        return [await running, await get(pool)], between, pool.clock_facts()

    (first, second), between, facts = against(handler, use, tls=tls_contexts())
    assert [e.error_kind for e in (first, second)] == ["", ""]
    a, b = read_answer(first.reads).chunks
    assert a.t < between < b.t
    assert facts["path"] == "loopback, TLS"


def test_an_untrusted_certificate_is_one_sentence() -> None:
    server, _ = tls_contexts()
    stranger = ssl.create_default_context()
    e = against(replies(OK), get, tls=(server, stranger))
    assert e.error_kind == "connect"
    assert "certificate" in e.error.lower()


def test_no_more_file_handles_is_our_fault_and_not_the_servers() -> None:
    code = """
import asyncio, resource, sys
from bench.transport import Origin, Pool, request_bytes
from planner.errors import NotAllowed
async def go():
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    origin = Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1])
    pool, other = Pool(origin), Pool(origin)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        await pool.open(2000)
    except NotAllowed as e:
        print(e)
    print((await other.exchange(request_bytes(origin, "GET", "/"), timeout_s=60)).error_kind)
    pool.close()
asyncio.run(go())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parents[1], check=True)
    said, kind = done.stdout.splitlines()
    assert "this machine gives no more connections: Too many open files. Raise `ulimit -n`" in said
    assert kind == "client"


ANSWERS = {
    "chunks, lines of LF": CHUNKED + chunk(b"data: 1\n\n") + chunk(b"data: 2\n\n") + b"0\r\n\r\n",
    "chunks, lines of CR LF": CHUNKED + chunk(b"data: 1\r\n\r\n") + chunk(b"data: 2\r\n\r\n") + b"0\r\n\r\n",
    "chunks and a trailer": CHUNKED + chunk(b"data: 1\n\n") + b"0\r\nX-Sum: 1\r\n\r\n",
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\ndata: 1\r\n\r\n",
    "an interim answer first": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
}


@settings(max_examples=60)
@given(answer=st.sampled_from(sorted(ANSWERS)), cuts=st.lists(st.integers(1, 150), max_size=12))
def test_the_end_is_found_however_the_bytes_are_cut(answer: str, cuts: list[int]) -> None:
    whole = ANSWERS[answer]
    at = sorted({c for c in cuts if c < len(whole)})
    pieces = [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]
    exchange = Exchange(0.0)
    framing = Framing(exchange)
    for i, piece in enumerate(pieces):
        assert not framing.whole
        exchange.wire.append((float(i), piece))
        if not (framing.tail_tells and len(piece) >= 4 and not piece.endswith(b"\r\n\r\n")):
            framing.advance()
    assert framing.whole
    assert exchange.body == b"".join(data for _, data in body_reads([(0.0, whole)]))
