"""Plan -> bundles: every start of every candidate in every stage, resumable, cancellable, one bundle each."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Literal, NamedTuple

from bench.dialects import dialect
from bench.engines import check_allowed, kill_what_runs
from bench.job import Cancelled, Job, JobRun
from bench.progress import CANCEL, Reporter, RunState
from bench.stage_rule import setting_from, with_setting
from bundle.folder import open_bundle
from bundle.manifest import MANIFEST, Manifest
from planner.errors import BundleError, FliplineError, InputError
from planner.poc import Launch, Plan, PlanCandidate, Stage

LOOK_EVERY_S = 0.2


class RunResult(NamedTuple):
    """How a run ended: bundles in the order of the plan, and the names of those whose server failed."""

    state: RunState
    bundles: tuple[Path, ...]
    failed: tuple[str, ...]


def jobs_of(plan: Plan) -> list[Job]:
    """Every bundle that a plan asks for, in the order in which they are made.

    The order of the candidates turns round from start to start, so that none always runs on the warmer machine. A
    server that we only attach to has one start, whatever the plan asks for.
    """
    jobs = []
    for start in range(1, plan.starts + 1):
        order = plan.candidates if start % 2 else plan.candidates[::-1]
        jobs += [
            Job(c, stage, start) for c in order if c.launch.command or start == 1 for stage in plan.stages
        ]  # fmt: skip
    return jobs


def check_plan(plan: Plan, *, allow_command: bool) -> None:
    """Refuse a plan before anything starts: unknown engines, commands that are not an engine's, rules that dangle."""
    for candidate in plan.candidates:
        dialect(candidate.engine)
        check_allowed(candidate.launch, allow=allow_command, where=f"candidate {candidate.id}")
    names = [stage.name for stage in plan.stages]
    for i, stage in enumerate(plan.stages):
        if stage.rule and stage.rule.from_stage not in names[:i]:
            raise InputError(f"its rule looks at stage {stage.rule.from_stage!r}, which does not come before it.",
                             where=f"stage {stage.name}", fix=f"Stages: {', '.join(names)}.")  # fmt: skip


async def run_plan(plan: Plan, out: Path, *, allow_command: bool = False, bar: bool = False) -> RunResult:
    """Run a plan into the folder `out`; finished bundles of the same plan there are not repeated.

    Raises InputError, NotAllowed or ServerError before or between bundles, with everything written so far sealed.
    """
    check_plan(plan, allow_command=allow_command)
    out.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(plan)
    finished = _finished(plan, out, jobs)
    reporter = Reporter(out, sum(job.requests(plan) for job in jobs), bar=bar)
    run = _Run(plan, out, reporter)
    state: RunState = "failed"
    try:
        state = await run.all(jobs, finished)
    except FliplineError as e:
        reporter.update(last_error=str(e))
        raise
    finally:
        reporter.close(state)
        if state == "cancelled":
            (out / CANCEL).unlink(missing_ok=True)
    return RunResult(state, tuple(run.bundles), tuple(run.failed))


def _finished(plan: Plan, out: Path, jobs: list[Job]) -> dict[str, Manifest]:
    """Sealed bundles of this very plan; raises InputError when the folder holds those of another plan."""
    found = {}
    for job in jobs:
        folder = out / job.folder_name
        if not (folder / MANIFEST).is_file():
            continue
        manifest = open_bundle(folder)
        if manifest.plan_sha256 != plan.sha256():
            raise InputError(f"holds {job.folder_name} of another plan.", where=str(out), fix="Choose an empty folder.")
        if manifest.status != "cancelled":
            found[job.folder_name] = manifest
    return found


def fresh_folder(folder: Path) -> Path:
    """An empty folder of that name; what an interrupted run left there is kept beside it under another name."""
    if folder.exists():
        n = 1
        while (aside := folder.with_name(f"{folder.name}.interrupted-{n}")).exists():
            n += 1
        folder.rename(aside)
    folder.mkdir(parents=True)
    return folder


class _Run:
    """One pass over a plan's jobs; `cancel` is set by a signal, or by a file named cancel in the folder."""

    def __init__(self, plan: Plan, out: Path, reporter: Reporter) -> None:
        self._plan, self._out, self._reporter = plan, out, reporter
        self._cancel = asyncio.Event()
        self.bundles: list[Path] = []
        self.failed: list[str] = []

    async def all(self, jobs: list[Job], finished: dict[str, Manifest]) -> Literal["finished", "cancelled"]:
        """Make every bundle that is not there yet."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupted)
        look = asyncio.create_task(self._look())
        try:
            for job in jobs:
                done = finished.get(job.folder_name) or await self._one(job)
                self.bundles.append(self._out / job.folder_name)
                if job.folder_name in finished:
                    self._reporter.skip(job.requests(self._plan))
                if done.status == "failed":
                    self.failed.append(job.folder_name)
                if self._cancel.is_set():
                    return "cancelled"
        except Cancelled:
            return "cancelled"
        finally:
            look.cancel()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return "finished"

    async def _one(self, job: Job) -> Manifest:
        if self._cancel.is_set():
            raise Cancelled
        launch, setting, notes = self._launch_of(job.candidate, job.stage, job.start)
        if setting is not None:
            job = job._replace(setting=setting)
        before = self._reporter.standing.done_requests
        made = await JobRun(
            self._plan, job, launch, fresh_folder(self._out / job.folder_name), self._reporter, self._cancel, notes
        ).run()
        if made.status == "failed":
            self._reporter.update(last_error=made.engine_start.error)
        left = job.requests(self._plan) - (self._reporter.standing.done_requests - before)
        if left > 0 and made.status == "failed":
            self._reporter.skip(left)
        return made

    def _launch_of(
        self, candidate: PlanCandidate, stage: Stage, start: int
    ) -> tuple[Launch, tuple[str, int] | None, list[str]]:
        """The launch for a stage, with the setting that its rule draws from the earlier stage of the same start."""
        launch, rule = candidate.launch, stage.rule
        if rule is None:
            return launch, None, []
        unchanged = f"stage-rule: {rule.setting} was not changed: "
        if not launch.command:
            return launch, None, [f"{unchanged}the server was attached to, so it cannot be restarted."]
        earlier = next(s for s in self._plan.stages if s.name == rule.from_stage)
        try:
            setting = setting_from(self._out / Job(candidate, earlier, start).folder_name, rule)
        except BundleError as e:
            return launch, None, [f"{unchanged}{e}"]
        if setting is None:
            return launch, None, [f"{unchanged}stage {rule.from_stage} measured no closed point."]
        changed = with_setting(launch, rule.setting, setting.value)
        if changed is None:
            return launch, None, [f"{unchanged}launch.stage_settings does not say which argument carries it."]
        note = f"stage-rule: {rule.setting} = {setting.value}, because {setting.why}."
        return changed, (rule.setting, setting.value), [note]

    async def _look(self) -> None:
        """See the cancel file, and keep the heartbeat of progress.json going."""
        while True:
            if (self._out / CANCEL).exists():
                self._cancel.set()
            self._reporter.update()
            await asyncio.sleep(LOOK_EVERY_S)

    def _interrupted(self) -> None:
        if self._cancel.is_set():
            kill_what_runs()
            os._exit(130)
        self._cancel.set()
