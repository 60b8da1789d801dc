"""The bundle of one engine start while it is being made: what was found, its repeats, and the seal at the end.

After every repeat the manifest as it would be sealed now is kept in a file beside the records. When bench is killed,
`recover` seals that: a bundle which is valid up to there, with every repeat that had ended.
"""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from bench.consent import is_emulator_command
from bench.engines import Ended, Server
from bench.machine import TOOL_VERSION, environment, load_average, observed_machine
from bench.preflight import Preflight
from bench.repeat import Result
from bench.surroundings import Surroundings
from bench.telemetry import Telemetry
from bundle.folder import seal
from bundle.manifest import EngineStart, Manifest, Repeat, Warmup
from bundle.migrate import read_manifest
from bundle.quality import write_quality
from bundle.records import write_records, write_telemetry
from planner.conditions import Kind
from planner.contract import Contract
from planner.errors import FliplineError, InputError
from planner.loads import LoadPoint
from planner.poc import Plan, PlanCandidate, Stage

LOG = "server.log"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
OF_THE_DISK = FULL | {errno.EROFS, errno.EACCES, errno.EIO, errno.ENOTDIR, errno.ENOENT}
SO_FAR = "manifest.so-far.part"  # `seal` leaves .part files out
ROOM = "room.part"  # as long as the manifest will be, so that a disk which others fill still takes the seal
Status = Literal["complete", "cancelled", "failed"]


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


