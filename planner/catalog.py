"""Facts about models, accelerators and engines, read from catalog/*.yaml: the only file reading in this room.

A gap in the facts is None here and is asked for where it is needed; nothing is guessed while reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from planner.catalog_rows import CATALOG_SCHEMA as CATALOG_SCHEMA
from planner.catalog_rows import Rows, read_rows
from planner.engine_facts import server
from planner.engine_files import ENGINES, load_engines, own_engines
from planner.engine_schema import Engine, Server
from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.units import GB, GIB

REPOSITORY_CATALOG = Path(__file__).resolve().parent.parent / "catalog"

LOWEST_BANDWIDTH_GB_S = 5.0
LARGEST_MEMORY_GB = 10_000.0

Confidence = Literal["high", "medium", "low"]
Count = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=0, le=10**9)]


class Moe(Frozen):
    """Experts: how many, how many a token uses, their widths. Two or three matrices each.

    With `latent_size` the routed experts work on a hidden state projected down to it, and back up after them.
    """

    n_routed_experts: Count
    experts_per_token: Count
    moe_intermediate_size: Count
    stored_intermediate_size: Width | None = None
    shared_intermediate_size: Width = 0
    first_k_dense: Width = 0
    moe_layers: Count
    matrices_per_expert: int = Field(default=3, ge=2, le=3)
    latent_size: Count | None = None
    parallel_dense_mlp: bool = False

    @model_validator(mode="after")
    def _uses_what_it_has(self) -> Moe:
        if self.experts_per_token > self.n_routed_experts:
            raise ValueError(f"{self.experts_per_token} experts per token of only {self.n_routed_experts}.")
        return self


class SlidingWindow(Frozen):
    """Layers that see only the last `window` tokens, and those that see all."""

    window: Count
    full_attention_layers: Width
    windowed_layers: Count


class GlobalAttention(Frozen):
    """Heads of the full-attention layers where they differ from the windowed ones."""

    num_key_value_heads: Count
    head_dim: Count
    k_eq_v: bool = False


class Mla(Frozen):
    """Latent attention: one compressed vector per token instead of keys and values per head."""

    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_rope_head_dim: Count
    qk_nope_head_dim: Count
    v_head_dim: Count
    index_head_dim: Count | None = None
    index_topk: Count | None = None


class GatedDeltaNet(Frozen):
    """Linear-attention layers with a fixed state per request."""

    kind: Literal["gated_delta_net"]
    layers: Count
    full_attention_layers: Count
    num_key_heads: Count
    num_value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    attn_output_gate: bool = False


class Mamba2(Frozen):
    """State-space layers with a fixed state per request."""

    kind: Literal["mamba2"]
    layers: Count
    full_attention_layers: Count
    heads: Count
    head_dim: Count
    state: Count
    groups: Count
    conv_kernel: Count


class VisionTower(Frozen):
    """Image encoder: transformer layers with `matrices` per MLP, and `projector` parameters that lead to the text."""

    layers: Count
    hidden_size: Count
    intermediate_size: Count
    matrices: int = Field(default=2, ge=2, le=3)
    projector: Width = 0


class Model(Frozen):
    """One model's dimensions; names as in its config.json. Parameter counts are computed in architecture.py.

    `mlp_layers` says how many layers have a dense MLP where that is not one per layer; `mtp_layers` are the draft
    layers for speculative decoding, loaded only with it. `extra_weights_gib` is what an engine logged above the text
    model; without it `vision` is counted by formula.
    """

    id: str = Field(min_length=1)
    architecture: str
    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    num_key_value_heads: Count
    head_dim: Count
    intermediate_size: Count | None
    vocab_size: Count
    max_position_embeddings: Count
    tie_word_embeddings: bool
    mlp_matrices: int = Field(default=3, ge=2, le=3)
    mlp_layers: Width | None = None
    mtp_layers: Width = 0
    moe: Moe | None = None
    sliding_window: SlidingWindow | None = None
    global_attention: GlobalAttention | None = None
    mla: Mla | None = None
    linear_attention: Annotated[GatedDeltaNet | Mamba2, Field(discriminator="kind")] | None = None
    nominal_active_params_b: float | None = Field(default=None, gt=0)
    vision: VisionTower | None = None
    extra_weights_gib: float = Field(default=0.0, ge=0)
    sources: tuple[str, ...] = Field(min_length=1)
    confidence: Confidence
    note: str = ""

    @model_validator(mode="after")
    def _heads_divide(self) -> Model:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} heads do not share {self.num_key_value_heads} KV heads evenly."
            )
        return self

    @property
    def source(self) -> str:
        """Where the dimensions were read, in one line."""
        return "; ".join(self.sources)


class Gpu(Frozen):
    """One accelerator. GB are decimal, GiB binary; a figure that was not found is None."""

    id: str = Field(min_length=1)
    name: str
    aliases: tuple[str, ...] = ()
    memory_gb: float | None = Field(gt=0, le=LARGEST_MEMORY_GB)
    device_total_gib: float | None = Field(gt=0, le=LARGEST_MEMORY_GB)
    usable_gb: float | None = Field(default=None, gt=0)
    unified_memory: bool
    bandwidth_gb_s: float | None = Field(gt=0, le=1_000_000)
    dense_tflops: Mapping[str, float | None] = {}
    measured_gemm_tflops: Mapping[str, float | None] = {}
    compute_capability: str | None = None
    architecture: str
    tdp_w: float | None = Field(default=None, gt=0)
    interconnect: str | None = None
    sources: tuple[str, ...] = Field(min_length=1)
    confidence: Confidence
    note: str = ""

    @model_validator(mode="after")
    def _units_are_not_mixed_up(self) -> Gpu:
        """A driver reports at most the size on the box, in GiB; a bandwidth below 5 GB/s was stated in TB/s."""
        if self.device_total_gib and self.memory_gb and self.device_total_gib > self.memory_gb:
            raise ValueError(
                f"device_total_gib {self.device_total_gib:g} is above memory_gb {self.memory_gb:g}: GB stated as GiB? "
                f"({self.device_total_gib:g} GB are {self.device_total_gib * GB / GIB:.1f} GiB)."
            )
        if self.usable_gb and self.device_total_gib and self.usable_gb * GB > self.device_total_gib * GIB:
            raise ValueError(f"usable_gb {self.usable_gb:g} is above the device's {self.device_total_gib:g} GiB.")
        if self.bandwidth_gb_s and self.bandwidth_gb_s < LOWEST_BANDWIDTH_GB_S:
            raise ValueError(f"bandwidth_gb_s {self.bandwidth_gb_s:g} is too low: TB/s stated as GB/s?")
        return self

    @property
    def source(self) -> str:
        """Where the figures were read, in one line."""
        return "; ".join(self.sources)

    def tflops(self, precision: str) -> tuple[float, str] | None:
        """Dense matrix rate in TFLOPS for bf16, fp8, int8 or fp4, and how it is known; None when it is not.

        The data sheet comes first; where it is silent, a measured matrix multiplication.
        """
        for table, how in ((self.dense_tflops, "data sheet"), (self.measured_gemm_tflops, "measured GEMM")):
            rate = table.get(precision) or (table.get("nvfp4") if precision == "fp4" else None)
            if rate:
                return rate, how
        return None


class Refusal(Frozen):
    """What of a team's own entries was left out: where, what is wrong there, and the way out."""

    where: str
    what: str
    fix: str

    @classmethod
    def of(cls, error: InputError) -> Refusal:
        """The refusal that an error tells of."""
        return cls(where=error.where, what=error.what, fix=error.fix)

    @property
    def sentence(self) -> str:
        """All three as one line."""
        return f"{self.where}: {self.what} {self.fix}".rstrip()


