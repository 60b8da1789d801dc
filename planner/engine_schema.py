"""The schema of catalog/engines/*.yaml.

A Server is what can be started and asked; an Engine is a Server with everything that a choice needs. Ollama's entry
carries llama.cpp's llama-server as a second Server.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from math import prod
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.quantization import quantization

EvidenceKind = Literal["documented", "read in code", "reported", "measured", "inferred"]
Confidence = Literal["low", "medium", "high"]
Capability = str
CAPABILITY = r"^\d{1,2}\.\d$"
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
VERSION_RANGE = r"^\S+( to \S+)?$"
ADDRESS = r"^(https?://\S+|[\w.-]+/[\w./-]+)$"  # a page, or owner/repository with a path


# Criteria whose rating says how fast or how much an engine serves; a document alone cannot prove such a rating.
PERFORMANCE_AXES = frozenset({
    "batching", "chunked_prefill", "kv_management", "prefix_reuse", "quantization", "kv_quantization", "multi_gpu",
    "moe_ep", "pd_disaggregation", "speculative_decoding", "structured_output", "lora", "scheduling_policy",
})  # fmt: skip


class Source(Frozen):
    """Something that was read: where it stands, in which version, on which day, and what it says in our words.

    `published` is the day of the thing itself, where it is known.
    """

    address: str = Field(pattern=ADDRESS)
    version: Text
    read_on: date
    read: Text
    published: date | None = None


class Axis(Frozen):
    """One criterion of an engine: rating 0 none, 1 limited, 2 good, 3 excellent, with its reason and source.

    An empty rating says that nobody knows; `source` then says where it was looked for. `versions` is the range of
    versions that the sources speak of, as "0.24.0 to 0.33.0" or one. `only_documented` marks a rating of
    PERFORMANCE_AXES that rests on documentation alone.
    """

    statement: Text
    rating: int | None = Field(ge=0, le=3)
    reason: Text
    versions: str = Field(pattern=VERSION_RANGE)
    read_on: date
    evidence_kind: EvidenceKind
    confidence: Confidence
    source: tuple[Text, ...] = Field(min_length=1)
    only_documented: bool = False

    @property
    def newest_version(self) -> str:
        """The last version that the statement was read of."""
        return self.versions.rpartition(" to ")[2]


class Parameter(Frozen):
    """The flag or variable of a role, the one that switches it off, the default; `together` are set alike."""

    flag: str
    default: str
    switch_off: str = ""
    also: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    note: str = ""


class Endpoint(Frozen):
    """An HTTP route and what must be set for it to answer."""

    method: Literal["GET", "POST"]
    path: str
    needs: str = ""
    note: str = ""


class MetricReading(Frozen):
    """How a role's value comes from its series: a label of an info series, or combined with a second series."""

    label: str | None = None
    times: str | None = None
    over: str | None = None
    plus: str | None = None


class MetricsPage(Frozen):
    """What the metrics page needs, roles that are not read plainly, and which versions spell a series how.

    `versions` names, for a series of `metrics` that not every version has, the versions that do.
    """

    needs: str = ""
    read: dict[str, MetricReading] = {}
    versions: dict[str, Text] = {}
    note: str = ""
    source: str


class LogPattern(Frozen):
    """A line of the start log; the value is the product of the groups in `multiply`."""

    regex: str
    multiply: tuple[str, ...] = Field(min_length=1)
    example: str
    expect: float
    source: str
    note: str = ""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as e:
            raise ValueError(f"is not a regular expression: {e}.") from None
        return value

    def read(self, text: str) -> float | None:
        """The value in the last matching line of a log, or None."""
        matches = list(re.finditer(self.regex, text))
        return prod(float(matches[-1][g].replace(",", "")) for g in self.multiply) if matches else None


class Streaming(Frozen):
    """How answers arrive: what the first chunk holds, where reasoning and usage stand, how tokens are counted."""

    first_chunk: str
    first_chunk_has_token: bool
    reasoning_field: str
    usage: str
    continuous_usage: str
    cached_tokens: str
    counting: str
    source: str


class RequestFields(Frozen):
    """Names that a request may use; `unknown_fields` says what the server does with others."""

    max_tokens: str
    also_max_tokens: tuple[str, ...] = ()
    ignore_eos: bool
    min_tokens: bool
    cache_salt: bool
    unknown_fields: str


class FairRun(Frozen):
    """One default that skews a comparison: made equal by a flag, declared beforehand, or beyond reach."""

    topic: str
    default: str
    by: Literal["equalised", "declared", "cannot"]
    how: str
    effect: str


class Trap(Frozen):
    """Something that cost others a day, and where it was reported."""

    text: str
    source: str


class LaunchFacts(Frozen):
    """The start command, where the model goes in it, the image and the default port.

    `image_digest` (sha256:...) is empty where nobody read it; `image_command` is the command inside the image where it
    differs; `cache_variable` names the folder of downloaded models; `config_flag` takes a YAML file with settings that
    have no flag.
    """

    command: tuple[str, ...] = Field(min_length=1)
    model: str
    image: str
    image_digest: str = Field(default="", pattern=r"^(sha256:[0-9a-f]{64})?$")
    image_basis: str = ""
    image_command: tuple[str, ...] = ()
    cache_variable: str = ""
    shared_memory_gb: float | None = Field(default=None, gt=0)
    shared_memory_basis: str = ""
    config_flag: str = ""
    port: int


