"""Which input moves the answer most: each input at the ends of its range, all others as they are.

The ranges are data with a reason each; the answer is units by the planning value, and speed per user on one unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from planner.capacity import SizingSettings, fit_settings, throughput_inputs
from planner.catalog import Catalog
from planner.conditions import Kind
from planner.errors import InputError
from planner.fit import footprint
from planner.frozen import Frozen
from planner.pipeline import staged_units
from planner.quantization import quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.stated import with_stated
from planner.throughput import BANDWIDTH_EFFICIENCY, MFU, MeasuredRatio, ThroughputInputs
from planner.units import GIB, format_gb

End = float | str


class Case(NamedTuple):
    """One sizing question, and what is done to the speed's inputs after they are computed."""

    requirements: Requirements
    plan: ModelPlan
    hardware: Hardware
    settings: SizingSettings
    on_inputs: Callable[[ThroughputInputs], ThroughputInputs] = lambda inputs: inputs


class Range(NamedTuple):
    """One input: its two ends (factors, or alternatives by name), why these, and how an end is put into a case.

    `apply` returns the changed case and the end in words, None where the input does not occur in this case.
    """

    key: str
    title: str
    ends: tuple[End, End]
    why: str
    apply: Callable[[Case, End, Catalog], tuple[Case, str] | None]


class Leg(Frozen):
    """The answer at one end of a range; without units no number is enough, `problem` says where nothing fits."""

    label: str
    units: int | None = None
    user_tok_s: float | None = None
    problem: str = ""


class Swing(Frozen):
    """What one input does to the answer between the ends of its range."""

    key: str
    title: str
    why: str
    low: Leg
    high: Leg

    def spread(self, base: Leg) -> tuple[float, float]:
        """Units, then relative speed, between the most different of low, high and base; out of reach is farthest."""
        legs = (self.low, self.high, base)
        reached = [leg.units for leg in legs if leg.units is not None]
        units = float(max(reached) - min(reached)) if reached else 0.0
        if 0 < len(reached) < len(legs):
            units = float("inf")
        speeds = [leg.user_tok_s for leg in legs if leg.user_tok_s]
        return units, max(speeds) / min(speeds) if speeds else 1.0


class Tornado(Frozen):
    """The answer as things stand, and every input's swing around it, the largest first."""

    base: Leg
    swings: tuple[Swing, ...]


def tornado(
    requirements: Requirements, plan: ModelPlan, hardware: Hardware, catalog: Catalog,
    settings: SizingSettings | None = None, measured: tuple[MeasuredRatio, ...] = (),
) -> Tornado:  # fmt: skip
    """Move one input at a time to the ends of its range; inputs that change nothing here are left out.

    Raises what a sizing raises for the case itself; an end that cannot be sized says so in its leg.
    """
    case = Case(requirements, plan, hardware, settings or SizingSettings())
    base = _answer(case, catalog, measured, "as stated")
    swings = [s for r in RANGES if (s := _swing(r, case, catalog, measured)) and s.spread(base) > (0.0, 1.0)]
    return Tornado(base=base, swings=tuple(sorted(swings, key=lambda s: s.spread(base), reverse=True)))


def _swing(r: Range, case: Case, catalog: Catalog, measured: tuple[MeasuredRatio, ...]) -> Swing | None:
    legs = tuple(_legs(r, case, catalog, measured))
    return Swing(key=r.key, title=r.title, why=r.why, low=legs[0], high=legs[1]) if len(legs) == 2 else None


def _legs(r: Range, case: Case, catalog: Catalog, measured: tuple[MeasuredRatio, ...]) -> Iterator[Leg]:
    for end in r.ends:
        changed = r.apply(case, end, catalog)
        if changed is None:
            continue
        try:
            yield _answer(changed[0], catalog, measured, changed[1])
        except InputError as e:
            yield Leg(label=changed[1], problem=str(e))


def _answer(case: Case, catalog: Catalog, measured: tuple[MeasuredRatio, ...], label: str) -> Leg:
    r, settings = case.requirements, case.settings
    model, quant = catalog.model(case.plan.model), quantization(case.plan.quantization)
    gpu = with_stated(catalog.gpu(case.hardware.gpu), quant, settings.stated)
    memory = footprint(model, quant, gpu, fit_settings(r, case.plan, case.hardware, settings))
    if not memory.requests_that_fit:
        return Leg(label=label, problem="not one request fits")
    inputs = case.on_inputs(throughput_inputs(model, quant, gpu, r, memory, settings, measured))
    found = staged_units(
        inputs, settings.pipeline_parallel, Kind.PLANNING, r.peak_users_max, r.user_tok_s_target
    )  # fmt: skip
    return Leg(label=label, units=found.units, user_tok_s=found.unit_user_tok_s)


def _requirements(case: Case, **changed: object) -> Case:
    return case._replace(requirements=case.requirements.model_copy(update=changed))


