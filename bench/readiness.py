"""Which of many sockets can be read, asked once for all of them.

asyncio makes an event, a handle and a context switch of every socket that is ready; when a decode step reaches 512
streams in the same tick that costs more than the reads. Here the loop watches one epoll, and its sockets' callbacks
run one after another.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable


class Readiness:
    """The sockets of one pool, watched by the running loop while there are any."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None

    def add(self, fileno: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the socket can be read."""
        if self._epoll is None:
            asyncio.get_running_loop().add_reader(fileno, callback)
            return
        if not self._callbacks:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._read_all)
        self._callbacks[fileno] = callback
        self._epoll.register(fileno, select.EPOLLIN)

    def remove(self, fileno: int) -> None:
        """Watch it no longer; it must still be open."""
        if self._epoll is None:
            asyncio.get_running_loop().remove_reader(fileno)
        elif self._callbacks.pop(fileno, None):
            self._epoll.unregister(fileno)
            if not self._callbacks:
                asyncio.get_running_loop().remove_reader(self._epoll.fileno())

    def _read_all(self) -> None:
        assert self._epoll is not None
        callbacks = self._callbacks
        for fileno, _ in self._epoll.poll(0):
            if callback := callbacks.get(fileno):  # one before it may have closed this one
                callback()
