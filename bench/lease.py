"""Which processes are ours: a note beside the log of every server that bench starts, and the proof it allows.

The note is written before the start, so that nothing started goes unnoted, and it outlives a bench that was killed. A
process is ours when its environment carries the note's token, or when it belongs to the session whose leader is the
very process that bench started (number and start time). Only the standard library: the guard loads nothing else.
Proof needs Linux' /proc; elsewhere nothing is proved, so nothing is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import uuid
from pathlib import Path
from typing import NamedTuple

TOKEN = "FLIPLINE_LEASE"
SUFFIX = ".lease"
_LOOK_EVERY_S = 0.02
_GONE_WITHIN_S = 5.0  # after SIGKILL; a process may still be giving back its memory


class Process(NamedTuple):
    """A process beyond the reuse of its number; `started` is in clock ticks after boot."""

    pid: int
    started: int


class Lease(NamedTuple):
    """One server of ours; `server` is the process that bench started, once it has."""

    token: str
    boot: str
    bench: Process
    command: tuple[str, ...]
    url: str
    server: Process | None = None
    runtime: str = ""
    cidfile: str = ""


def new_lease(command: tuple[str, ...], url: str, *, runtime: str = "", cidfile: str = "") -> Lease:
    """A note about a server that this process is about to start."""
    me = process(os.getpid()) or Process(os.getpid(), 0)
    return Lease(uuid.uuid4().hex, boot_id(), me, command, url, None, runtime, cidfile)


def write_lease(path: Path, lease: Lease) -> None:
    """Write the note in one rename."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(lease._asdict()), encoding="utf-8")
    part.replace(path)


def read_lease(path: Path) -> Lease | None:
    """Read a note; None when there is none or it is not one."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        server = Process(*raw.pop("server")) if raw["server"] else raw.pop("server")
        return Lease(**{**raw, "bench": Process(*raw["bench"]), "command": tuple(raw["command"]), "server": server})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def boot_id() -> str:
    """This boot of this machine, as the kernel names it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process(pid: int) -> Process | None:
    """A live process by its number; None when it is gone or only waits for its parent to read its exit code."""
    fields = _stat(pid)
    return Process(pid, int(fields[19])) if fields and fields[0] not in "ZX" else None


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on: [0] state, [3] session, [19] start time (proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def alive(found: Process | None) -> bool:
    """That very process still runs."""
    return found is not None and process(found.pid) == found


def ours(lease: Lease) -> list[Process]:
    """Every live process that the note proves to be ours; none when the machine was started anew since."""
    if not lease.boot or lease.boot != boot_id():
        return []
    mark, session = f"{TOKEN}={lease.token}".encode(), lease.server.pid if alive(lease.server) and lease.server else 0
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        pid = int(entry.name)
        fields = _stat(pid)
        if not fields or fields[0] in "ZX":
            continue
        if (session and int(fields[3]) == session) or mark in _environment(entry).split(b"\0"):
            found.append(Process(pid, int(fields[19])))
    return found


def _environment(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


def end_all(found: list[Process], grace_s: float) -> None:
    """SIGTERM to each, and SIGKILL to those that do not hear it within the grace; returns when they are gone."""
    for number, within_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _GONE_WITHIN_S)):
        for p in found:
            if alive(p):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(p.pid, number)
        deadline = time.monotonic() + within_s
        while any(alive(p) for p in found) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)


def clean_up(path: Path, grace_s: float) -> list[str]:
    """End what a note proves to be ours, remove the note, and say what was ended; blocks for the grace, at most twice.

    Raises ServerError when a container could not be stopped; the note stays then, and the next one tries again.
    """
    lease = read_lease(path)
    if lease is None:
        return []
    found, said = ours(lease), []
    try:
        if lease.cidfile:
            from bench.containers import stop_container  # loads pydantic, which the guard does without otherwise

            gone = stop_container(lease.runtime, Path(lease.cidfile), grace_s, starting=bool(found))
            said += [f"container {gone[:12]}"] if gone else []
    finally:
        if found:
            end_all(found, grace_s)
            end_all(ours(lease), 0.0)  # children that were born while their parents went down
            said.append(f"process {', '.join(str(p.pid) for p in found)}")
    path.unlink(missing_ok=True)
    return [f"{' and '.join(said)} of {' '.join(lease.command[:4])}"] if said else []
