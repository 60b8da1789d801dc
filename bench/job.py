"""One job: one start of one candidate's server in one stage, from the start command to the sealed bundle."""

from __future__ import annotations

import asyncio
import re
import secrets
import uuid
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from bench.dialects import dialect
from bench.engines import Ended, Server, is_emulator_command
from bench.machine import TOOL_VERSION, environment, load_average, observed_machine
from bench.preflight import Preflight, preflight
from bench.progress import Reporter
from bench.prompts import PromptMaker
from bench.repeat import Load, Result, Target, warm_up
from bench.telemetry import Telemetry
from bench.transport import CLOCK, Pool
from bundle.folder import seal
from bundle.manifest import EngineStart, Manifest, Repeat, Warmup
from bundle.records import write_records, write_telemetry
from planner.conditions import Kind, LoadPoint
from planner.contract import Contract
from planner.errors import ServerError
from planner.poc import Launch, Plan, PlanCandidate, Stage

LOG = "server.log"
IDLE_WITHIN_S = 5.0
Status = Literal["complete", "cancelled", "failed"]
T = TypeVar("T")


class Cancelled(Exception):
    """A person asked to stop."""


class Job(NamedTuple):
    """What one bundle is about; `setting` is what the stage's rule set, such as ("max_num_seqs", 16)."""

    candidate: PlanCandidate
    stage: Stage
    start: int
    setting: tuple[str, int] | None = None

    @property
    def folder_name(self) -> str:
        """Name of the bundle's folder."""
        stage = re.sub(r"[^A-Za-z0-9._-]+", "-", self.stage.name).strip(".")
        return f"{self.candidate.id}-{stage}-start{self.start}"

    def requests(self, plan: Plan) -> int:
        """Requests that it measures."""
        return plan.repeats * sum(plan.point(name).requests for name in self.stage.points)


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