def _context(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    """Prompts and answers keep their proportion to the context."""
    r, factor = case.requirements, float(end)
    tokens = min(round(r.context_tokens * factor), catalog.model(case.plan.model).max_position_embeddings)
    prompt = max(1, min(round(r.input_tokens * factor), tokens - r.output_tokens))
    return _requirements(case, context_tokens=tokens, input_tokens=prompt), f"{tokens:,} tokens"


def _answer_length(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    """The context stays: a longer answer leaves less of it to the prompt."""
    r = case.requirements
    tokens = max(1, min(round(r.output_tokens * float(end)), r.context_tokens - 1))
    prompt = max(1, min(r.input_tokens, r.context_tokens - tokens))
    return _requirements(case, output_tokens=tokens, input_tokens=prompt), f"{tokens:,} tokens"


def _users(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    users = max(1, round(case.requirements.peak_users_max * float(end)))
    # Slots follow the users where the settings leave them open, as in any sizing.
    return _requirements(case, peak_users_min=min(case.requirements.peak_users_min, users), peak_users_max=users), (
        f"{users:,} users"
    )


def _target(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    target = case.requirements.user_tok_s_target * float(end)
    return _requirements(case, user_tok_s_target=target), f"{target:g} tok/s"


def _efficiency(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    share = float(end)
    return case._replace(on_inputs=lambda i: i.model_copy(update={"efficiency": share})), f"{share:.0%} of data sheet"


def _mfu(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    factor = float(end)
    mfu = MFU["moe" if catalog.model(case.plan.model).moe else "dense"] * factor

    def slower(inputs: ThroughputInputs) -> ThroughputInputs:
        # Both enter as time at the whole matrix rate / MFU: the time scaled is the MFU scaled.
        times = {"prefill_s": inputs.prefill_s, "token_s": inputs.token_s}
        return inputs.model_copy(update={k: None if s is None else s / factor for k, s in times.items()})

    return case._replace(on_inputs=slower), f"MFU {mfu:.2g}"


def _acceptance(case: Case, end: End, catalog: Catalog) -> tuple[Case, str] | None:
    guess = case.settings.speculation
    if guess is None:
        return None
    share = min(1.0, guess.acceptance * float(end))
    settings = case.settings.model_copy(update={"speculation": guess.model_copy(update={"acceptance": share})})
    return case._replace(settings=settings), f"{share:.0%} accepted"


def _experts(case: Case, end: End, catalog: Catalog) -> tuple[Case, str] | None:
    if catalog.model(case.plan.model).moe is None:
        return None
    share = float(end)

    def fewer(inputs: ThroughputInputs) -> ThroughputInputs:
        return inputs.model_copy(update={"experts_gb": inputs.experts_gb * share})

    return case._replace(on_inputs=fewer), f"{share:.0%} of uniform routing"


def _kv_dtype(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    return case._replace(plan=case.plan.model_copy(update={"kv_cache_dtype": end})), str(end)


def _weights(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    return case._replace(plan=case.plan.model_copy(update={"quantization": end})), str(end)


def _tenants(case: Case, end: End, catalog: Catalog) -> tuple[Case, str]:
    """Other tenants hold this share of the device and use the same share of its bandwidth."""
    share = float(end)
    gpu = catalog.gpu(case.hardware.gpu)
    held = share * (gpu.usable_gb or (gpu.device_total_gib or gpu.memory_gb or 0.0) * GIB / 1e9)
    hardware = case.hardware.model_copy(update={"other_tenants_gb": held})
    settings = case.settings.model_copy(update={"tenant_bandwidth_share": share})
    words = f"{format_gb(held * 1e9)}, {share:.0%} of bandwidth" if share else "none"
    return case._replace(hardware=hardware, settings=settings), words


RANGES: tuple[Range, ...] = (
    Range("context", "Context length", (0.5, 2.0), "prompts differ by more than this between days", _context),
    Range("output", "Answer length", (0.5, 2.0), "answers are asked for longer or shorter than planned",
          _answer_length),
    Range("users", "Users at once", (0.5, 1.5), "peaks are estimated before launch", _users),
    Range("target", "Target speed per user", (0.8, 1.2), "a promise is negotiable within a fifth", _target),
    Range("efficiency", "Bandwidth that is reached", (0.65, 0.9),
          f"servers reached 61-87 % on one user alone; the planning value takes {BANDWIDTH_EFFICIENCY:.0%}",
          _efficiency),
    Range("mfu", "Matrix rate that is reached", (2 / 3, 4 / 3), "published prefill rates lie a third around it",
          _mfu),
    Range("acceptance", "Guesses that are accepted", (0.7, 1.15), "code is guessed more often than prose", _acceptance),
    Range("experts", "Experts that a batch touches", (1 / 1.5, 1.0),
          "correlated routing was measured up to 1.5 times faster than uniform", _experts),
    Range("kv_dtype", "KV cache precision", ("fp8", "fp16"), "engines offer both; quality has to be checked",
          _kv_dtype),
    Range("weights", "Weight format", ("int4", "bf16"), "what is published for most models; quality has to be checked",
          _weights),
    Range("tenants", "Other tenants of the GPU", (0.0, 0.2), "an embedding model and a reranker beside it", _tenants),
)  # fmt: skip
