"""The server under test: started by us as an argument list and stopped by us, or attached to.

A server of ours never outlives bench: `stop` ends it, `kill_what_runs` on the way out after a fault, the guard
(bench/guard.py) when bench was killed, and the next run when the guard was killed too (bench/lease.py).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench import containers, guard
from bench.consent import is_emulator_command
from bench.dialects import Dialect
from bench.exchange import Origin
from bench.lease import SUFFIX, TOKEN, Lease, Process, end_all, new_lease, ours, process, write_lease
from bench.transport import Pool, request_bytes
from planner.errors import NotAllowed, ServerError
from planner.poc import Launch

OOM_PATTERN = re.compile(r"out of memory|OutOfMemoryError|oom-kill|cannot allocate memory", re.IGNORECASE)
STOP_GRACE_S = 15.0
CIDFILE = ".cid"
SETTINGS = ".settings"
_ROOT = Path(__file__).resolve().parent.parent
_running: set[int] = set()


class Ended(NamedTuple):
    """How a server process ended, in words fit for a manifest."""

    exit_code: int
    oom: bool
    error: str


class Server:
    """One server: `start` or `attach` first, `stop` at the end. `ended` is set once its process is gone.

    What belongs to it lies beside its log: the lease while it runs, and the id of its container.
    """

    def __init__(self, launch: Launch, dialect: Dialect, log: Path | None) -> None:
        self.launch, self.dialect, self.log = launch, dialect, log
        self.origin = Origin.of(launch.url)
        self.startup_s: float | None = None
        self.image: containers.Image | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._lease: Lease | None = None
        self._inside: int | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the server while it runs, when we started it; of the first one in its container."""
        running = self._process is not None and self._process.poll() is None
        if not running or not self._process:
            return None
        return self._inside if self.launch.container else self._process.pid

    @property
    def process(self) -> Process | None:
        """The process that we started, also once it has ended; None when we attached, or where there is no /proc."""
        return self._lease.server if self._lease else None

    @property
    def ours(self) -> bool:
        """We started it."""
        return self._process is not None

    @property
    def ended(self) -> Ended | None:
        """How it ended, or None while it runs or is not ours."""
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        text = self.read_log()
        oom = bool(OOM_PATTERN.search(text)) or code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "its log is empty")
        return Ended(code, oom, f"the server ended with exit code {code}: {last[:200]}")

    def read_log(self) -> str:
        """The log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log and self.log.exists() else ""

    async def start(self) -> None:
        """Start the command in a process group of its own and wait until it is healthy.

        Raises ServerError when it ends before, cannot be run, or is not ready in time; NotAllowed when something else
        already answers at the address, because then that would be measured.
        """
        assert self.log is not None
        if await _answers(self.origin):
            raise NotAllowed("something already answers there, and it would be measured in place of the new server.",
                             where=str(self.origin), fix="Stop it, or remove `command` from the plan to attach to it."
                             )  # fmt: skip
        began = time.monotonic()
        command, environment = self._prepared()
        with self.log.open("wb") as out:
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as e:
                fix = "Install the engine here, or correct the command in the plan."
                raise ServerError(f"{command[0]} cannot be started: {e.strerror}.", fix=fix) from None
        _running.add(self._process.pid)
        assert self._lease is not None
        self._lease = self._lease._replace(server=process(self._process.pid))
        write_lease(self._beside(SUFFIX), self._lease)
        await self._wait_ready(began + self.launch.ready_timeout_s)
        self.startup_s = time.monotonic() - began
        if self.launch.container:
            self._inside = containers.root_pid(self.launch.container.runtime, self._beside(CIDFILE))

    def _beside(self, suffix: str) -> Path:
        assert self.log is not None
        return self.log.with_suffix(suffix)

    def _prepared(self) -> tuple[list[str], dict[str, str]]:
        """Note the start, set the guard on it, and give the command as it is run, with its environment.

        The note and the guard come first: a bench that is killed at any later moment leaves nothing behind.
        """
        launch, container = self.launch, self.launch.container
        lease, written = new_lease(launch.command, launch.url), self._written()
        command = [str(written.get(word, word)) for word in launch.command]
        environment = {**os.environ, **launch.environment}
        if container:
            cidfile = self._beside(CIDFILE).absolute()
            lease = lease._replace(runtime=container.runtime, cidfile=str(cidfile))
            self.image = containers.find_image(container, where=str(self.origin))
            command = containers.run_arguments(launch, self.image, cidfile, lease.token, written)
            environment = {**os.environ}
        elif is_emulator_command(launch.command):
            command[0] = sys.executable
            environment["PYTHONPATH"] = _own_path()
        self._lease = lease
        write_lease(self._beside(SUFFIX), lease)
        self._guard = subprocess.Popen(
            [sys.executable, "-m", guard.__name__, str(self._beside(SUFFIX).absolute()), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": _own_path()}, start_new_session=True,
        )  # fmt: skip
        return command, environment | {TOKEN: lease.token}

    def _written(self) -> dict[str, Path]:
        """Write the launch's configuration files into a folder beside the log, and say where each is."""
        paths = {}
        for name, text in self.launch.config_files.items():
            path = self._beside(SETTINGS).absolute() / name
            try:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
                path.chmod(0o644)  # a container's user is another one
            except OSError as e:
                raise ServerError(f"{name} cannot be written: {e.strerror}.", where=str(path.parent),
                                  fix="Make room there, or choose another folder.") from None  # fmt: skip
            paths[name] = path
        return paths

    async def _wait_ready(self, deadline: float) -> None:
        pause = 0.05
        while not await self.healthy():
            ended = self.ended
            if ended:
                raise ServerError(f"{ended.error}.", fix="Its log is in the bundle.")
            if time.monotonic() > deadline:
                raise ServerError(
                    f"the server was not ready after {self.launch.ready_timeout_s:g} s.",
                    fix="Its log is in the bundle; raise ready_timeout_s if it was still loading.",
                )
            await asyncio.sleep(pause)
            pause = min(0.5, pause * 1.5)

    async def healthy(self) -> bool:
        """The health path answers 200."""
        pool = Pool(self.origin, connect_timeout_s=5)
        exchange = await pool.exchange(request_bytes(self.origin, "GET", self.dialect.health), timeout_s=5)
        pool.close()
        return exchange.status == 200

    async def attach(self) -> None:
        """Make sure that a server answers at the address; raises ServerError."""
        pool = Pool(self.origin)
        try:
            await pool.open(1)
        finally:
            pool.close()
        if not await self.healthy():
            raise ServerError(f"{self.dialect.health} does not answer 200.", where=str(self.origin),
                              fix=f"Check that a server of the {self.dialect.id} family runs there and is ready."
                              )  # fmt: skip

    async def ended_soon(self, within_s: float = 1.0) -> Ended | None:
        """How it ended, waiting a moment for a process that is just going down."""
        deadline = time.monotonic() + within_s
        while self.ours and self.ended is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return self.ended

    async def stop(self) -> None:
        """End the server with everything that it started: by word first, SIGKILL after a grace; wait for the port."""
        child, lease = self._process, self._lease
        if lease is None:
            return
        if child is not None:
            deadline = time.monotonic() + STOP_GRACE_S
            if lease.cidfile:
                await asyncio.to_thread(containers.stop_container, lease.runtime, Path(lease.cidfile), STOP_GRACE_S,
                                        starting=child.poll() is None)  # fmt: skip
            family = ours(lease)
            _signal_group(child.pid, signal.SIGTERM)
            while child.poll() is None and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            _signal_group(child.pid, signal.SIGKILL)
            child.wait()
            end_all(list({*family, *ours(lease)}), 0.0)  # what left the group, or was born meanwhile
            _running.discard(child.pid)
            while await _answers(self.origin) and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
        self._beside(SUFFIX).unlink(missing_ok=True)
        self._let_the_guard_go()
        self._lease = None

    def _let_the_guard_go(self) -> None:
        watch, self._guard = self._guard, None
        if watch and watch.stdin:
            with contextlib.suppress(BrokenPipeError):
                watch.stdin.write(guard.LET_GO)
                watch.stdin.close()
            watch.wait()


def _own_path() -> str:
    return os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))


async def _answers(origin: Origin) -> bool:
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(origin.host, origin.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


@atexit.register
def kill_what_runs() -> None:
    """Kill every server that we started and did not stop; for the way out after a crash or a second Ctrl-C."""
    for pid in _running:
        _signal_group(pid, signal.SIGKILL)
    _running.clear()
