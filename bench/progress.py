"""How a run stands, for whoever watches: one small file rewritten in one rename, and a bar on a terminal."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PROGRESS = "progress.json"
CANCEL = "cancel"
WRITE_EVERY_S = 1.0
RunState = Literal["queued", "running", "cancelled", "failed", "finished"]


@dataclass
class Standing:
    """The content of progress.json; requests count what the plan measures, without warm-up."""

    state: RunState = "queued"
    phase: str = ""
    candidate: str = ""
    stage: str = ""
    start: int = 0
    point: str = ""
    repeat: int = 0
    done_requests: int = 0
    total_requests: int = 0
    rate_per_s: float | None = None
    eta_s: float | None = None
    last_error: str = ""
    pid: int = 0
    started_unix_s: float = 0.0
    heartbeat_unix_s: float = 0.0


def note_refusal(folder: Path, error: str) -> None:
    """Tell whoever watches an existing folder that the run was refused before it began."""
    path = folder / PROGRESS
    if folder.is_dir() and not path.exists():
        standing = Standing(state="failed", last_error=error, pid=os.getpid(), heartbeat_unix_s=time.time())
        with suppress(OSError):
            _replace(path, standing)


def _replace(path: Path, standing: Standing) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(standing), indent=1), encoding="utf-8")
    part.replace(path)


class Reporter:
    """Keeps the standing, writes it at most once a second, and shows it on a terminal when there is one."""

    def __init__(self, folder: Path, total_requests: int, *, bar: bool) -> None:
        self._path = folder / PROGRESS
        self.standing = Standing(total_requests=total_requests, pid=os.getpid(), started_unix_s=time.time())
        self._began = time.monotonic()
        self._skipped = 0
        self._written = 0.0
        self._bar = _bar() if bar else None
        if self._bar:
            self._task = self._bar.add_task("", total=total_requests)
            self._bar.start()
        self.update(state="running", now=True)

    def update(self, *, now: bool = False, **changes: object) -> None:
        """Change fields; write when it is time or `now`."""
        for name, value in changes.items():
            setattr(self.standing, name, value)
        if now or time.monotonic() - self._written >= WRITE_EVERY_S:
            self._write()

    def done(self, requests: int = 1) -> None:
        """Count measured requests that ended; the next update writes it, for this stands between two requests."""
        self.standing.done_requests += requests

    def skip(self, requests: int) -> None:
        """Count requests of bundles that were finished in an earlier run, or that will not be sent."""
        self._skipped += requests
        self.done(requests)

    def close(self, state: RunState) -> None:
        """Write the last word."""
        self.update(state=state, phase="", eta_s=None, now=True)
        if self._bar:
            self._bar.stop()

    def _write(self) -> None:
        s, elapsed = self.standing, time.monotonic() - self._began
        sent = s.done_requests - self._skipped
        s.rate_per_s = sent / elapsed if elapsed > 0 and sent > 0 else None
        left = s.total_requests - s.done_requests
        s.eta_s = left / s.rate_per_s if s.rate_per_s and s.state == "running" else None
        s.heartbeat_unix_s = time.time()
        with suppress(OSError):  # a full disk is told where a result would be lost, not here
            _replace(self._path, s)
        self._written = time.monotonic()
        if self._bar:
            where = f"{s.candidate} {s.stage} start {s.start} {s.point} {s.phase}".strip()
            self._bar.update(self._task, completed=s.done_requests, description=where)


def _bar() -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                    console=Console(stderr=True))  # fmt: skip
