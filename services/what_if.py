"""Sizings that nobody stored: another context, other users, another machine, asked on the page or in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from planner.amounts import amount, count, tokens
from planner.calibration import Calibration
from planner.capacity import Sizing, SizingSettings, size
from planner.catalog import Catalog
from planner.errors import InputError, UnknownName
from planner.poc import first_fault
from planner.quantization import KV_BYTES, quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.stated import Stated
from planner.throughput import MeasuredRatio
from planner.tornado import Tornado, tornado
from services.calibrations import setting_of

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
    catalog: Catalog, *, model: str, gpu: str, context_tokens: int, users: int, quantization_name: str = "bf16",
    kv_dtype: str = "fp16", output_tokens: int | None = None, target_tok_s: float = DEFAULT_TARGET_TOK_S,
    tenants_gb: float = 0.0, engine: str = "", settings: SizingSettings | None = None,
) -> Question:  # fmt: skip
    """A question without a case: prompts fill the context that the answer leaves.

    Raises UnknownName with the nearest name for model, GPU, format or engine, InputError for a number that cannot be.
    """
    found = catalog.model(model)
    if kv_dtype not in KV_BYTES:
        raise UnknownName.from_known("KV cache format", kv_dtype, KV_BYTES)
    form = quantization(quantization_name).id
    answer = min(DEFAULT_OUTPUT_TOKENS, max(1, context_tokens // 2)) if output_tokens is None else output_tokens
    if answer >= context_tokens > 0:
        raise InputError(f"an answer of {answer:,} tokens leaves no room for a prompt in {context_tokens:,}.",
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
            user_tok_s_target=target_tok_s, ttft_s=DEFAULT_TTFT_S, input_tokens=context_tokens - answer,
            output_tokens=answer, context_tokens=context_tokens, model_plans=(plan,), hardware=(hardware,),
        )  # fmt: skip
    except ValidationError as e:
        raise InputError(first_fault(e), where="size") from None
    return Question(r, plan, hardware, settings or SizingSettings(), engine)


STATED = {
    "bandwidth": ("bandwidth_gb_s", "GB/s"), "tflops": ("matrix_tflops", "TFLOPS"),
    "device_total": ("device_total_gib", "GiB"), "power": ("tdp_w", "W"),
}  # fmt: skip


def question_of(catalog: Catalog, typed: Mapping[str, Any]) -> Question:
    """A question from words as they were typed; None and what is missing take the defaults.

    Raises InputError with the field for what is no number, cannot be, or stands in another unit.
    """
    words = {name: str(value) for name, value in typed.items() if value is not None}
    stated = {
        field: amount(words[name], unit, name.replace("_", " "))
        for name, (field, unit) in STATED.items() if name in words
    }  # fmt: skip
    try:
        settings = SizingSettings(
            tensor_parallel=count(words.get("tp", "1"), "tp"), stated=Stated.model_validate(stated)
        )
    except ValidationError as e:
        raise InputError(first_fault(e), where="size") from None
    return question(
        catalog, model=words["model"], gpu=words["gpu"], context_tokens=tokens(words["context"], "context"),
        users=count(words["users"], "users"), quantization_name=words.get("quantization", "bf16"),
        kv_dtype=words.get("kv_dtype", "fp16"),
        output_tokens=tokens(words["output"], "output") if "output" in words else None,
        target_tok_s=amount(words["target"], "tok/s", "target") if "target" in words else DEFAULT_TARGET_TOK_S,
        tenants_gb=amount(words["tenants"], "GB", "tenants") if "tenants" in words else 0.0,
        engine=words.get("engine", ""), settings=settings,
    )  # fmt: skip


def with_context(r: Requirements, context_tokens: int) -> Requirements:
    """The requirements at another context; prompts keep their share of it, the answer its length."""
    prompt = round(r.input_tokens * context_tokens / r.context_tokens)
    room = context_tokens - r.output_tokens
    return r.model_copy(update={"context_tokens": context_tokens, "input_tokens": max(1, min(prompt, room))})
