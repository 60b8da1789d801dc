"""The PoC plan: contract, candidates, load points, stages and hypotheses, as one file that bench needs alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from planner.condition_line import EVERY_POINT, format_test
from planner.conditions import Condition
from planner.engine_files import shipped_ids
from planner.errors import UnknownName
from planner.frozen import Frozen, sha256_of
from planner.hypothesis_schema import Hypothesis as Hypothesis
from planner.hypothesis_schema import fault_in_dependencies
from planner.loads import LoadPoint, fault_in_pairs, without_sweeps
from planner.server_schema import Server

# Fields that plans did not always have, so that an older plan keeps its hash.
LATER = (
    "budget_min", "tokenizer_dir", "container", "files", "saturation_s", "facts", "config_files", "user_id",
    "depends_on", "origin", "stakes", "author", "left_out", "skips", "by_hand",
)  # fmt: skip
DIALECTS = (*shipped_ids(), "llama-server", "openai")  # what bench speaks without being told more


ConfigName = Annotated[str, StringConstraints(pattern=r"^\w[\w.-]{0,63}$")]
ConfigText = Annotated[str, StringConstraints(max_length=65_536)]


class Container(Frozen):
    """The image that a launch's command runs in; `digest` (sha256:...) is the repository digest or the image's id.

    `mounts` are folders of the machine by their place in the container, read-only, for the user with the number
    `user_id` (USER_ID unless stated) to read; `gpus` is what `--gpus` takes.
    """

    image: str = Field(pattern=r"^[A-Za-z0-9][\w./:-]*$")
    digest: str = Field(default="", pattern=r"^(sha256:[0-9a-f]{64})?$")
    gpus: str = Field(default="all", pattern=r"^(all|none|\d+|device=[\w,-]+)$")
    mounts: dict[str, str] = {}
    shared_memory_gb: float | None = Field(default=None, gt=0, le=1024)
    runtime: Literal["docker", "podman"] = "docker"
    user_id: int | None = Field(default=None, ge=0, le=2**31)

    @model_validator(mode="after")
    def _mounts_are_whole_paths(self) -> Container:
        for inside, outside in self.mounts.items():
            if not (inside.startswith("/") and outside.startswith("/")) or ":" in inside + outside:
                raise ValueError(f"mounts: {outside} at {inside}: write both as whole paths without a colon.")
        return self


class Launch(Frozen):
    """How bench gets a server: start `command` (an argument list), or attach to what runs at `url`.

    `stage_settings` names the argument that stage B's rule may set, such as {"max_num_seqs": "--max-num-seqs"};
    `files` are files of the model on the machine with their SHA-256, checked before anything starts. `config_files`
    are texts by name that bench writes before the start; a word of the command that is such a name becomes its path.
    """

    url: str = Field(default="http://127.0.0.1:8000", pattern=r"^https?://[^\s/]+(:\d+)?$")
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    ready_timeout_s: float = Field(default=900, gt=0, le=7200)
    stage_settings: dict[str, str] = {}
    container: Container | None = None
    files: dict[str, str] = {}
    config_files: dict[ConfigName, ConfigText] = {}

    @model_validator(mode="after")
    def _no_process_takes_a_nul(self) -> Launch:
        if any("\0" in word for word in (*self.command, *self.environment, *self.environment.values())):
            raise ValueError("command and environment hold no NUL byte.")
        return self

    @model_validator(mode="after")
    def _config_files_are_named(self) -> Launch:
        for name in self.config_files:
            if name not in self.command:
                raise ValueError(f"config_files: {name} is no word of the command, so nothing would read it.")
        return self

    @model_validator(mode="after")
    def _container_has_a_command(self) -> Launch:
        if self.container and not self.command:
            raise ValueError("a container needs the command that it runs.")
        for name, digest in self.files.items():
            if not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise ValueError(f"files: {name}: {digest!r} is not a SHA-256 of 64 hexadecimal digits.")
        return self


class PlanCandidate(Frozen):
    """Engine x model plan x hardware with its launch; `contract` is the candidate part of the contract.

    `facts` is what bench has to know of an engine that its own catalogue lacks, or has otherwise; `skips` are load
    points that are not run on it, `by_hand` contract fields that a person stated otherwise than derived.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,59}$")
    role: Literal["baseline", "favourite", "challenger"]
    engine: str
    model_name: str
    launch: Launch
    contract: dict[str, str] = {}
    bound_tok_s: dict[str, float] = {}
    facts: Server | None = None
    skips: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _facts_are_the_engines(self) -> PlanCandidate:
        if self.facts and self.facts.id != self.engine:
            raise ValueError(f"facts: they are those of {self.facts.id!r}, the engine is {self.engine!r}.")
        return self


class StageRule(Frozen):
    """Stage B's setting from stage A's result: the largest point of `from_stage` at which `keeps` still holds."""

    setting: str
    from_stage: str
    keeps: Condition


class Stage(Frozen):
    """Load points that run against one configuration of the server."""

    name: str
    points: tuple[str, ...] = Field(min_length=1)
    rule: StageRule | None = None
    why: str = ""


class Stop(Frozen):
    """When a load point ends early; `saturation_s` is how long queue and wait must grow in an open loop, None: ever."""

    max_point_s: float = Field(default=900, gt=0)
    max_error_share: float = Field(default=0.5, ge=0, le=1)
    request_timeout_s: float = Field(default=600, gt=0)
    saturation_s: float | None = Field(default=None, ge=3)


