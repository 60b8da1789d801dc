"""What on this machine would spoil a measurement, each with a sentence and the way out.

Every check reads the kernel's own files below `root`, so that a test can show it another machine.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from bench.machine import undisturbed

State = Literal["ok", "note", "spoils"]
OPEN_FILES_WANTED = 4096  # 2,000 connections, and as much again for a server on the same machine
STEADY_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen", "arm-pv-clock")
SWAP_USED_MIB = 64
BUSY_SHARE = 0.1
LOOK_S = 0.5
_STAMP_TRIES = 50
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h


class Check(NamedTuple):
    """One thing that was looked at; `note` does not spoil by itself, but explains a figure that looks odd."""

    name: str
    state: State
    sentence: str
    way_out: str = ""


def _read(root: Path, path: str) -> str:
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def governor(root: Path) -> Check:
    """Frequency governor of every core."""
    cores = root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({_read(c.parent, c.name) for c in cores})
    if not found:
        return Check("cpu governor", "ok", "Nothing on this machine changes the cores' frequency; a host below may.")
    if found == ["performance"]:
        return Check("cpu governor", "ok", "Every core runs at its full frequency.")
    return Check("cpu governor", "spoils", f"Cores change their frequency with the load (governor {', '.join(found)}).",
                 "As root: cpupower frequency-set -g performance")  # fmt: skip


def clock_source(root: Path) -> Check:
    """The kernel's clock source."""
    folder = "sys/devices/system/clocksource/clocksource0"
    found = _read(root, f"{folder}/current_clocksource")
    if not found:
        return Check("clock source", "note", "The kernel does not say which clock it reads.")
    if found in STEADY_CLOCKS:
        return Check("clock source", "ok", f"The clock is {found}: read in well below a microsecond.")
    return Check("clock source", "spoils", f"The clock is {found}: every reading takes microseconds.",
                 f"As root: echo tsc > /{folder}/current_clocksource, or boot with tsc=reliable")  # fmt: skip


def open_files(root: Path, limits: tuple[int, int] | None = None) -> Check:
    """Open files that one process may have."""
    soft, hard = limits or resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= OPEN_FILES_WANTED:
        return Check("open files", "ok", f"A process may open {'any number of' if soft < 0 else f'{soft:,}'} files.")
    may_raise = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_WANTED
    return Check("open files", "spoils", f"A process may open only {soft:,} files, and every connection is one.",
                 f"In this shell: ulimit -n {OPEN_FILES_WANTED}" if may_raise
                 else "Raise nofile in /etc/security/limits.conf, or --ulimit nofile of the container")  # fmt: skip


def swap(root: Path) -> Check:
    """Swap in use."""
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", _read(root, "proc/meminfo"), re.MULTILINE))
    used_mib = (int(fields.get("SwapTotal", 0)) - int(fields.get("SwapFree", 0))) / 1024
    if used_mib <= SWAP_USED_MIB:
        return Check("swap", "ok", "No swap is in use.")
    return Check("swap", "spoils", f"{used_mib:,.0f} MiB of swap are in use: a page that comes back stalls.",
                 "End what needs the memory, then as root: swapoff -a && swapon -a")  # fmt: skip


def _times(root: Path) -> tuple[int, int]:
    """Idle and total jiffies of all cores together."""
    first = (_read(root, "proc/stat").splitlines() or [""])[0].split()[1:9]
    numbers = [int(n) for n in first]
    return sum(numbers[3:5]), sum(numbers)


def other_load(root: Path, pause: Callable[[float], None] = time.sleep) -> Check:
    """Share of all cores that something else uses right now, over half a second."""
    idle, total = _times(root)
    pause(LOOK_S)
    idle_then, total_then = _times(root)
    passed = total_then - total
    share = 1 - (idle_then - idle) / passed if passed > 0 else 0.0
    if share <= BUSY_SHARE:
        return Check("other load", "ok", f"{share:.0%} of the cores' time is used now.")
    return Check("other load", "spoils", f"Something else uses {share:.0%} of the cores' time now.",
                 "See what it is with top, and stop it for as long as you measure")  # fmt: skip


def cores(root: Path, number: int | None = None) -> Check:
    """Cores that this process may use."""
    n = number if number is not None else len(os.sched_getaffinity(0))
    if n >= 2:
        return Check("cores", "ok", f"{n} cores may be used.")
    return Check("cores", "spoils", "Client and server share one core, so each waits for the other.",
                 "Measure from another machine, or give this one a second core")  # fmt: skip


def real_time(root: Path) -> Check:
    """Whether the client may ask for real-time priority while load runs."""
    with undisturbed() as allowed:
        if allowed:
            return Check("real-time priority", "ok", "The client may stamp in time beside a busy server.")
    return Check("real-time priority", "note",
                 "Real-time priority is not permitted: beside a server that takes every core, stamps come late.",
                 "Run as root, or set rtprio 1 in /etc/security/limits.conf, or --cap-add SYS_NICE of the container",
                 )  # fmt: skip


def kernel_timestamps(root: Path) -> Check:
    """Whether a socket hands over the kernel's arrival time."""
    try:
        stamped = _stamped()
    except OSError as e:
        return Check("kernel timestamps", "spoils", f"The loopback interface cannot be used: {e.strerror or e}.",
                     "As root: ip link set lo up")  # fmt: skip
    if stamped:
        return Check("kernel timestamps", "ok", "The kernel stamps what arrives, however late it is read.")
    return Check("kernel timestamps", "note", "The kernel does not stamp what arrives: a busy client stamps late.",
                 "Measure on Linux without a sandbox such as gVisor")  # fmt: skip


def _stamped() -> bool:
    """Send bytes over loopback until one is stamped: the kernel turns stamping on a little after it is asked."""
    with socket.socket() as listening, socket.socket() as sender:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        sender.connect(listening.getsockname())
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(2)
            try:
                taken.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            except OSError:  # a kernel that does not know the option
                return False
            for _ in range(_STAMP_TRIES):
                sender.sendall(b"x")
                _, extra, _, _ = taken.recvmsg(1, socket.CMSG_SPACE(struct.calcsize("@ll")))
                if any((level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) for level, kind, _ in extra):
                    return True
                time.sleep(0.01)
    return False


CHECKS: tuple[Callable[[Path], Check], ...] = (
    governor, clock_source, open_files, swap, other_load, cores, real_time, kernel_timestamps,
)  # fmt: skip


def examine(root: Path = Path("/")) -> list[Check]:
    """Look at everything once; takes about half a second."""
    return [check(root) for check in CHECKS]
