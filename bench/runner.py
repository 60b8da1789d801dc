"""Plan -> bundles: every start of every candidate in every stage, resumable, cancellable, one bundle each."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Literal, NamedTuple

from bench.bundling import Job, cannot_write
from bench.consent import check_allowed
from bench.containers import check_files, find_image
from bench.dialects import NOT_SAMPLING, dialect
from bench.engines import kill_what_runs
from bench.inputs import PlanInputs, read_inputs
from bench.job import Cancelled, JobRun, unless_cancelled
from bench.progress import CANCEL, Reporter, RunState
from bench.resume import Kept, alone_in, end_leftovers, fresh_folder, kept_of
from bench.stage_rule import setting_from, with_setting
from bundle.folder import LONGEST_NAME
from bundle.manifest import MANIFEST, Manifest
from planner.errors import BundleError, FliplineError, InputError
from planner.poc import Launch, Plan, PlanCandidate, Stage

TOLD = ("budget:", "died:", "point-failed:")  # findings that the result names too
LOOK_EVERY_S = 0.2
HERE = Path()


class RunResult(NamedTuple):
    """How a run ended: bundles in the order of the plan, those whose server failed, and sentences about the rest."""

    state: RunState
    bundles: tuple[Path, ...]
    failed: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Budget:
    """Time for the whole run, over all its resumptions; None is no limit.

    Starts come in rounds, one of every candidate. What is left is shared evenly among the bundles of a round, so that
    the candidate whose turn is last does not pay for the others; the last rounds are what a short budget costs.
    """

    def __init__(self, minutes: float | None, spent_s: float) -> None:
        loop_now = asyncio.get_running_loop().time
        self._now = loop_now
        self._end = None if minutes is None else loop_now() + minutes * 60 - spent_s

    def used_up(self) -> bool:
        """Nothing is left."""
        return self._end is not None and self._now() >= self._end

    def until(self, bundles: int) -> float | None:
        """When the first of so many bundles has to end, on the loop's clock."""
        return None if self._end is None else self._now() + (self._end - self._now()) / bundles


def jobs_of(plan: Plan) -> list[Job]:
    """Every bundle that a plan asks for, in the order in which they are made.

    The order of the candidates turns round from start to start, so that none always runs on the warmer machine. A
    server that we only attach to has one start, whatever the plan asks for.
    """
    jobs = []
    for start in range(1, plan.starts + 1):
        order = plan.candidates if start % 2 else plan.candidates[::-1]
        jobs += [
            Job(c, stage, start) for c in order if c.launch.command or start == 1 for stage in plan.stages_of(c)
        ]  # fmt: skip
    return jobs


def check_plan(plan: Plan, *, allow_command: bool) -> None:
    """Refuse a plan before anything starts: unknown engines, commands that are not an engine's, rules that dangle.

    Also one of whose bundles two would lie in the same folder, or one in a folder that no file system takes, and one
    whose sampling would make another load of it.
    """
    if other := sorted(NOT_SAMPLING & plan.sampling.keys()):
        raise InputError(f"{other[0]} is no sampling: it would change the load itself.", where="sampling",
                         fix="Take it out; lengths stand in the load points.")  # fmt: skip
    for candidate in plan.candidates:
        dialect(candidate.engine, candidate.facts)
        check_allowed(candidate.launch, allow=allow_command, where=f"candidate {candidate.id}")
    taken: dict[str, Job] = {}
    for job in jobs_of(plan):
        if (first := taken.setdefault(job.folder_name, job)) is not job or len(job.folder_name) > LONGEST_NAME:
            where = f"candidate {job.candidate.id}, stage {job.stage.name[:80]}"
            theirs = f"is that of candidate {first.candidate.id}, stage {first.stage.name[:80]}, too"
            why = theirs if first is not job else "has too long a name"
            raise InputError(f"the folder of its bundle, {job.folder_name[:80]}, {why}.", where=where,
                             fix="Rename a stage.")  # fmt: skip
    names = [stage.name for stage in plan.stages]
    for i, stage in enumerate(plan.stages):
        if stage.rule and stage.rule.from_stage not in names[:i]:
            raise InputError(f"its rule looks at stage {stage.rule.from_stage!r}, which does not come before it.",
                             where=f"stage {stage.name}", fix=f"Stages: {', '.join(names)}.")  # fmt: skip