class Catalog(Frozen):
    """All facts by id, with the look-ups that name what is near when a name is unknown.

    `refused` is what a team's own folder holds that could not be taken in; the rest is usable.
    """

    models: Mapping[str, Model]
    gpus: Mapping[str, Gpu]
    engines: Mapping[str, Engine] = {}
    refused: tuple[Refusal, ...] = ()

    def model(self, id: str) -> Model:
        """The model with this id, whatever the capitals. Raises UnknownName."""
        return self.models[_find("model", id, {i: i for i in self.models})]

    def gpu(self, name: str) -> Gpu:
        """The accelerator with this id or alias, whatever the capitals. Raises UnknownName."""
        names = {alias: g.id for g in self.gpus.values() for alias in (*g.aliases, g.name, g.id)}
        return self.gpus[_find("GPU", name, names)]

    def engine(self, id: str) -> Engine:
        """The engine with this id. Raises UnknownName."""
        return self.engines[_find("engine", id, {i: i for i in self.engines})]


def _find(kind: str, name: str, known: Mapping[str, str]) -> str:
    for spelled, id in known.items():
        if spelled.lower() == name.strip().lower():
            return id
    raise UnknownName.from_known(kind, name, known, where="catalogue")


Entry = TypeVar("Entry", Model, Gpu)
OWN_FILES = ("models.yaml", "gpus.yaml")


