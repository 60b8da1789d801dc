"""One epoll for all sockets of a pool."""

from __future__ import annotations

import asyncio
import socket

from bench.readiness import Readiness


def test_every_readable_socket_is_called_in_one_wake_up() -> None:
    async def run() -> list[int]:
        readiness, seen, over = Readiness(), list[int](), asyncio.Event()
        pairs = [socket.socketpair() for _ in range(3)]
        for i, (ours, theirs) in enumerate(pairs):
            ours.setblocking(False)

            def read(i: int = i, ours: socket.socket = ours) -> None:
                ours.recv(10)
                seen.append(i)
                if len(seen) == len(pairs):
                    over.set()

            readiness.add(ours.fileno(), read)
            theirs.send(b"x")
        await asyncio.wait_for(over.wait(), 60)
        for ours, theirs in pairs:
            readiness.remove(ours.fileno())
            ours.close()
            theirs.close()
        return sorted(seen)

    assert asyncio.run(run()) == [0, 1, 2]


def test_a_socket_that_the_one_before_it_closed_is_left_alone() -> None:
    faults: list[object] = []

    async def run() -> int:
        readiness, called, over = Readiness(), list[int](), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, faced: faults.append(faced))
        pairs = [socket.socketpair() for _ in range(2)]

        def close_all() -> None:
            called.append(1)
            for ours, _ in pairs:
                readiness.remove(ours.fileno())
                ours.close()
            over.set()

        for ours, theirs in pairs:
            readiness.add(ours.fileno(), close_all)
            theirs.send(b"x")
        await asyncio.wait_for(over.wait(), 60)
        for _, theirs in pairs:
            theirs.close()
        return len(called)

    assert asyncio.run(run()) == 1
    assert faults == []