class JobRun:
    """Carries one job through; `run` gives the sealed manifest, or raises Cancelled when nothing was measured."""

    def __init__(
        self, plan: Plan, job: Job, launch: Launch, folder: Path, reporter: Reporter, cancel: asyncio.Event,
        notes: list[str],
    ) -> None:  # fmt: skip
        self._plan, self._job, self._launch, self._folder = plan, job, launch, folder
        self._reporter, self._cancel = reporter, cancel
        self._findings = list(notes)
        self._dialect = dialect(job.candidate.engine)
        self._server = Server(launch, self._dialect, folder / LOG if launch.command else None)
        self._pool = Pool(self._server.origin)
        self._scrape = Pool(self._server.origin)
        self._target = Target(self._pool, self._dialect, self._server, job.candidate.model_name, dict(plan.sampling),
                              plan.stop.request_timeout_s)  # fmt: skip
        self._repeats: list[Repeat] = []
        self._created = datetime.now(UTC)
        self._load_at_begin = load_average()

    async def run(self) -> Manifest:
        """Start or attach, preflight, measure, stop, seal."""
        self._say(phase="starting the server", point="", repeat=0)
        checked: Preflight | None = None
        error = ""
        try:
            checked = await self._ready()
            await self._measure(checked)
        except ServerError as e:
            if not self._launch.command:
                raise
            error = str(e)
        except Cancelled:
            if checked is None:
                raise  # nothing was learned about the server
        finally:
            ended = self._server.ended
            self._pool.close()
            self._scrape.close()
            await self._server.stop()  # before the seal: a server that goes down writes to its log
        status: Status = "failed" if ended or error or checked is None else "complete"
        return self._seal(checked, "cancelled" if self._cancel.is_set() and not ended else status, ended, error)

    async def _ready(self) -> Preflight:
        start = self._server.start() if self._launch.command else self._server.attach()
        await unless_cancelled(start, self._cancel)
        if not self._launch.command:
            self._findings.append("attached: the server was running already; this counts as one start.")
        planned = self._plan.shared_contract.get("load_generator", "")
        if planned and planned.startswith("same machine") != self._server.origin.local:
            where = "this machine" if self._server.origin.local else "another machine"
            self._findings.append(f"placement: the plan says {planned!r}, and the server is on {where}.")
        self._say(phase="preflight")
        smallest = min(self._plan.point(name).input_tokens for name in self._job.stage.points)
        checked = await unless_cancelled(preflight(self._target, smallest), self._cancel)
        self._findings += checked.findings
        return checked

    async def _measure(self, checked: Preflight) -> None:
        """Every point of the stage; points after the server's death are named as not measured."""
        for position, name in enumerate(self._job.stage.points):
            point = self._plan.point(name)
            salt = secrets.token_hex(8)
            self._say(phase="warm-up", point=name, repeat=0)
            warmed, e2e_s = await unless_cancelled(
                warm_up(self._target, point, self._prompts(checked, point, salt), salt), self._cancel
            )
            for number in range(1, self._plan.repeats + 1):
                self._say(phase="measuring", point=name, repeat=number)
                await self._repeat(checked, point, number, warmed, e2e_s)
                if self._cancel.is_set():
                    return
                if self._server.ended:
                    missing = self._job.stage.points[position + 1 :]
                    if missing:
                        self._findings.append(f"died: the server ended, so {', '.join(missing)} were not measured.")
                    return

    def _prompts(self, checked: Preflight, point: LoadPoint, salt: str) -> PromptMaker:
        return PromptMaker(checked.vocabulary, seed=self._plan.seed, salt=salt,
                           spell_salt=not self._dialect.cache_salt, shared_prefix=point.shared_prefix)  # fmt: skip

    async def _repeat(self, checked: Preflight, point: LoadPoint, number: int, warmed: Warmup, e2e_s: float) -> None:
        salt = secrets.token_hex(8)
        load = Load(
            self._target, point, self._prompts(checked, point, salt), salt=salt, seed=self._plan.seed,
            repeat=self._job.start * 1000 + number, stop=self._plan.stop, e2e_s=e2e_s, on_done=self._reporter.done,
        )  # fmt: skip
        telemetry = Telemetry(self._scrape, self._dialect, server_pid=self._server.pid)
        before = await telemetry.counters()
        helpers: list[asyncio.Task[None]] = []

        def begin(t0: float) -> None:
            telemetry.t0 = t0
            helpers.append(asyncio.create_task(telemetry.run()))
            helpers.append(asyncio.create_task(self._stop_on_cancel(load)))

        try:
            result = await load.run(begin)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        died = self._server.ended is not None
        after = {} if died else await self._when_idle(telemetry)
        if telemetry.errors and not died:
            self._findings.append(
                f"no-server-metrics: {point.name}: {telemetry.errors} scrapes: {telemetry.last_error}"
            )
        self._keep(point, number, result, telemetry, before, after, salt, warmed)

    async def _when_idle(self, telemetry: Telemetry) -> dict[str, float]:
        """Counters once the server has noticed that requests which we cancelled are gone; else a finding."""
        deadline = self._pool.clock() + IDLE_WITHIN_S
        while True:
            found = await telemetry.counters()
            busy = found.get("running", 0.0) + found.get("waiting", 0.0)
            if not busy or self._cancel.is_set():
                return found
            if self._pool.clock() > deadline:
                self._findings.append(
                    f"not-idle: {busy:.0f} requests were still on the server after a repeat had ended."
                )
                return found
            await asyncio.sleep(0.05)

    async def _stop_on_cancel(self, load: Load) -> None:
        await self._cancel.wait()
        load.stop_early("cancelled")

    def _keep(
        self, point: LoadPoint, number: int, result: Result, telemetry: Telemetry, before: dict[str, float],
        after: dict[str, float], salt: str, warmed: Warmup,
    ) -> None:  # fmt: skip
        stem = f"{point.name}-{number}"
        write_records(self._folder / f"{stem}.records.parquet", result.records)
        if telemetry.samples:
            write_telemetry(self._folder / f"{stem}.telemetry.parquet", telemetry.samples)
        load = [r for r in result.records if r.cohort == "load"]
        self._repeats.append(Repeat(
            load_point=point.name, repeat=number, t0_unix_s=result.t0_unix_s, duration_s=result.duration_s,
            scheduled=len(load), ok=result.number_of("ok"), failed=result.number_of("failed"),
            undetermined=result.number_of("undetermined"), status=result.status, stop_reason=result.stop_reason,
            records=f"{stem}.records.parquet",
            telemetry=f"{stem}.telemetry.parquet" if telemetry.samples else None,
            counters_before=before, counters_after=after, loop_lag_p99_ms=result.loop_lag_p99_ms,
            client_cpu_share=result.client_cpu_share, clock_step_ms=result.clock_step_ms, salt=salt, warmup=warmed,
        ))  # fmt: skip
        errors = sorted({f"{r.error_kind}: {r.error}" for r in load if r.outcome == "failed"})
        self._findings += [f"failures: {point.name}: {e}" for e in errors[:5]]
        if not warmed.settled and warmed.requests and number == 1:
            self._findings.append(f"warm-up: {point.name}: two rounds did not agree within 10 %.")

    def _seal(
        self, checked: Preflight | None, status: Status, ended: Ended | None, error: str
    ) -> Manifest:  # fmt: skip
        job, plan = self._job, self._plan
        simulated = is_emulator_command(self._launch.command) or bool(checked and checked.simulated)
        settings = dict(checked.settings) if checked else {}
        if job.setting:
            settings[f"stage_rule.{job.setting[0]}"] = str(job.setting[1])
        manifest = Manifest(
            id=uuid.uuid4().hex, kind=Kind.SIMULATED if simulated else Kind.MEASURED, tool_version=TOOL_VERSION,
            case=plan.case, plan_sha256=plan.sha256(), candidate=job.candidate.id, role=job.candidate.role,
            engine=job.candidate.engine, stage=job.stage.name, start=job.start,
            created_at=self._created.isoformat(timespec="seconds"),
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"), status=status,
            contract=self._contract(checked), settings_resolved=settings,
            environment={**environment(self._server.origin), "load_average_begin": self._load_at_begin,
                         "load_average_end": load_average()},
            clock=CLOCK,
            engine_start=EngineStart(
                command=self._launch.command, url=self._launch.url, attached=not self._launch.command,
                started=checked is not None, startup_s=self._server.startup_s,
                exit_code=ended.exit_code if ended else None, error=error or (ended.error if ended else ""),
                oom=int(bool(ended and ended.oom)), restarts=int(bool(ended and checked)),
                log_file=LOG if self._launch.command else None, version_reported=checked.version if checked else None,
                kv_capacity_tokens=checked.kv_capacity_tokens if checked else None,
            ),
            points=tuple(plan.point(name) for name in job.stage.points), repeats=tuple(self._repeats),
            bound_tok_s=job.candidate.bound_tok_s, findings=tuple(dict.fromkeys(self._findings)),
        )  # fmt: skip
        return seal(self._folder, manifest)

    def _contract(self, checked: Preflight | None) -> Contract:
        """Shared and candidate part as planned (with the stage's setting), observed part as read."""
        asked = dict(self._job.candidate.contract)
        if self._job.setting:
            asked[self._job.setting[0]] = str(self._job.setting[1])
        width = asked.get("tensor_parallel", "1")
        observed = observed_machine(self._server.origin, int(width) if width.isdigit() else 1)
        if not observed:
            self._findings.append("remote: the server runs on another machine; its GPU and driver were not read.")
        if checked and checked.version:
            observed["engine_version_reported"] = checked.version
        return Contract(shared=self._plan.shared_contract, candidate=asked, observed=observed,
                        declared_differences=self._plan.declared_differences)  # fmt: skip

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


async def check_candidate(plan: Plan, candidate: PlanCandidate, folder: Path) -> Checked:
    """Start or attach to a candidate's server, run the preflight and stop it again; nothing is kept.

    Raises ServerError when a server to attach to is not there, NotAllowed when another one answers at the address.
    """
    launch, spoken = candidate.launch, dialect(candidate.engine)
    server = Server(launch, spoken, folder / f"{candidate.id}.log" if launch.command else None)
    pool = Pool(server.origin)
    target = Target(pool, spoken, server, candidate.model_name, dict(plan.sampling), plan.stop.request_timeout_s)
    try:
        await (server.start() if launch.command else server.attach())
        found = await preflight(target, min(p.input_tokens for p in plan.load_points))
    except ServerError as e:
        if not launch.command:
            raise
        return Checked(candidate.id, str(e), None, False, None, ())
    finally:
        pool.close()
        await server.stop()
    return Checked(candidate.id, "", found.version, found.simulated, found.kv_capacity_tokens, found.findings)
