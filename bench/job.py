"""One job: one start of one candidate's server in one stage, from the start command to the sealed bundle."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench.bundling import LOG, OF_THE_DISK, Bundling, Job, Status, cannot_write
from bench.containers import check_files
from bench.devices import DeviceMeter, device_meter
from bench.dialects import dialect
from bench.engines import Server
from bench.inputs import NO_FILES, PlanInputs
from bench.preflight import Preflight, preflight
from bench.progress import Reporter
from bench.prompts import PromptMaker
from bench.repeat import Load
from bench.shards import ShardedLoad, number_of_shards
from bench.surroundings import Watch
from bench.target import Target
from bench.telemetry import Telemetry
from bench.transport import Pool
from bench.warmup import warm_up
from bundle.manifest import BUDGET, CANCELLED, Manifest, Warmup
from planner.errors import InputError, NotAllowed, ServerError
from planner.loads import LoadPoint
from planner.poc import Launch, Plan, PlanCandidate

IDLE_WITHIN_S = 5.0
T = TypeVar("T")


class Cancelled(Exception):
    """A person asked to stop."""


async def unless_cancelled(work: Coroutine[Any, Any, T], cancel: asyncio.Event) -> T:
    """Await `work`, but raise Cancelled as soon as `cancel` is set."""
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Cancelled
        return task.result()
    finally:
        for t in (task, stop):
            t.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)


def devices_of(launch: Launch) -> DeviceMeter | None:
    """A meter of the GPUs that a server of this launch sees; of an attached one nothing is known, so all are read."""
    if launch.container:  # nothing of our environment gets in
        return device_meter(launch.environment, gpus=launch.container.gpus)
    return device_meter({**os.environ, **launch.environment} if launch.command else {})


class JobRun:
    """Carries one job through; `run` gives the sealed manifest, or raises Cancelled when nothing was measured.

    `until` is the moment on the loop's clock at which the run's time budget for this job is used up. A server start
    that was begun is waited for; after it no point begins beyond that moment, and load that runs then is stopped.
    """

    def __init__(
        self, plan: Plan, job: Job, launch: Launch, folder: Path, reporter: Reporter, cancel: asyncio.Event,
        notes: list[str], until: float | None = None, inputs: PlanInputs = NO_FILES, shards: int | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._job, self._launch, self._until, self._inputs = plan, job, launch, until, inputs
        self._reporter, self._cancel, self._shards = reporter, cancel, shards
        self._dialect = dialect(job.candidate.engine, job.candidate.facts)
        self._server = Server(launch, self._dialect, folder / LOG if launch.command else None)
        self._pool = Pool(self._server.origin)
        self._scrape = Pool(self._server.origin, spare_files=0)
        self._target = Target(self._pool, self._dialect, self._server, job.candidate.model_name, dict(plan.sampling),
                              plan.stop.request_timeout_s)  # fmt: skip
        self._devices = devices_of(launch) if self._server.origin.local else None
        self._folder, self._bundling = folder, Bundling(plan, job, self._server, folder, notes)

    async def run(self) -> Manifest:
        """Start or attach, preflight, measure, stop, seal.

        Raises InputError when the disk does not take the bundle, ServerError when a server to attach to fails.
        """
        self._say(phase="starting the server", point="", repeat=0)
        ready, error = False, ""
        unwritten: InputError | None = None
        try:
            checked = await self._ready()
            ready = True
            await self._measure(checked)
        except ServerError as e:
            if not self._launch.command:
                raise
            error = str(e)
        except Cancelled:
            if not ready:
                raise  # nothing was learned about the server
        except InputError as e:
            unwritten = e
        except OSError as e:
            if e.errno not in OF_THE_DISK:
                raise
            unwritten = cannot_write(self._folder, e)
        finally:
            ended = self._server.ended
            self._pool.close()
            self._scrape.close()
            await self._server.stop()  # before the seal: a server that goes down writes to its log
        if unwritten:
            with suppress(InputError):  # the manifest is small and may still find room
                self._bundling.seal("cancelled", ended, str(unwritten))
            raise unwritten
        status: Status = "failed" if ended or error or not ready else "complete"
        return self._bundling.seal("cancelled" if self._cancel.is_set() and not ended else status, ended, error)

    async def _ready(self) -> Preflight:
        start = self._server.start() if self._launch.command else self._server.attach()
        await unless_cancelled(start, self._cancel)
        if not self._launch.command:
            self._bundling.findings.append("attached: the server was running already; this counts as one start.")
        planned = self._plan.shared_contract.get("load_generator", "")
        if planned and planned.startswith("same machine") != self._server.origin.local:
            where = "this machine" if self._server.origin.local else "another machine"
            self._bundling.findings.append(f"placement: the plan says {planned!r}, and the server is on {where}.")
        self._say(phase="preflight")
        smallest = min(self._plan.point(name).input_tokens for name in self._job.stage.points)
        checked = await unless_cancelled(preflight(self._target, smallest, self._inputs.tokenizer), self._cancel)
        self._bundling.observe(checked)
        return checked

    async def _measure(self, checked: Preflight) -> None:
        """Every point of the stage; a point that cannot be measured is named and does not keep the others out."""
        for position, name in enumerate(self._job.stage.points):
            point = self._plan.point(name)
            try:
                async with asyncio.timeout_at(self._until) as limit:
                    salt = secrets.token_hex(8)
                    self._say(phase="warm-up", point=name, repeat=0)
                    warm = warm_up(self._target, point, self._prompts(checked, point, salt), salt)
                    warmed, e2e_s = await unless_cancelled(warm, self._cancel)
                await self._repeats(checked, point, warmed, e2e_s)
            except (ServerError, NotAllowed) as e:
                self._bundling.findings.append(f"point-failed: {name}: {e}")
            except TimeoutError:
                if not limit.expired():
                    raise
            rest = self._job.stage.points[position + 1 :]
            unmeasured = ", ".join(rest if any(r.load_point == name for r in self._bundling.repeats) else (name, *rest))
            if self._cancel.is_set():
                return
            if self._server.ended:
                if rest:
                    self._bundling.findings.append(f"died: the server ended, so {', '.join(rest)} were not measured.")
                return
            if self._over_budget():
                if unmeasured:
                    self._bundling.findings.append(f"budget: the time of the run was up before {unmeasured}.")
                return

    async def _repeats(self, checked: Preflight, point: LoadPoint, warmed: Warmup, e2e_s: float) -> None:
        for number in range(1, self._plan.repeats + 1):
            self._say(phase="measuring", point=point.name, repeat=number)
            await self._repeat(checked, point, number, warmed, e2e_s)
            if self._cancel.is_set() or self._server.ended or self._over_budget():
                return

    def _over_budget(self) -> bool:
        return self._until is not None and asyncio.get_running_loop().time() >= self._until

    def _prompts(self, checked: Preflight, point: LoadPoint, salt: str) -> PromptMaker:
        return PromptMaker(checked.vocabulary, seed=self._plan.seed, salt=salt,
                           spell_salt=not self._dialect.cache_salt, shared_prefix=point.shared_prefix)  # fmt: skip

    async def _repeat(self, checked: Preflight, point: LoadPoint, number: int, warmed: Warmup, e2e_s: float) -> None:
        salt = secrets.token_hex(8)
        shards = number_of_shards(point, e2e_s, self._inputs.of(point), self._shards)
        load = (Load if shards == 1 else partial(ShardedLoad, shards))(
            self._target, point, self._prompts(checked, point, salt), salt=salt, seed=self._plan.seed,
            repeat=self._job.start * 1000 + number, stop=self._plan.stop, e2e_s=e2e_s, on_done=self._reporter.done,
            inputs=self._inputs.of(point),
        )  # fmt: skip
        telemetry = Telemetry(self._scrape, self._dialect, server_pid=self._server.pid, devices=self._devices)
        before = await telemetry.counters()
        watch = Watch(self._target, checked.identity)
        helpers = [asyncio.create_task(self._stop_in_time(load))]  # a million requests take a minute to prepare

        def begin(t0: float) -> None:
            telemetry.t0 = t0
            helpers.append(asyncio.create_task(telemetry.run()))

        try:
            result = await load.run(begin)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        died = self._server.ended is not None
        after = {} if died else await self._when_idle(telemetry)
        if telemetry.errors and not died:
            self._bundling.findings.append(
                f"no-server-metrics: {point.name}: {telemetry.errors} scrapes: {telemetry.last_error}"
            )
        if telemetry.device_error:
            self._bundling.findings.append(f"no-gpu-metrics: {telemetry.device_error}")
        around = await watch.look()
        self._bundling.add(point, number, result, telemetry, before, after, salt, warmed, around)

    async def _when_idle(self, telemetry: Telemetry) -> dict[str, float]:
        """Counters once the server has noticed that requests which we cancelled are gone; else a finding."""
        deadline = self._pool.clock() + IDLE_WITHIN_S
        while True:
            found = await telemetry.counters()
            busy = found.get("running", 0.0) + found.get("waiting", 0.0)
            if not busy or self._cancel.is_set():
                return found
            if self._pool.clock() > deadline:
                self._bundling.findings.append(
                    f"not-idle: {busy:.0f} requests were still on the server after a repeat had ended."
                )
                return found
            await asyncio.sleep(0.05)

    async def _stop_in_time(self, load: Load | ShardedLoad) -> None:
        """End the load when a person cancels, or when the budget is used up."""
        try:
            async with asyncio.timeout_at(self._until):
                await self._cancel.wait()
            load.stop_early(CANCELLED)
        except TimeoutError:
            load.stop_early(f"{BUDGET} of {self._plan.budget_min:g} min was used up")

    def _say(self, **changes: object) -> None:
        job = self._job
        self._reporter.update(candidate=job.candidate.id, stage=job.stage.name, start=job.start, now=True, **changes)


class Checked(NamedTuple):
    """What a trial of one candidate gave."""

    candidate: str
    error: str
    version: str | None
    simulated: bool
    kv_capacity_tokens: int | None
    findings: tuple[str, ...]


async def check_candidate(plan: Plan, candidate: PlanCandidate, folder: Path, inputs: PlanInputs = NO_FILES) -> Checked:
    """Start or attach to a candidate's server, run the preflight and stop it again; nothing is kept.

    `error` of what it returns says why it cannot be measured: no server, another one's, or a file that is not the
    plan's. The other candidates of the plan are tried all the same.
    """
    launch, spoken = candidate.launch, dialect(candidate.engine, candidate.facts)
    server = Server(launch, spoken, folder / f"{candidate.id}.log" if launch.command else None)
    pool = Pool(server.origin)
    target = Target(pool, spoken, server, candidate.model_name, dict(plan.sampling), plan.stop.request_timeout_s)
    try:
        await asyncio.to_thread(check_files, launch, where=f"candidate {candidate.id}")
        await (server.start() if launch.command else server.attach())
        found = await preflight(target, min(p.input_tokens for p in plan.load_points), inputs.tokenizer)
    except (ServerError, NotAllowed) as e:
        return Checked(candidate.id, str(e), None, False, None, ())
    finally:
        pool.close()
        await server.stop()
    return Checked(candidate.id, "", found.version, found.simulated, found.kv_capacity_tokens, found.findings)
