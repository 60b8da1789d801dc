"""The schema of catalog/engines/*.yaml.

A Server is what can be started and asked; an Engine is a Server with everything that a choice needs. Ollama's entry
carries llama.cpp's llama-server as a second Server.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Literal

from pydantic import Field

from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.quantization import quantization
from planner.server_schema import Server, Text

EvidenceKind = Literal["documented", "read in code", "reported", "measured", "inferred"]
Confidence = Literal["low", "medium", "high"]
Capability = str
CAPABILITY = r"^\d{1,2}\.\d$"
VERSION_RANGE = r"^\S+( to \S+)?$"
ADDRESS = r"^(https?://\S+|[\w.-]+/[\w./-]+)$"  # a page, or owner/repository with a path
# Parts of a file whose statements carry no source each: `section_sources` says where they were read.
SERVER_SECTIONS = ("launch", "parameters", "endpoints", "request", "fair_run")
ENGINE_SECTIONS = (*SERVER_SECTIONS, "version", "hardware", "formats")


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
