"""What is read from this machine: the observed part of the contract, the environment, and its load."""

from __future__ import annotations

import gc
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from bench.exchange import Origin

TOOL_VERSION = "0.1.0"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def cpu_model() -> str:
    """Processor as the kernel names it."""
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def _os_name() -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release"), re.MULTILINE)
    return found.group(1) if found else platform.system()


def _memory_limit() -> str:
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    if limit.isdigit():
        return f"{int(limit) / 2**30:.1f} GiB (cgroup)"
    total = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return f"{int(total.group(1)) / 2**20:.1f} GiB" if total else ""


def _gpus() -> list[tuple[str, str]]:
    """(name, driver) per NVIDIA device, or nothing."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    if answer.returncode != 0:
        return []
    rows = [line.rsplit(",", 1) for line in answer.stdout.splitlines() if "," in line]
    return [(name.strip(), driver.strip()) for name, driver in rows]


def observed_machine(origin: Origin, devices: int) -> dict[str, str]:
    """Observed contract fields of the machine that serves; empty when that is another machine than this one.

    `devices` is how many the engine was told to use.
    """
    if not origin.local:
        return {}
    gpus = _gpus()
    gpu = {"gpu": gpus[0][0], "gpu_count": str(min(devices, len(gpus))), "driver": gpus[0][1]} if gpus else {
        "gpu": f"cpu: {cpu_model()}", "gpu_count": "0"}  # fmt: skip
    return {**gpu, "os": _os_name(), "cpu": cpu_model(), "memory_limit": _memory_limit()}


def environment(origin: Origin) -> dict[str, str]:
    """What the client ran on, and where it stands in relation to the server."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
        "tool_version": TOOL_VERSION,
        "httptools": metadata.version("httptools"),
        "pyarrow": metadata.version("pyarrow"),
        "client_scheduling": client_scheduling(),
        "placement": "same machine (loopback)" if origin.local else "another machine (network)",
    }


@contextmanager
def undisturbed() -> Iterator[bool]:
    """Stamp in time beside a server that takes every core: real-time priority where it is allowed, no collection.

    A client on a busy machine was seen to wake 130 ms late at p99, with every third read coalesced; with priority it
    was 2 ms and none. It uses a few per cent of a core, and children do not inherit it. Yields whether it was allowed.
    """
    gc.collect()
    gc.disable()
    allowed = _set_scheduler(os.SCHED_RR | os.SCHED_RESET_ON_FORK, 1)
    try:
        yield allowed
    finally:
        _set_scheduler(os.SCHED_OTHER, 0)
        gc.enable()


def _set_scheduler(policy: int, priority: int) -> bool:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError:
        return False
    return True


def waited_for_core_s() -> float | None:
    """Seconds that this process's main thread has waited for a core since its start; None where unknown (Linux)."""
    fields = _read("/proc/self/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) == 3 else None


def client_scheduling() -> str:
    """How the client is scheduled while load runs."""
    with undisturbed() as allowed:
        return "real-time while load runs" if allowed else "normal: real-time priority is not permitted"


def load_average() -> str:
    """Load over one minute."""
    return f"{os.getloadavg()[0]:.2f}"
