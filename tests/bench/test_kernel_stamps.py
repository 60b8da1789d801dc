"""Times of arrival while our loop is kept busy: the kernel's stamps over real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

from bench.arrivals import upper_bounds
from bench.exchange import Exchange, Origin
from bench.sse import read_answer
from bench.transport import Pool
from tests.bench.sockets import CHUNKED, chunk, event, get


class Writer(threading.Thread):
    """A server for one request in a thread of its own, so that it writes while our loop is kept busy."""

    def __init__(self, *parts: bytes, every_s: float = 0.0) -> None:
        super().__init__()
        self._parts, self._every_s = parts, every_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.written: list[float] = []  # just before each write
        self.ended = 0.0  # just after the last one
        self.head_sent, self.go_on, self.all_sent = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        connection, _ = self._listening.accept()
        with self._listening, connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.recv(65536)
            connection.sendall(CHUNKED)
            self.head_sent.set()
            self.go_on.wait()
            for part in self._parts:
                self.written.append(time.monotonic())
                connection.sendall(part)
                time.sleep(self._every_s)
            self.all_sent.set()
            connection.sendall(b"0\r\n\r\n")
            self.ended = time.monotonic()
            connection.recv(1)


def read_late(writer: Writer, **pool_options: Any) -> tuple[Exchange, float, Pool]:
    """An exchange whose body arrives while the loop does something else; also when the loop was free again."""
    writer.start()

    async def use() -> tuple[Exchange, float, Pool]:
        pool = Pool(Origin("http", "127.0.0.1", writer.port), **pool_options)
        await pool.open(1)
        running = asyncio.create_task(get(pool))
        while not writer.head_sent.is_set():
            await asyncio.sleep(0)
        writer.go_on.set()
        writer.all_sent.wait()  # the loop stands still here
        until = pool.clock() + 0.02
        while pool.clock() < until:
            pass
        exchange = await running
        pool.close()
        return exchange, until, pool

    found = asyncio.run(use())
    writer.join()
    return found


def test_a_busy_loop_does_not_move_the_time_of_arrival() -> None:
    writer = Writer(event("a"))
    exchange, free_again, pool = read_late(writer)
    ((arrived, _),) = exchange.reads
    # On loopback the kernel stamps inside the sender's call, 20 ms before the loop was free; 1 ms is for the clocks.
    assert writer.written[0] - 0.001 <= arrived <= writer.ended + 0.001
    assert arrived < free_again
    assert pool.clock_facts()["kind"] == "kernel"


def test_what_waited_unread_is_a_group_of_equal_times_whose_last_is_right() -> None:
    writer = Writer(event("a"), event("b"), event("c"), every_s=0.02)
    exchange, _, _ = read_late(writer)
    times = [c.t for c in read_answer(exchange.reads).chunks]
    assert upper_bounds(times) == (True, True, False)
    assert writer.written[2] - 0.001 <= times[2] <= writer.ended + 0.001
    assert all(t >= written - 0.001 for t, written in zip(times, writer.written, strict=True)), "bounds from above"


def test_without_kernel_stamps_the_time_is_that_of_the_read_and_the_manifest_says_so() -> None:
    exchange, free_again, pool = read_late(Writer(event("a")), kernel_stamps=False)
    assert exchange.reads[0][0] >= free_again
    facts = pool.clock_facts()
    assert (facts["kind"], facts["stamped"]) == ("user-space", "when the event loop hands over a read")
    assert facts["reads"] == facts["reads_without_kernel_stamp"] != "0"


def test_a_full_receive_buffer_is_counted() -> None:
    exchange, _, _ = read_late(Writer(*[chunk(b"x" * 40_000)] * 3))
    assert exchange.full_reads > 0
    assert len(exchange.body) == 120_000
    assert read_late(Writer(event("a")))[0].full_reads == 0