class SafeSetting(Frozen):
    """A flag (empty value: a switch) or variable that closes what stands open; `only` names the one purpose for it."""

    flag: str
    value: str = ""
    why: str
    only: Literal["benchmark", "production"] | None = None


class Security(Frozen):
    """What stands open by default, what an API key covers and what not, and the settings that close it.

    `keys` are environment variables that hold a key, each with the flag that takes it, or nothing where the server
    reads the variable itself. `remains` is what no setting closes, and what has to stand in front of it.
    """

    bind: str
    keys: dict[str, str]
    key_covers: str
    open_routes: tuple[str, ...]
    cors: str
    telemetry: str
    logging: str
    settings: tuple[SafeSetting, ...] = ()
    remains: tuple[str, ...] = ()
    source: tuple[str, ...] = Field(min_length=1)


# Parts of a file whose statements carry no source each: `section_sources` says where they were read.
SERVER_SECTIONS = ("launch", "parameters", "endpoints", "request", "fair_run")
ENGINE_SECTIONS = (*SERVER_SECTIONS, "version", "hardware", "formats")


class Server(Frozen):
    """A server that can be started and measured; `section_sources` is where its sections were read."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    name: str
    version: str
    date: date
    section_sources: dict[str, tuple[Text, ...]] = {}
    launch: LaunchFacts
    parameters: dict[str, Parameter]
    endpoints: dict[str, Endpoint]
    metrics_page: MetricsPage
    metrics: dict[str, tuple[str, ...]] = {}
    log_patterns: dict[str, LogPattern] = {}
    streaming: Streaming
    request: RequestFields
    fair_run: tuple[FairRun, ...]
    security: Security | None = None
    traps: tuple[Trap, ...] = ()

    def kv_capacity_tokens(self, log: str) -> int | None:
        """KV tokens that the start log states, or None when no line says so."""
        pattern = self.log_patterns.get("kv_capacity")
        found = pattern.read(log) if pattern else None
        return None if found is None else int(found)


class Licence(Frozen):
    """SPDX identifier and where it was read."""

    spdx: str
    source: str


class Maintenance(Frozen):
    """Whether the engine is developed; `since` is the day on which that changed, where known."""

    status: Literal["active", "maintenance"]
    since: date | None = None
    note: str
    sources: tuple[str, ...] = Field(min_length=1)


class AirGap(Frozen):
    """Whether the engine was seen to run without network; None is not known."""

    works: bool | None
    how: str
    source: str


class HardwareReport(Frozen):
    """What somebody stated about one compute capability."""

    compute_capability: Capability = Field(pattern=CAPABILITY)
    works: bool
    version: str
    what: str
    source: str


class HardwareFacts(Frozen):
    """Operating systems and GPUs; `known_on` are the compute capabilities built for or named by the vendor."""

    os: tuple[Literal["linux", "windows", "macos"], ...]
    min_compute_capability: Capability = Field(pattern=CAPABILITY)
    known_on: tuple[Capability, ...]
    known_basis: str
    documented: tuple[str, ...]
    plugins: tuple[str, ...] = ()
    reports: tuple[HardwareReport, ...] = ()


class WeightSupport(Frozen):
    """Quantizations of one weight format that load from a compute capability on; below `native_from` weights only."""

    weight_format: Literal["safetensors", "gguf"]
    quantization: tuple[str, ...] = Field(min_length=1)
    min_compute_capability: Capability = Field(pattern=CAPABILITY)
    native_from: Capability | None = None
    not_on: tuple[Capability, ...] = ()
    note: str = ""
    source: str


class Substitute(Frozen):
    """The nearest form of the same model that the engine reads when it cannot read the plan's own."""

    quantization: tuple[str, ...]
    weight_format: Literal["safetensors", "gguf"]
    becomes: str
    note: str


def spellings(name: str) -> set[str]:
    """A quantization as written and by its id in planner/quantization.py: "AWQ" is also "int4"."""
    found = {name.strip().lower()}
    with suppress(UnknownName):
        found.add(quantization(name).id)
    return found


class Formats(Frozen):
    """Weight formats with quantizations, KV types, and what needs a plugin."""

    weights: tuple[WeightSupport, ...]
    substitutes: tuple[Substitute, ...] = ()
    kv_cache_dtypes: tuple[str, ...]
    not_in_core: tuple[str, ...] = ()

    def support(self, weight_format: str, name: str) -> WeightSupport | None:
        """The row that covers a weight format and quantization, or None."""
        names = spellings(name)
        rows = (w for w in self.weights if w.weight_format == weight_format and not names.isdisjoint(w.quantization))
        return next(rows, None)

    def substitute(self, name: str) -> Substitute | None:
        """The nearest readable form for a quantization, or None."""
        names = spellings(name)
        return next((s for s in self.substitutes if not names.isdisjoint(s.quantization)), None)


class Engine(Server):
    """All that is known about one engine; `cadence_days` is the time between releases, None when they ended.

    `sources` holds what was read, by the name under which `source` fields cite it: "NAME" or "NAME: where in it".
    """

    sources: dict[str, Source] = Field(min_length=1)
    repository: str
    date_basis: str
    read_on: date
    cadence_days: int | None = Field(gt=0)
    commit: str
    licence: Licence
    maintenance: Maintenance
    api: tuple[Literal["openai-chat", "openai-completions"], ...]
    air_gap: AirGap
    hardware: HardwareFacts
    formats: Formats
    axes: dict[str, Axis]
    llama_server: Server | None = None
