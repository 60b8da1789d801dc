"""Arrival times: the kernel's stamp on each read, brought to the client's clock.

The kernel stamps a segment on CLOCK_REALTIME when the network stack takes it in, however late the reader comes. The
client counts in CLOCK_MONOTONIC. Their difference only changes when somebody sets the wall clock, so it is looked at
on every wake-up; a stamp that may lie on the other side of such a step is not believed.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Collection, Sequence

NanoClock = Callable[[], int]

# Linux' number on x86-64 and aarch64; Python has no name for it before 3.14.
SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)
CONTROL_BYTES = 64
STEP_NS = 200_000  # two clock reads are less than 1 us apart unless the process lost its core in between
_TIMESPEC = struct.Struct("@ll")
_LOOKS = 5


def ask_for_stamps(sock: socket.socket) -> bool:
    """Have the kernel stamp what arrives; False where it does not do that."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


class Arrivals:
    """Stamps of all connections of one pool; `epoch` grows with every step of the wall clock that was seen.

    `unstamped` counts reads that came without a kernel stamp, `dropped` those whose stamp was not believed; both
    carry the time of the read instead. `steps_s` holds the steps in seconds.
    """

    def __init__(self, realtime_ns: NanoClock = time.time_ns, monotonic_ns: NanoClock = time.monotonic_ns) -> None:
        self._realtime_ns, self._monotonic_ns = realtime_ns, monotonic_ns
        self.epoch = self.reads = self.unstamped = self.dropped = 0
        self.steps_s: list[float] = []
        self._offset_ns = self._look_closely()

    def offset_s(self) -> float:
        """CLOCK_MONOTONIC minus the wall clock now, in seconds; losing the core between the two reads moves nothing."""
        return self._look_closely() * 1e-9

    def time_of(self, control: Sequence[tuple[int, int, bytes]], epoch: int) -> tuple[float, bool]:
        """Arrival in seconds on CLOCK_MONOTONIC, and whether that is known: a dropped stamp gives an upper bound.

        `control` is recvmsg's ancillary data; `epoch` is the one in which the reader last had an empty socket.
        """
        now = self._monotonic_ns()
        if abs(now - self._realtime_ns() - self._offset_ns) > STEP_NS:
            self._check_for_step()
        self.reads += 1
        if not control:
            self.unstamped += 1
            return now * 1e-9, True
        if epoch != self.epoch:
            self.dropped += 1
            return now * 1e-9, False
        seconds, nanoseconds = _TIMESPEC.unpack(control[0][2])
        return min(now, seconds * 1_000_000_000 + nanoseconds + self._offset_ns) * 1e-9, True

    def _look_closely(self) -> int:
        """Monotonic minus realtime, from the closest of a few pairs of reads."""
        pairs = []
        for _ in range(_LOOKS):
            before, wall, after = self._monotonic_ns(), self._realtime_ns(), self._monotonic_ns()
            pairs.append((after - before, (before + after) // 2 - wall))
        return min(pairs)[1]

    def _check_for_step(self) -> None:
        offset = self._look_closely()
        if abs(offset - self._offset_ns) > STEP_NS // 2:
            self.steps_s.append((self._offset_ns - offset) * 1e-9)
            self._offset_ns = offset
            self.epoch += 1


def upper_bounds(times: Sequence[float], unsure: Collection[float] = ()) -> tuple[bool, ...]:
    """Which of an answer's chunk times are only upper bounds.

    The kernel merges segments that wait unread and keeps the stamp of the last one, so of equal times all but the
    last are; so is every time in `unsure`.
    """
    return tuple(t in unsure or (i + 1 < len(times) and times[i + 1] == t) for i, t in enumerate(times))
