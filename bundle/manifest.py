"""The manifest of a bundle: one engine start of one candidate in one stage, and everything it was done under."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.conditions import Kind
from planner.contract import Contract
from planner.frozen import Frozen
from planner.loads import LoadPoint

BUNDLE_SCHEMA = 2
MANIFEST = "manifest.json"
MOST_TIMES = 1_000_000  # starts of a candidate, repeats of a point
CANCELLED, BUDGET = "cancelled", "the run's budget"  # why a person, or the plan's time, ended a repeat
LARGEST = 2**53  # the largest count that JSON's readers agree on
RunKind = Literal[Kind.MEASURED, Kind.SIMULATED, Kind.IMPORTED]


class EngineStart(Frozen):
    """How the server came up, or did not. A failed start is a result, so it is recorded like a good one."""

    command: tuple[str, ...] = ()
    url: str
    attached: bool = False
    started: bool
    startup_s: float | None = Field(default=None, ge=0)
    exit_code: int | None = None
    error: str = ""
    oom: int = 0
    restarts: int = 0
    log_file: str | None = None
    version_reported: str | None = None
    kv_capacity_tokens: int | None = Field(default=None, ge=0, le=LARGEST)


class Warmup(Frozen):
    """What was sent before the repeat counted: never the prompts of the repeat."""

    requests: int = 0
    rounds: int = 0
    settled: bool = False


class Repeat(Frozen):
    """One pass over one load point; times in the records are seconds after `t0_unix_s`."""

    load_point: str
    repeat: int = Field(ge=1, le=MOST_TIMES)
    t0_unix_s: float
    duration_s: float
    scheduled: int
    ok: int
    failed: int
    undetermined: int
    status: Literal["complete", "stopped"] = "complete"
    stop_reason: str = ""
    records: str
    telemetry: str | None = None
    quality: str | None = None
    counters_before: dict[str, float] = {}
    counters_after: dict[str, float] = {}
    loop_lag_p99_ms: float | None = None
    client_cpu_share: float | None = None
    clock_step_ms: float = 0.0
    loop_stalled_share: float | None = None
    cpu_wait_share: float | None = None
    receive_buffer_full: int = 0
    stamps_dropped: int = 0
    shards: int = Field(default=1, ge=1)
    shards_lost: int = 0
    server_restarts: int = 0
    other_load_share: float | None = None
    contract_changed: tuple[str, ...] = ()
    salt: str = ""
    warmup: Warmup = Warmup()

    @property
    def stopped_by_a_rule(self) -> bool:
        """A stop rule ended it: no person, and not the run's budget."""
        return bool(self.stop_reason) and self.stop_reason != CANCELLED and not self.stop_reason.startswith(BUDGET)


class Figure(Frozen):
    """A figure that a foreign tool had computed, in our metric's base unit; `theirs` is its name there.

    `kind` is engine-alone where no server was between: it gives an expectation and decides nothing.
    """

    load_point: str
    repeat: int = Field(default=1, ge=1, le=MOST_TIMES)
    metric: str
    statistic: str = "value"
    value: float
    n: int | None = Field(default=None, ge=0, le=LARGEST)
    theirs: str
    remark: str = ""
    kind: Literal[Kind.IMPORTED, Kind.ENGINE_ALONE] = Kind.IMPORTED
    spoiled_by: tuple[str, ...] = ()


class Imported(Frozen):
    """Where an imported result comes from, and what of it is taken.

    `loads` is the load in the file's own figures, by load point. `from_records` are the metrics that our definitions
    can be applied to. `not_measured` (metric to reason) is what the source cannot give, `refused` (their name to
    reason) what it gives under a definition that is not ours, `remarks` (metric to words) what differs in what is
    taken from records.
    """

    tool: str
    version: str = ""
    file: str
    file_sha256: str
    source: str = ""
    licence: str = ""
    loads: dict[str, str] = {}
    from_records: tuple[str, ...] = ()
    not_measured: dict[str, str] = {}
    refused: dict[str, str] = {}
    remarks: dict[str, str] = {}


class Manifest(Frozen):
    """The whole story of a bundle; `files` holds the SHA-256 of every other file in it.

    `spent_s` is the time it took on a clock that nobody sets. `kind` is simulated for everything that the emulator
    answered, imported for a foreign tool's result (`imported`). `counters` are named by role (running, waiting, kv_use,
    preemptions, prefix_hits, prefix_queries, prompt_tokens, generation_tokens, ttft_sum_s, ttft_count).
    """

    schema_version: Literal[2] = 2
    id: str = Field(min_length=8)
    kind: RunKind
    tool_version: str
    case: str
    plan_sha256: str
    candidate: str
    role: str = ""
    engine: str
    stage: str
    start: int = Field(ge=1, le=MOST_TIMES)
    created_at: str
    finished_at: str
    spent_s: float | None = None
    status: Literal["complete", "cancelled", "failed"]
    contract: Contract
    settings_resolved: dict[str, str] = {}
    environment: dict[str, str] = {}
    clock: dict[str, str] = {}
    engine_start: EngineStart
    points: tuple[LoadPoint, ...]
    repeats: tuple[Repeat, ...] = ()
    bound_tok_s: dict[str, float] = {}
    findings: tuple[str, ...] = ()
    imported: Imported | None = None
    figures: tuple[Figure, ...] = ()
    files: dict[str, str] = {}
