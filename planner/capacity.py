"""From requirements to a machine: what fits, how fast, how many units under both constraints, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from pydantic import Field

from planner.catalog import Catalog
from planner.completion import Completion
from planner.conditions import Kind
from planner.cost import Cost, cost
from planner.derivation import Derivation
from planner.derive_knobs import knob_derivations
from planner.derive_memory import memory_derivations
from planner.derive_scale import completion_derivations, cost_derivations, rate_derivation, units_derivations
from planner.derive_speed import Speed, speed_derivations
from planner.errors import UnknownName
from planner.fit import FitSettings, Footprint, footprint, memory_warning, other_warnings
from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.kv_blocks import largest_context
from planner.model_schema import Model
from planner.pipeline import staged_completion, staged_largest, staged_row, staged_units
from planner.prefill import FirstToken, first_token
from planner.quantization import Quantization, quantization
from planner.request_rate import DEFAULT_UTILISATION, RateNeeded, offered_rate, rate_needed
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.scaling import UnitsNeeded, units_sentence
from planner.speculation import Speculation
from planner.speed_inputs import matrix_rate, speed_inputs
from planner.stated import Fact, Stated, budget_with, gaps, with_stated
from planner.throughput import (
    KINDS,
    BatchRow,
    MeasuredRatio,
    ThroughputInputs,
)

TABLE_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class SizingSettings(Frozen):
    """Choices that the requirements leave open.

    A unit is `tensor_parallel` x `pipeline_parallel` devices that hold one copy of the model. `tenant_bandwidth_share`
    is what other programs on the device read, an embedding model or a reranker.

    `peak_rate_per_s` None takes the rate that the requirements imply; a unit is loaded to `utilisation` of it at most.
    """

    tensor_parallel: int = Field(default=1, ge=1, le=64)
    pipeline_parallel: int = Field(default=1, ge=1, le=64)
    max_num_seqs: int | None = Field(default=None, ge=1, le=65_536)
    max_num_batched_tokens: int = Field(default=8192, ge=16, le=1_000_000)
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    tenant_bandwidth_share: float = Field(default=0.0, ge=0, lt=1)
    peak_rate_per_s: float | None = Field(default=None, gt=0, le=1_000_000)
    utilisation: float = Field(default=DEFAULT_UTILISATION, gt=0, le=1)
    speculation: Speculation | None = None
    stated: Stated = Stated()

    @property
    def devices(self) -> int:
        """Devices of one unit."""
        return self.tensor_parallel * self.pipeline_parallel


class LaunchAdvice(Frozen):
    """Settings that follow from the sizing.

    `max_num_seqs` lets a first run at free batch find the limit; `max_num_seqs_expected` is the largest batch that
    keeps the promise by the planning value, None when one user alone does not get it.
    """

    tensor_parallel: int
    max_model_len: int
    max_num_seqs: int
    max_num_seqs_expected: int | None
    gpu_memory_utilization: float
    kv_cache_dtype: str


class Sizing(Frozen):
    """All that the Sizing page shows, as one value. Without weights that fit or a known bandwidth, `inputs` is None."""

    plan: ModelPlan
    hardware: Hardware
    settings: SizingSettings
    model: str
    gpu: str
    promise_tok_s: float
    target_tok_s: float
    memory: Footprint
    largest_context_at_peak: int
    inputs: ThroughputInputs | None = None
    tables: Mapping[Kind, tuple[BatchRow, ...]] = {}
    completion: Completion | None = None
    units: tuple[UnitsNeeded, ...] = ()
    by_rate: RateNeeded | None = None
    first_token: FirstToken | None = None
    cost: Cost
    launch: LaunchAdvice
    gaps: tuple[Fact, ...] = ()
    sentence: str
    warnings: tuple[str, ...] = ()
    derivations: Mapping[str, Derivation] = {}

    @property
    def context_tokens(self) -> int:
        """Tokens of one request, input plus output, that everything here counts on."""
        return self.memory.settings.context_tokens

    @property
    def requests_that_fit(self) -> int:
        """Requests of that length that the KV cache of one unit holds at once."""
        return self.memory.requests_that_fit

    def row(self, kind: Kind, batch: int) -> BatchRow | None:
        """The row of one batch in one mode, in the tables or not; None where no speed is known."""
        known = next((r for r in self.tables.get(kind, ()) if r.batch == batch), None)
        if known or self.inputs is None:
            return known
        stages = self.settings.pipeline_parallel
        return staged_row(self.inputs, stages, kind, batch, self.promise_tok_s, self.target_tok_s)

    def units_for(self, kind: Kind, users: int) -> UnitsNeeded | None:
        """Units for one of the two ends of the peak; None where no speed is known."""
        return next((u for u in self.units if u.kind is kind and u.users == users), None)

    def derivation(self, key: str) -> Derivation:
        """The explanation of one figure. Raises UnknownName."""
        if key not in self.derivations:
            raise UnknownName.from_known("figure", key, self.derivations, where="sizing")
        return self.derivations[key]


def throughput_inputs(
    model: Model, quant: Quantization, gpu: Gpu, requirements: Requirements, memory: Footprint,
    settings: SizingSettings, measured: tuple[MeasuredRatio, ...] = (),
) -> ThroughputInputs:  # fmt: skip
    """The speed's inputs from the catalogue; the bound takes the maker's active parameters where they are stated.

    Raises InputError where the bandwidth is unknown.
    """
    return speed_inputs(
        model, quant, gpu, memory.weights, input_tokens=requirements.input_tokens,
        output_tokens=requirements.output_tokens, context_tokens=requirements.context_tokens,
        kv_dtype=memory.settings.kv_dtype, tensor_parallel=settings.tensor_parallel,
        kv_capacity=memory.requests_that_fit, bandwidth_share=1 - settings.tenant_bandwidth_share, measured=measured,
        speculation=settings.speculation,
    )  # fmt: skip


def size(
    requirements: Requirements, plan: ModelPlan, hardware: Hardware, catalog: Catalog,
    settings: SizingSettings | None = None, measured: tuple[MeasuredRatio, ...] = (),
) -> Sizing:  # fmt: skip
    """Size one model plan on one machine for the requirements; `measured` replaces the planning value's constants.

    Raises UnknownName for a model, GPU or quantization that the catalogue lacks, InputError for an architecture that
    is not modelled or heads that do not divide. What does not fit is a warning with the way out, not an error.
    """
    chosen = settings or SizingSettings()
    model, known, quant = catalog.model(plan.model), catalog.gpu(hardware.gpu), quantization(plan.quantization)
    gpu = with_stated(known, quant, chosen.stated)
    r = requirements.model_copy(update={"budget": budget_with(requirements.budget, chosen.stated)})
    memory = footprint(model, quant, gpu, fit_settings(r, plan, hardware, chosen))
    rate = matrix_rate(quant, gpu)
    inputs = None
    if memory.requests_that_fit and gpu.bandwidth_gb_s is not None:
        inputs = throughput_inputs(model, quant, gpu, r, memory, chosen, measured)
    unfit = memory_warning(model, quant, gpu, memory)
    others = other_warnings(model, quant, gpu, memory, users=r.peak_users_max, matrix_rate_known=rate is not None)
    speed = _speed(inputs, gpu, r, chosen)
    context = largest_context(
        model, memory.budget.kv, r.peak_users_max, kv_dtype=plan.kv_cache_dtype,
        tensor_parallel=chosen.tensor_parallel, pipeline_parallel=chosen.pipeline_parallel,
        max_num_batched_tokens=chosen.max_num_batched_tokens, speculative_tokens=memory.settings.speculative_tokens,
    )  # fmt: skip
    explained = (
        *memory_derivations(model, quant, gpu, memory, chosen.stated, context, r.peak_users_max),
        *knob_derivations(catalog, memory),
        *(_explained(inputs, gpu, rate, speed, r, chosen) if inputs else ()),
    )
    return Sizing(
        plan=plan, hardware=hardware, settings=chosen, model=model.id, gpu=gpu.id,
        promise_tok_s=r.user_tok_s_promise, target_tok_s=r.user_tok_s_target, memory=memory,
        largest_context_at_peak=context, inputs=inputs, tables=speed.tables, completion=speed.completion,
        units=speed.units, by_rate=speed.by_rate, first_token=speed.first_token, cost=speed.cost,
        launch=_launch(memory, speed.expected_seqs, model),
        sentence=units_sentence(speed.units, r, model.moe is None, chosen.devices),
        warnings=((unfit,) if unfit else ()) + others, gaps=gaps(known, quant, requirements.budget),
        derivations={d.key: d for d in explained},
    )  # fmt: skip


def fit_settings(r: Requirements, plan: ModelPlan, hardware: Hardware, chosen: SizingSettings) -> FitSettings:
    """What decides the memory, from requirements, plan, machine and settings."""
    guess = chosen.speculation
    return FitSettings(
        context_tokens=r.context_tokens, kv_dtype=plan.kv_cache_dtype, devices=chosen.tensor_parallel,
        pipeline_parallel=chosen.pipeline_parallel,
        tenants_gb=hardware.other_tenants_gb, max_num_seqs=chosen.max_num_seqs or max(16, r.peak_users_max),
        max_num_batched_tokens=chosen.max_num_batched_tokens, fraction=chosen.gpu_memory_utilization,
        speculative_tokens=guess.draft_tokens if guess else 0, draft_gb=guess.draft_gb if guess else 0.0,
    )  # fmt: skip


def _launch(memory: Footprint, expected_seqs: int, model: Model) -> LaunchAdvice:
    settings = memory.settings
    return LaunchAdvice(
        tensor_parallel=settings.devices, max_model_len=min(settings.context_tokens, model.max_position_embeddings),
        max_num_seqs=max(1, min(settings.max_num_seqs, memory.requests_that_fit)),
        max_num_seqs_expected=expected_seqs or None, kv_cache_dtype=settings.kv_dtype,
        gpu_memory_utilization=memory.device.gpu_memory_utilization,
    )  # fmt: skip


class _Speed(Frozen):
    """The speed side of a sizing; empty where no speed is known."""

    tables: Mapping[Kind, tuple[BatchRow, ...]] = {}
    units: tuple[UnitsNeeded, ...] = ()
    first_token: FirstToken | None = None
    completion: Completion | None = None
    by_rate: RateNeeded | None = None
    expected_seqs: int = 0
    cost: Cost


def _speed(inputs: ThroughputInputs | None, gpu: Gpu, r: Requirements, chosen: SizingSettings) -> _Speed:
    stages = chosen.pipeline_parallel
    paid = partial(
        cost, gpu, chosen.devices, r.budget, unit_price=chosen.stated.unit_price,
        utilisation=chosen.utilisation,
    )  # fmt: skip
    if inputs is None:
        return _Speed(cost=paid())
    users = sorted({r.peak_users_min, r.peak_users_max})
    batches = sorted({*TABLE_BATCHES, *users})
    units = tuple(staged_units(inputs, stages, kind, n, r.user_tok_s_target) for n in users for kind in KINDS)
    return _Speed(
        tables={
            kind: tuple(
                staged_row(inputs, stages, kind, b, r.user_tok_s_promise, r.user_tok_s_target) for b in batches
            )
            for kind in KINDS
        },
        units=units, first_token=first_token(inputs),
        completion=staged_completion(inputs, stages, Kind.BOUND, r.peak_users_max),
        by_rate=rate_needed(inputs, stages, r, chosen.peak_rate_per_s or offered_rate(r), chosen.utilisation),
        expected_seqs=staged_largest(inputs, stages, Kind.PLANNING, r.user_tok_s_promise),
        cost=paid(units=units[-1].units, unit_tok_s=_unit_rate(inputs, stages, units[-1])),
    )  # fmt: skip


def _unit_rate(inputs: ThroughputInputs, stages: int, needed: UnitsNeeded) -> float | None:
    """Total of one unit at the largest batch that keeps the target; None where not one user gets it."""
    batch, target = needed.largest_batch, needed.target_tok_s
    return staged_row(inputs, stages, needed.kind, batch, target, target).total_tok_s if batch else None


def _explained(
    inputs: ThroughputInputs, gpu: Gpu, rate: tuple[float, str] | None, speed: _Speed, r: Requirements,
    chosen: SizingSettings,
) -> Iterator[Derivation]:  # fmt: skip
    words = Speed(inputs, gpu, rate, r, chosen.stated, chosen.pipeline_parallel, chosen.max_num_batched_tokens)
    yield from speed_derivations(words, speed.first_token)
    yield from (words.row(kind, row.batch) for kind, rows in speed.tables.items() for row in rows)
    yield from units_derivations(speed.units, r)
    if speed.by_rate:
        yield rate_derivation(speed.by_rate, r, chosen.peak_rate_per_s is not None)
    if speed.completion:
        yield from completion_derivations(speed.completion)
    yield from cost_derivations(speed.cost, gpu, r, chosen.stated)
