"""Sizings that nobody stored: another context, other users, another machine, asked on the page or in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from planner.amounts import amount, count, tokens
from planner.calibration import Calibration
from planner.capacity import Sizing, SizingSettings, size
from planner.catalog import Catalog
from planner.errors import InputError, UnknownName
from planner.poc import first_fault
from planner.quantization import KV_BYTES, quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.stated import Stated, fact, must_be_possible
from planner.throughput import MeasuredRatio
from planner.tornado import Tornado, tornado
from services.calibrations import calibration, setting_of
from services.cases import sizings
from services.scores import case_score
from services.workspace import Workspace

DEFAULT_OUTPUT_TOKENS = 500
DEFAULT_TARGET_TOK_S = 25.0
DEFAULT_TTFT_S = 2.0


class Question(NamedTuple):
    """All that one sizing is computed from, and the engine whose measured ratios count; empty for none."""

    requirements: Requirements
    plan: ModelPlan
    hardware: Hardware
    settings: SizingSettings
    engine: str = ""

    def measured(self, catalog: Catalog, known: Calibration) -> tuple[MeasuredRatio, ...]:
        """The team's own ratios for this setting."""
        if not self.engine:
            return ()
        devices = self.settings.tensor_parallel
        return known.for_(setting_of(catalog, self.requirements, self.plan, self.hardware, self.engine, devices))

    def sizing(self, catalog: Catalog, known: Calibration) -> Sizing:
        """The answer. Raises InputError, UnknownName."""
        r, plan, hardware, settings, _ = self
        return size(r, plan, hardware, catalog, settings, self.measured(catalog, known))

    def tornado(self, catalog: Catalog, known: Calibration) -> Tornado:
        """Which input moves the answer most. Raises InputError where no speed is known."""
        r, plan, hardware, settings, _ = self
        return tornado(r, plan, hardware, catalog, settings, self.measured(catalog, known))


def question(
    catalog: Catalog, *, model: str, gpu: str, context_tokens: int, users: int, output_tokens: int,
    quantization_name: str = "bf16", kv_dtype: str = "fp16", target_tok_s: float = DEFAULT_TARGET_TOK_S,
    tenants_gb: float = 0.0, engine: str = "", settings: SizingSettings | None = None,
) -> Question:  # fmt: skip
    """A question without a case: prompts fill the context that the answer leaves.

    Raises UnknownName with the nearest name for model, GPU, format or engine, InputError for a number that cannot be.
    """
    found = catalog.model(model)
    if kv_dtype not in KV_BYTES:
        raise UnknownName.from_known("KV cache format", kv_dtype, KV_BYTES)
    form = quantization(quantization_name).id
    if output_tokens >= context_tokens:
        raise InputError(f"an answer of {output_tokens:,} tokens leaves no room for a prompt in {context_tokens:,}.",
                         where="output", fix="Shorten the answer or lengthen the context.")  # fmt: skip
    if engine:
        catalog.engine(engine)
    try:
        plan = ModelPlan.model_validate(
            {"id": "asked", "label": found.id, "model": found.id, "quantization": form, "kv_cache_dtype": kv_dtype}
        )
        hardware = Hardware(gpu=catalog.gpu(gpu).id, other_tenants_gb=tenants_gb)
        r = Requirements(
            peak_users_min=users, peak_users_max=users, user_tok_s_promise=target_tok_s,
            user_tok_s_target=target_tok_s, ttft_s=DEFAULT_TTFT_S, input_tokens=context_tokens - output_tokens,
            output_tokens=output_tokens, context_tokens=context_tokens, model_plans=(plan,), hardware=(hardware,),
        )  # fmt: skip
    except ValidationError as e:
        raise InputError(first_fault(e), where="size") from None
    return Question(r, plan, hardware, settings or SizingSettings(), engine)


class Limit(NamedTuple):
    """What a number may be; outside it is a slip of the pen, or a unit that was mistaken."""

    low: float
    high: float
    fix: str