class Plan(Frozen):
    """One PoC: all that bench needs. Points and candidates are named once and referred to by name.

    `tokenizer_dir` holds the model's tokenizer.json; it and each file of a load point are found from the plan's folder.
    `left_out` are hypotheses that a person took out, so that deriving the plan anew does not bring them back.
    """

    schema_version: Literal[1] = 1
    case: str
    title: str
    requirements_sha256: str = ""
    shared_contract: dict[str, str]
    declared_differences: tuple[str, ...] = ()
    candidates: tuple[PlanCandidate, ...] = Field(min_length=1)
    load_points: tuple[LoadPoint, ...] = Field(min_length=1)
    stages: tuple[Stage, ...] = Field(min_length=1)
    hypotheses: tuple[Hypothesis, ...] = ()
    service_levels: tuple[Condition, ...] = ()
    starts: int = Field(default=3, ge=1, le=20)
    repeats: int = Field(default=1, ge=1, le=50)
    seed: int = 1
    sampling: dict[str, float] = {"temperature": 0.0}
    stop: Stop = Stop()
    budget_min: float | None = Field(default=None, gt=0, le=100_000)
    tokenizer_dir: str = ""
    left_out: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _write_sweeps_out(cls, data: Any) -> Any:
        return without_sweeps(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _names_resolve(self) -> Plan:
        points = {p.name for p in self.load_points}
        if len(points) != len(self.load_points):
            raise ValueError("two load points carry the same name.")
        if len({c.id for c in self.candidates}) != len(self.candidates):
            raise ValueError("two candidates carry the same id.")
        if fault := fault_in_pairs(self.load_points):
            raise ValueError(fault)
        for stage in self.stages:
            if len(set(stage.points)) != len(stage.points):
                raise ValueError(f"stage {stage.name}: it names a load point twice; raise `repeats` to run it again.")
            for name in stage.points:
                if name not in points:
                    raise ValueError(
                        str(UnknownName.from_known("load point", name, points, where=f"stage {stage.name}"))
                    )
        for candidate in self.candidates:
            if candidate.facts is None and candidate.engine not in DIALECTS:
                where = f"candidate {candidate.id}"
                raise ValueError(str(UnknownName.from_known("engine", candidate.engine, DIALECTS, where=where)))
            for name in (n for n in candidate.skips if n not in points):
                where = f"skips of candidate {candidate.id}"
                raise ValueError(str(UnknownName.from_known("load point", name, points, where=where)))
        stages = [s.name for s in self.stages]
        for stage in self.stages:
            if stage.rule and stage.rule.from_stage not in stages:
                where = f"rule of stage {stage.name}"
                raise ValueError(str(UnknownName.from_known("stage", stage.rule.from_stage, stages, where=where)))
        for where, condition in self._asked():
            self._knows(condition, where)
        if fault := fault_in_dependencies(self.hypotheses):
            raise ValueError(fault)
        return self

    def _asked(self) -> list[tuple[str, Condition]]:
        """Every condition with the place where it stands."""
        found = [(f"hypothesis {h.id}", c) for h in self.hypotheses for c in h.conditions]
        found += [("service levels", c) for c in self.service_levels]
        return found + [(f"rule of stage {s.name}", s.rule.keeps) for s in self.stages if s.rule]

    def _knows(self, condition: Condition, where: str) -> None:
        candidates = [c.id for c in self.candidates]
        for name in (condition.candidate, condition.over):
            if name is not None and name not in candidates:
                raise ValueError(str(UnknownName.from_known("candidate", name, candidates, where=where)))
        points = [p.name for p in self.load_points]
        for name in condition.load_points:
            if name != EVERY_POINT and name not in points:
                raise ValueError(str(UnknownName.from_known("load point", name, points, where=where)))
        for c in self.candidates:
            if c.id in (condition.candidate, condition.over) and (both := set(c.skips) & set(condition.load_points)):
                raise ValueError(f"{where}: it asks for {c.id} at {min(both)}, which {c.id} skips.")

    def stages_of(self, candidate: PlanCandidate) -> tuple[Stage, ...]:
        """The stages that run on a candidate, without the points that it skips."""
        own = (
            s.model_copy(update={"points": tuple(n for n in s.points if n not in candidate.skips)})
            for s in self.stages
        )  # fmt: skip
        return tuple(s for s in own if s.points)

    def point(self, name: str) -> LoadPoint:
        """The load point of that name; raises UnknownName."""
        for p in self.load_points:
            if p.name == name:
                return p
        raise UnknownName.from_known("load point", name, (p.name for p in self.load_points))

    def points(self) -> dict[str, LoadPoint]:
        """Load points by name."""
        return {p.name: p for p in self.load_points}

    def all_conditions(self) -> tuple[Condition, ...]:
        """Every condition that the plan asks about: hypotheses, service levels at each point, stage rules."""
        return tuple(condition for _, condition in self._asked())

    def sha256(self) -> str:
        """SHA-256 of the canonical JSON of the plan; what came into plans later counts only where it is stated."""
        data = self.model_dump(mode="json")
        data["load_points"] = [p.stated() for p in self.load_points]
        launches = [c["launch"] for c in data["candidates"]]
        containers = [launch["container"] for launch in launches if launch["container"]]
        for part in (data, data["stop"], *data["candidates"], *data["hypotheses"], *launches, *containers):
            for name in LATER:
                if name in part and part[name] in (None, "", {}, []):
                    del part[name]
        return sha256_of(data)


def levels_hash(levels: Sequence[Condition]) -> str | None:
    """SHA-256 of service levels as goodput is counted under them: metric, statistic, limit of each; None for none."""
    return sha256_of([format_test(c) for c in levels]) if levels else None
