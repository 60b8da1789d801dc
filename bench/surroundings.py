"""What surrounded a repeat: other programs on this machine, and whether the server is still the one that was checked.

The client asks for real-time priority, so a busy machine does not make it wait; it slows the server all the same. That
is seen in the kernel's own count of busy cores (/proc/stat), less what bench and everything that it started took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.preflight import identity
from bench.target import Target
from bench.telemetry import family_of
from planner.errors import ServerError


class Surroundings(NamedTuple):
    """The share of this machine's cores that other programs took, None where unknown; and what the server changed."""

    other_load_share: float | None = None
    contract_changed: tuple[str, ...] = ()


class CoreTime(NamedTuple):
    """A moment, and until then in seconds: all cores busy, and our own processes in them."""

    at_s: float
    busy_s: float
    ours_s: float


def core_time(ours: Iterable[int], root: Path = Path("/proc")) -> CoreTime | None:
    """Now, with these processes as our own; None where the kernel does not tell (Linux)."""
    tick = 1 / os.sysconf("SC_CLK_TCK")
    try:
        # proc(5): user nice system idle iowait irq softirq steal; what another virtual machine steals is other load too
        jiffies = [int(n) for n in (root / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    busy = sum(jiffies) - sum(jiffies[3:5])
    return CoreTime(time.monotonic(), busy * tick, sum(_spent(root / str(pid)) for pid in ours) * tick)


def _spent(process: Path) -> int:
    """Ticks of a process and of its children that have ended; proc(5): fields 14 to 17 of stat."""
    try:
        fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(n) for n in fields[11:15])


def other_load_share(before: CoreTime | None, after: CoreTime | None, cores: int) -> float | None:
    """Share of all cores that was busy between two moments and was not ours."""
    if before is None or after is None or after.at_s <= before.at_s:
        return None
    others = (after.busy_s - before.busy_s) - (after.ours_s - before.ours_s)
    return min(1.0, max(0.0, others / (cores * (after.at_s - before.at_s))))


class Watch:
    """Begins before a repeat; `look` after it says what surrounded it.

    A server on this machine that bench only attached to cannot be told from other programs: their load is unknown then.
    """

    def __init__(self, target: Target, known: dict[str, str]) -> None:
        self._target, self._known = target, known
        server = target.server
        self._told_apart = server.ours or not server.origin.local
        self._before = self._now()

    async def look(self) -> Surroundings:
        """Read again what was read before the repeat; a server that is gone changes nothing."""
        share = other_load_share(self._before, self._now(), os.cpu_count() or 1)
        if self._target.server.ended:
            return Surroundings(share)
        try:
            now = await identity(self._target)
        except ServerError as e:  # it serves another model
            return Surroundings(share, (str(e),))
        both = [name for name in self._known if name in now]
        return Surroundings(
            share, tuple(f"{n}: {self._known[n]} -> {now[n]}" for n in both if now[n] != self._known[n])
        )

    def _now(self) -> CoreTime | None:
        """What bench started is below bench, but for what runs in a container."""
        server = self._target.server.pid
        return core_time({*family_of(os.getpid()), *family_of(server or os.getpid())}) if self._told_apart else None