def load_catalog(root: Path | None = None, overlay: Path | None = None, *, tolerant: bool = False) -> Catalog:
    """Read models, accelerators and engines from `root` (default: the repository's catalog folder).

    `overlay` is a folder with own models.yaml, gpus.yaml or engines/*.yaml: an entry with a known id changes the fields
    that it states, one with a new id is added. The result is kept until a file changes. Raises InputError with file,
    line and field; with `tolerant`, what is wrong in the overlay is left out and stands in `refused` instead.
    """
    folder = root or REPOSITORY_CATALOG
    paths = [f / name for f in (folder, overlay) if f for name in OWN_FILES]
    paths += [p for f in (folder, overlay) if f for p in sorted((f / ENGINES).glob("*"))]
    found = _load(folder, overlay, tuple(map(_stamp, paths)))
    if found.refused and not tolerant:
        raise InputError(found.refused[0].what, where=found.refused[0].where, fix=found.refused[0].fix)
    return found


def facts_to_carry(engines: Mapping[str, Engine], name: str) -> Server | None:
    """What a plan has to tell bench about a server; None where the shipped catalogue says the same.

    Raises UnknownName.
    """
    ours = load_catalog().engines
    known = {**ours, **{e.llama_server.id: e.llama_server for e in ours.values() if e.llama_server}}
    found = server(engines, name)
    if known.get(name) == found:
        return None
    return Server.model_validate(found.model_dump(include=set(Server.model_fields)))


def _stamp(path: Path) -> tuple[str, int]:
    return str(path), path.stat().st_mtime_ns if path.exists() else 0


@lru_cache(maxsize=8)
def _load(folder: Path, overlay: Path | None, stamps: tuple[tuple[str, int], ...]) -> Catalog:
    refused: list[InputError] = []
    models = _merged(Model, "models", folder, overlay, refused)
    gpus = _merged(Gpu, "gpus", folder, overlay, refused)
    engines = load_engines(folder / ENGINES) if (folder / ENGINES).is_dir() else {}
    if overlay and engines:
        engines, wrong = own_engines(folder / ENGINES, overlay, engines)
        refused += wrong
    return Catalog(models=models, gpus=gpus, engines=engines, refused=tuple(Refusal.of(e) for e in refused))


def _merged(
    kind: type[Entry], key: str, folder: Path, overlay: Path | None, refused: list[InputError]
) -> dict[str, Entry]:
    ours = read_rows(folder / f"{key}.yaml", key, folder)
    found = {id: _entry(kind, row, ours) for id, row in ours.by_id.items()}
    own = overlay / f"{key}.yaml" if overlay else None
    if own is None or not (own.exists() or own.is_symlink()):
        return found
    try:
        rows = read_rows(own, key, own.parent)
    except InputError as e:
        refused.append(e)
        return found
    for id, row in rows.by_id.items():
        try:
            found[id] = _entry(kind, {**ours.by_id.get(id, {}), **row}, rows)
        except InputError as e:
            refused.append(e)
    return found


def _entry(kind: type[Entry], row: dict[str, Any], rows: Rows) -> Entry:
    try:
        return kind.model_validate(row)
    except ValidationError as e:
        fault = e.errors()[0]
        field = ".".join(str(part) for part in fault["loc"]) or "entry"
        message = fault["msg"].removeprefix("Value error, ").rstrip(".")
        raise InputError(
            f"{field}: {message}.", where=rows.where(row["id"], fault["loc"]),
            fix="Correct the field; null means unknown.",
        ) from None  # fmt: skip