LIMITS = {
    "context": Limit(16, 2_000_000, "Write prompt plus answer in tokens."),
    "output": Limit(1, 1_000_000, "Write the tokens of one answer."),
    "users": Limit(1, 100_000, "Write how many ask at the same moment."),
    "tp": Limit(1, 64, "Write the devices that share every layer."),
    "pp": Limit(1, 64, "Write the stages that share the layers."),
    "target": Limit(0.1, 10_000, "Write tokens per second for one user."),
    "tenants": Limit(0, 10_000, "Write decimal GB."),
}
STATED = {
    "bandwidth": ("bandwidth_gb_s", "GB/s"), "tflops": ("matrix_tflops", "TFLOPS"),
    "device_total": ("device_total_gib", "GiB"), "power": ("tdp_w", "W"),
}  # fmt: skip
NEEDED = ("model", "gpu", "context", "users")


def question_of(catalog: Catalog, typed: Mapping[str, str]) -> Question:
    """A question from words as they were typed; what is missing takes the default.

    Raises InputError with the field for what is missing, no number, cannot be, or stands in another unit.
    """
    for name in NEEDED:
        if name not in typed:
            raise InputError(f"--{name} is missing.", where="size",
                             fix="Name a case, or a model: --model, --gpu, --context and --users.")  # fmt: skip

    def within(name: str, value: float) -> float:
        limit = LIMITS[name]
        if not limit.low <= value <= limit.high:
            raise InputError(f"{value:,.8g} is outside {limit.low:,} to {limit.high:,}.", where=name, fix=limit.fix)
        return value

    def whole(name: str, read: Callable[[str, str], int], otherwise: int) -> int:
        return int(within(name, read(typed[name], name))) if name in typed else otherwise

    def size(name: str, unit: str, otherwise: float) -> float:
        return within(name, amount(typed[name], unit, name)) if name in typed else otherwise

    stated = {}
    for name, (field, unit) in STATED.items():
        if name in typed:
            stated[field] = amount(typed[name], unit, fact(field).title)
            must_be_possible(fact(field), stated[field])
    context = whole("context", tokens, 0)
    settings = SizingSettings(
        tensor_parallel=whole("tp", count, 1), pipeline_parallel=whole("pp", count, 1),
        stated=Stated.model_validate(stated),
    )  # fmt: skip
    return question(
        catalog, model=typed["model"], gpu=typed["gpu"], context_tokens=context, users=whole("users", count, 0),
        quantization_name=typed.get("quantization", "bf16"), kv_dtype=typed.get("kv_dtype", "fp16"),
        output_tokens=whole("output", tokens, min(DEFAULT_OUTPUT_TOKENS, max(1, context // 2))),
        target_tok_s=size("target", "tok/s", DEFAULT_TARGET_TOK_S), tenants_gb=size("tenants", "GB", 0.0),
        engine=typed.get("engine", ""), settings=settings,
    )  # fmt: skip


class Answer(NamedTuple):
    """A sizing with what moves it most, or the sentence that says why there is none."""

    plan: ModelPlan
    sizing: Sizing | None
    swings: Tornado | None = None
    problem: str = ""


def asked_answer(ws: Workspace, typed: Mapping[str, str]) -> Answer:
    """The answer to a question that was typed. Raises InputError, UnknownName."""
    asked, known = question_of(ws.catalog, typed), calibration(ws)
    sizing = asked.sizing(ws.catalog, known)
    return Answer(asked.plan, sizing, asked.tornado(ws.catalog, known) if sizing.inputs else None)


def case_answers(ws: Workspace, r: Requirements) -> tuple[Answer, ...]:
    """Every model plan of a case on its first machine, as the page shows them."""
    known, engine = calibration(ws), case_score(ws, r).favourite or ""
    answers = []
    for plan, sizing, problem in sizings(ws, r):
        swings = None
        if sizing and sizing.inputs:
            swings = Question(r, plan, sizing.hardware, sizing.settings, engine).tornado(ws.catalog, known)
        answers.append(Answer(plan, sizing, swings, problem))
    return tuple(answers)


def with_context(r: Requirements, context_tokens: int) -> Requirements:
    """The requirements at another context; prompts keep their share of it, the answer its length."""
    prompt = round(r.input_tokens * context_tokens / r.context_tokens)
    room = context_tokens - r.output_tokens
    return r.model_copy(update={"context_tokens": context_tokens, "input_tokens": max(1, min(prompt, room))})