class Bundling:
    """Collects one bundle in its folder; `observe` once the preflight is through, `seal` at the end."""

    def __init__(self, plan: Plan, job: Job, server: Server, folder: Path, notes: list[str]) -> None:
        self._plan, self._job, self._server, self._folder = plan, job, server, folder
        self._launch, self._room = server.launch, folder / ROOM
        self._id, self._created, self._began = uuid.uuid4().hex, datetime.now(UTC), time.monotonic()
        self._environment = {**environment(server.origin), "load_average_begin": load_average()}
        self._checked: Preflight | None = None
        self._contract: Contract | None = None
        self.findings = list(notes)
        self.repeats: list[Repeat] = []
        self._clock: dict[str, str] = {}

    def observe(self, checked: Preflight) -> None:
        """Take in what the preflight learned."""
        self._checked = checked
        self.findings += checked.findings

    def add(
        self, point: LoadPoint, number: int, result: Result, telemetry: Telemetry, before: dict[str, float],
        after: dict[str, float], salt: str, warmed: Warmup, around: Surroundings,
    ) -> None:  # fmt: skip
        """Write one repeat's records and telemetry, and keep its line for the manifest.

        Raises InputError when the disk does not take them.
        """
        stem = f"{point.name}-{number}"
        try:
            write_records(self._folder / f"{stem}.records.parquet", result.records)
            if result.quality:
                write_quality(self._folder / f"{stem}.quality.json", result.quality)
            if telemetry.samples:
                write_telemetry(self._folder / f"{stem}.telemetry.parquet", telemetry.samples)
        except OSError as e:
            self._give_room()
            for kind in ("records.parquet", "quality.json", "telemetry.parquet"):  # half a file would pass as whole
                (self._folder / f"{stem}.{kind}").unlink(missing_ok=True)
            raise cannot_write(self._folder, e) from None
        load = [r for r in result.records if r.is_load]
        self.repeats.append(Repeat(
            load_point=point.name, repeat=number, t0_unix_s=result.t0_unix_s, duration_s=result.duration_s,
            scheduled=len(load), ok=result.number_of("ok"), failed=result.number_of("failed"),
            undetermined=result.number_of("undetermined"), status=result.status, stop_reason=result.stop_reason,
            records=f"{stem}.records.parquet",
            telemetry=f"{stem}.telemetry.parquet" if telemetry.samples else None,
            quality=f"{stem}.quality.json" if result.quality else None,
            counters_before=before, counters_after=after, loop_lag_p99_ms=result.loop_lag_p99_ms,
            client_cpu_share=result.client_cpu_share, clock_step_ms=result.clock_step_ms,
            loop_stalled_share=result.loop_stalled_share, cpu_wait_share=result.cpu_wait_share,
            receive_buffer_full=result.receive_buffer_full, stamps_dropped=result.stamps_dropped,
            salt=salt, warmup=warmed, shards=result.shards, shards_lost=result.shards_lost,
            server_restarts=telemetry.restarts, other_load_share=around.other_load_share,
            contract_changed=around.contract_changed,
        ))  # fmt: skip
        self._clock = result.clock
        errors = sorted({f"{r.error_kind}: {r.error}" for r in load if r.outcome == "failed"})
        self.findings += [f"failures: {point.name}: {e}" for e in errors[:5]]
        if not warmed.settled and warmed.requests and number == 1:
            self.findings.append(f"warm-up: {point.name}: two rounds did not agree within 10 %.")
        self._keep_so_far()

    def _keep_so_far(self) -> None:
        path = self._folder / SO_FAR
        fresh = path.with_name(f"{SO_FAR}.part")
        try:
            fresh.write_text(self._manifest("cancelled", None, "").model_dump_json(), encoding="utf-8")
            fresh.replace(path)
            self._room.write_bytes(bytes(2 * path.stat().st_size))
        except OSError as e:
            self._give_room()
            raise cannot_write(self._folder, e) from None

    def _give_room(self) -> None:
        """The disk is full: what was kept free for the manifest is needed now."""
        self._room.unlink(missing_ok=True)
        self._room.with_name(f"{SO_FAR}.part").unlink(missing_ok=True)

    def seal(self, status: Status, ended: Ended | None, error: str) -> Manifest:
        """Write the manifest; raises InputError when the disk does not take it."""
        self._give_room()
        try:
            sealed = seal(self._folder, self._manifest(status, ended, error))
            (self._folder / SO_FAR).unlink(missing_ok=True)
        except OSError as e:
            raise cannot_write(self._folder, e) from None
        return sealed

    def _manifest(self, status: Status, ended: Ended | None, error: str) -> Manifest:
        job, plan, checked, server = self._job, self._plan, self._checked, self._server
        simulated = is_emulator_command(self._launch.command) or bool(checked and checked.simulated)
        settings = dict(checked.settings) if checked else {}
        if job.setting:
            settings[f"stage_rule.{job.setting[0]}"] = str(job.setting[1])
        if server.image:
            settings["image.id"] = server.image.id
        return Manifest(
            id=self._id, kind=Kind.SIMULATED if simulated else Kind.MEASURED, tool_version=TOOL_VERSION,
            case=plan.case, plan_sha256=plan.sha256(), candidate=job.candidate.id, role=job.candidate.role,
            engine=job.candidate.engine, stage=job.stage.name, start=job.start,
            created_at=self._created.isoformat(timespec="seconds"),
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"), status=status,
            spent_s=round(time.monotonic() - self._began, 3),
            contract=self._stated(), settings_resolved=settings,
            environment={**self._environment, "load_average_end": load_average()}, clock=self._clock,
            engine_start=EngineStart(
                command=self._launch.command, url=self._launch.url, attached=not self._launch.command,
                started=checked is not None, startup_s=server.startup_s,
                exit_code=ended.exit_code if ended else None, error=error or (ended.error if ended else ""),
                oom=int(bool(ended and ended.oom)), restarts=int(bool(ended and checked)),
                log_file=LOG if self._launch.command else None, version_reported=checked.version if checked else None,
                kv_capacity_tokens=checked.kv_capacity_tokens if checked else None,
            ),
            points=tuple(plan.point(name) for name in job.stage.points), repeats=tuple(self.repeats),
            bound_tok_s=job.candidate.bound_tok_s, findings=tuple(dict.fromkeys(self.findings)),
        )  # fmt: skip

    def _stated(self) -> Contract:
        """Shared and candidate part as planned (with the stage's setting), observed part as read; read only once."""
        if self._contract is not None:
            return self._contract
        asked = dict(self._job.candidate.contract)
        if self._job.setting:
            asked[self._job.setting[0]] = str(self._job.setting[1])
        if self._launch.container and self._server.image:
            asked["image"] = f"{self._launch.container.image} {self._server.image.id}"
        width = asked.get("tensor_parallel", "1")
        observed = observed_machine(self._server.origin, int(width) if width.isdigit() else 1)
        if not observed:
            self.findings.append("remote: the server runs on another machine; its GPU and driver were not read.")
        if self._checked and self._checked.version:
            observed["engine_version_reported"] = self._checked.version
        self._contract = Contract(shared=self._plan.shared_contract, candidate=asked, observed=observed,
                                  declared_differences=self._plan.declared_differences)  # fmt: skip
        return self._contract


def cannot_write(folder: Path, error: OSError) -> InputError:
    """What a person reads when the disk does not take something."""
    why = os.strerror(error.errno) if error.errno else str(error)  # pyarrow's text names its own calls
    way_out = "Make room" if error.errno in FULL else "Make it writable"
    return InputError(f"cannot be written: {why}.", where=str(folder),
                      fix=f"{way_out}; the same command goes on from here, and finished points are kept.")  # fmt: skip


def recover(folder: Path) -> Manifest | None:
    """Seal what a bench that was killed left in a folder; None when no repeat had ended there.

    The engine start is over: its server was stopped when bench died, so the bundle is one that was cancelled.
    """
    try:
        found = read_manifest((folder / SO_FAR).read_bytes(), str(folder))
    except (OSError, FliplineError):
        return None
    kept = {name for r in found.repeats for name in (r.records, r.telemetry, found.engine_start.log_file) if name}
    for path in folder.iterdir():
        if path.suffix == ".parquet" and path.name not in kept:
            path.unlink()  # of the repeat that was under way: it may be half written
    (folder / ROOM).unlink(missing_ok=True)
    note = "interrupted: bench was killed in this start; repeats that had not ended are not here."
    sealed = seal(folder, found.model_copy(update={"findings": (*found.findings, note)}))
    (folder / SO_FAR).unlink()
    return sealed