async def run_plan(
    plan: Plan,
    out: Path,
    *,
    allow_command: bool = False,
    bar: bool = False,
    folder: Path = HERE,
    shards: int | None = None,
) -> RunResult:
    """Run a plan into the folder `out`; what bench/resume.py finds finished there is not repeated.

    Files that the plan names are looked for from `folder`, where the plan lies. `shards` is the number of processes
    that offer the load; None leaves it to bench/shards.py.
    Raises InputError, NotAllowed or ServerError before or between bundles, with everything written so far sealed.
    """
    check_plan(plan, allow_command=allow_command)
    inputs = read_inputs(plan, folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError("is a file.", where=str(out), fix="Name a folder for the results.") from None
    except OSError as e:
        raise cannot_write(out, e) from None
    notes = await asyncio.to_thread(end_leftovers, out)
    with alone_in(out):
        jobs = jobs_of(plan)
        kept = {job.folder_name: kept_of(plan, out / job.folder_name) for job in jobs}
        reporter = Reporter(out, sum(job.requests(plan) for job in jobs), bar=bar)
        run = _Run(plan, out, reporter, jobs, kept, notes, inputs, shards)
        state: RunState = "failed"
        try:
            state = await run.all()
        except FliplineError as e:
            reporter.update(last_error=str(e))
            raise
        finally:
            reporter.close(state)
            if state == "cancelled":
                (out / CANCEL).unlink(missing_ok=True)
        return RunResult(state, tuple(run.bundles), tuple(run.failed), tuple(run.notes))


class _Run:
    """One pass over a plan's jobs; `cancel` is set by a signal, or by a file named cancel in the folder."""

    def __init__(
        self, plan: Plan, out: Path, reporter: Reporter, jobs: list[Job], kept: dict[str, Kept], notes: list[str],
        inputs: PlanInputs, shards: int | None,
    ) -> None:  # fmt: skip
        self._inputs, self._shards = inputs, shards
        self._plan, self._out, self._reporter, self._jobs, self._kept = plan, out, reporter, jobs, kept
        self._cancel = asyncio.Event()
        self._budget = Budget(plan.budget_min, sum(k.spent_s for k in kept.values()))
        self.notes, self._untold = list(notes), list(notes)
        self.bundles: list[Path] = []
        self.failed: list[str] = []

    async def all(self) -> Literal["finished", "cancelled"]:
        """Make every bundle that is not there yet."""
        loop = asyncio.get_running_loop()
        # Under nohup a hang-up is ignored, and stays so.
        signals = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
        for number in signals:
            loop.add_signal_handler(number, self._interrupted)
        look = asyncio.create_task(self._look())
        try:
            await self._prove_inputs()
            for job in self._jobs:
                await self._settle(job)
                if self._cancel.is_set():
                    return "cancelled"
        except Cancelled:
            return "cancelled"
        finally:
            look.cancel()
            for number in signals:
                loop.remove_signal_handler(number)
        return "finished"

    async def _prove_inputs(self) -> None:
        """Compare images and model files of every candidate that still runs with what the plan says of them."""
        open_jobs = {j.candidate.id: j.candidate for j in self._jobs if not self._kept[j.folder_name].done}
        for candidate in open_jobs.values():
            launch, where = candidate.launch, f"candidate {candidate.id}"
            if launch.files:
                self._reporter.update(phase="checking the model's files", candidate=candidate.id, now=True)
                await unless_cancelled(asyncio.to_thread(check_files, launch, where=where), self._cancel)
            if launch.container:
                look = asyncio.to_thread(find_image, launch.container, where=where)
                image = await unless_cancelled(look, self._cancel)
                if not launch.container.digest:
                    self.notes.append(f"image: {where} names no digest; {launch.container.image} is {image.id}.")

    async def _settle(self, job: Job) -> None:
        """Take a job as it stands, or make its bundle, or leave it out because the budget is used up."""
        kept = self._kept[job.folder_name]
        left = tuple(p for p in job.stage.points if p not in kept.points)
        self.bundles += kept.parts
        rest = job._replace(stage=job.stage.model_copy(update={"points": left})) if left else job
        self._reporter.skip(job.requests(self._plan) - (rest.requests(self._plan) if left and not kept.done else 0))
        done = kept.done
        if done is None and left:
            if self._budget.used_up():
                note = f"budget: {self._plan.budget_min:g} min were used up before {job.folder_name} could begin."
                self.notes.append(note)
                self._reporter.skip(rest.requests(self._plan))
                return
            done = await self._one(rest, kept)
        if done is None:
            return
        self.bundles.append(self._out / job.folder_name)
        self.notes += [f"{job.folder_name}: {f}" for f in done.findings if f.startswith(TOLD)]
        if done.status == "failed":
            self.failed.append(job.folder_name)

    async def _one(self, job: Job, kept: Kept) -> Manifest:
        if self._cancel.is_set():
            raise Cancelled
        launch, setting, notes = self._launch_of(job.candidate, job.stage, job.start)
        if setting is not None:
            job = job._replace(setting=setting)
        if kept.points:
            names, where = ", ".join(sorted(kept.points)), ", ".join(p.name for p in kept.parts)
            notes.append(f"resumed: {names} had been measured in {where}, a start that was interrupted.")
        notes += self._untold
        self._untold = []
        before = self._reporter.standing.done_requests
        try:
            folder = fresh_folder(self._out / job.folder_name)
        except OSError as e:
            raise cannot_write(self._out, e) from None
        made = await JobRun(
            self._plan, job, launch, folder, self._reporter, self._cancel, notes,
            self._budget.until(self._jobs_left_in_round(job)), self._inputs, self._shards,
        ).run()  # fmt: skip
        if made.status == "failed":
            self._reporter.update(last_error=made.engine_start.error)
        left = job.requests(self._plan) - (self._reporter.standing.done_requests - before)
        if left > 0 and made.status != "cancelled":
            self._reporter.skip(left)
        return made

    def _jobs_left_in_round(self, job: Job) -> int:
        """Bundles of this start number that are not there yet, this one included."""
        names = [j.folder_name for j in self._jobs if j.start == job.start and not self._kept[j.folder_name].done]
        return len(names) - names.index(job.folder_name)

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
            folder = self._out / Job(candidate, earlier, start).folder_name
            parts = self._kept[folder.name].parts if folder.name in self._kept else ()  # a stage may be skipped whole
            setting = setting_from([*parts, folder] if (folder / MANIFEST).is_file() else parts, rule)
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
