"""The server's own metrics on the client's clock: counters before and after, gauges through a repeat.

Beside them stand the memory of the server's processes (rss_bytes), when they run here and bench started them, and what
NVML says about its GPUs (gpu_memory_used_bytes, gpu_power_w, gpu_utilisation), when there are any.

Scraping has a connection of its own. A page without the expected names is an error, never a zero.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bench.devices import DeviceMeter
from bench.dialects import Dialect
from bench.transport import Pool, request_bytes
from bundle.records import Sample
from planner.errors import ServerError

SCRAPE_EVERY_S = 1.0
COUNTERS = ("prompt_tokens", "generation_tokens", "ttft_count")  # only a restart turns these back, in every engine
SAMPLED = ("running", "waiting", "kv_use", "preemptions")
_FIRST_SCRAPES_S = (0.1, 0.25, 0.5)  # so that a short repeat is seen at all


async def fetch_page(pool: Pool, path: str, *, timeout_s: float = 10.0) -> str:
    """The metrics page.

    Raises ServerError when it does not come or is empty.
    """
    exchange = await pool.exchange(request_bytes(pool.origin, "GET", path), timeout_s=timeout_s)
    if exchange.error_kind or exchange.status != 200 or not exchange.body.strip():
        why = exchange.error or f"it answered {exchange.status} with {len(exchange.body)} bytes"
        raise ServerError(f"the metrics page gave nothing: {why}.", where=f"{pool.origin}{path}")
    return exchange.body.decode("utf-8", "replace")


def family_of(pid: int) -> list[int]:
    """A process and its descendants (Linux /proc)."""
    found, todo = [], [pid]
    while todo:
        here = todo.pop()
        try:
            for task in Path(f"/proc/{here}/task").iterdir():
                todo += [int(c) for c in (task / "children").read_text().split()]
        except OSError:
            continue
        found.append(here)
    return found


def memory_of(pids: Iterable[int]) -> float | None:
    """Resident bytes of some processes together, or None when all are gone (Linux /proc)."""
    pages = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return float(pages * resource.getpagesize()) or None


class Telemetry:
    """Samples of one repeat from `t0` on; `errors` counts scrapes that gave nothing or lacked every name.

    `restarts` counts scrapes in which a counter had gone back: the server had begun anew.
    """

    def __init__(
        self, pool: Pool, dialect: Dialect, *, server_pid: int | None = None, devices: DeviceMeter | None = None
    ) -> None:
        self._pool, self._dialect, self._devices = pool, dialect, devices
        self._family = family_of(server_pid) if server_pid else []  # looked up here: it takes milliseconds
        self.t0 = pool.clock()
        self.samples: list[Sample] = []
        self.errors = self.restarts = 0
        self.last_error = ""
        self._counted: dict[str, float] = {}

    @property
    def device_error(self) -> str:
        """What the GPUs did not tell, and why."""
        return self._devices.error if self._devices else ""

    async def counters(self) -> dict[str, float]:
        """All roles now, or nothing when the engine has no metrics or the scrape failed (then it is counted)."""
        if not self._dialect.metrics_path:
            return {}
        try:
            page = await fetch_page(self._pool, self._dialect.metrics_path)
        except ServerError as e:
            self.errors, self.last_error = self.errors + 1, str(e)
            return {}
        found = self._dialect.read_metrics(page)
        if not found:
            self.errors += 1
            self.last_error = "none of the expected series is on the metrics page."
        counted = {role: found[role] for role in COUNTERS if role in found}
        self.restarts += any(value < self._counted.get(role, 0.0) for role, value in counted.items())
        self._counted |= counted
        return found

    async def sample(self) -> dict[str, float]:
        """Scrape once and keep the gauges, the preemption counter, the server's memory and its GPUs' figures."""
        t = self._pool.clock() - self.t0
        found = await self.counters()
        self.samples += [Sample(t, role, found[role]) for role in SAMPLED if role in found]
        rss = memory_of(self._family)
        if rss is not None:
            self.samples.append(Sample(t, "rss_bytes", rss))
        if self._devices:  # in a thread: a board may take tens of milliseconds to tell its power
            t = self._pool.clock() - self.t0
            read = await asyncio.to_thread(self._devices.read)
            self.samples += [Sample(t, name, value) for name, value in read.items()]
        return found

    async def run(self) -> None:
        """Sample until cancelled: soon after the start, then every second."""
        while True:
            elapsed = self._pool.clock() - self.t0
            regular = (elapsed // SCRAPE_EVERY_S + 1) * SCRAPE_EVERY_S
            due = next((d for d in _FIRST_SCRAPES_S if d > elapsed), regular)
            await asyncio.sleep(max(0.0, due - elapsed))
            await self.sample()
