"""A sizing question from words as they were typed in a terminal: units, limits, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from planner.amounts import amount, count, number, share, tokens
from planner.capacity import SizingSettings
from planner.catalog import Catalog
from planner.errors import InputError, UnknownName
from planner.faults import first_fault
from planner.quantization import KV_BYTES, quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.speculation import Speculation
from planner.stated import Stated, fact, must_be_possible
from services.what_if import Question

DEFAULT_OUTPUT_TOKENS = 500
DEFAULT_TARGET_TOK_S = 25.0
DEFAULT_TTFT_S = 2.0


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


class Typed(NamedTuple):
    """How a word is read, and what it may be; outside it is a slip of the pen, or a unit that was mistaken."""

    read: Callable[[str, str], float]
    low: float
    high: float
    fix: str


def _in(unit: str) -> Callable[[str, str], float]:
    return lambda text, where: amount(text, unit, where)


TYPED = {
    "context": Typed(tokens, 16, 2_000_000, "Write prompt plus answer in tokens."),
    "output": Typed(tokens, 1, 1_000_000, "Write the tokens of one answer."),
    "users": Typed(count, 1, 100_000, "Write how many ask at the same moment."),
    "tp": Typed(count, 1, 64, "Write the devices that share every layer."),
    "pp": Typed(count, 1, 64, "Write the stages that share the layers."),
    "slots": Typed(count, 1, 65_536, "Write the engine's limit of requests at once."),
    "chunk": Typed(tokens, 16, 1_000_000, "Write the prompt tokens that one step takes at most."),
    "utilisation": Typed(share, 0.01, 1, "Write a share, as in 0.7 or 70%."),
    "rate": Typed(number, 0.0001, 1_000_000, "Write requests per second at the peak."),
    "target": Typed(_in("tok/s"), 0.1, 10_000, "Write tokens per second for one user."),
    "tenants": Typed(_in("GB"), 0, 10_000, "Write decimal GB."),
    "tenant_bandwidth": Typed(share, 0, 0.95, "Write the share that others read, as in 0.2 or 20%."),
    "fraction": Typed(share, 0.01, 1, "Write a share of the device's total, as in 0.9 or 90%."),
    "draft": Typed(count, 1, 16, "Write the tokens that are guessed ahead."),
    "acceptance": Typed(share, 0, 1, "Write the share of guesses that are right, as in 0.8 or 80%."),
    "draft_cost": Typed(share, 0, 1, "Write one guess as a share of a step, as in 0.05 or 5%."),
    "draft_gb": Typed(_in("GB"), 0, 10_000, "Write decimal GB."),
}
# Facts that stand in place of the catalogue's or the requirements'; the unit "" is a plain number.
STATED = {
    "bandwidth": ("bandwidth_gb_s", "GB/s"), "tflops": ("matrix_tflops", "TFLOPS"),
    "device_total": ("device_total_gib", "GiB"), "power": ("tdp_w", "W"), "price": ("unit_price", ""),
    "years": ("years", ""), "electricity": ("electricity_per_kwh", ""),
}  # fmt: skip
NEEDED = ("model", "gpu", "context", "users")
OF_DRAFT = ("acceptance", "draft_cost", "draft_gb")


def question_of(catalog: Catalog, typed: Mapping[str, str]) -> Question:
    """A question from words as they were typed; what is missing takes the default.

    Raises InputError with the field for what is missing, no number, cannot be, or stands in another unit.
    """
    for name in NEEDED:
        if name not in typed:
            raise InputError(f"--{name} is missing.", where="size",
                             fix="Name a case, or a model: --model, --gpu, --context and --users.")  # fmt: skip
    read = {name: _read(name, text) for name, text in typed.items() if name in TYPED}
    context, users = int(read["context"]), int(read["users"])
    chosen = {
        "tensor_parallel": read.get("tp"), "pipeline_parallel": read.get("pp"), "max_num_seqs": read.get("slots"),
        "max_num_batched_tokens": read.get("chunk"), "utilisation": read.get("utilisation"),
        "peak_rate_per_s": read.get("rate"), "tenant_bandwidth_share": read.get("tenant_bandwidth"),
        "gpu_memory_utilization": read.get("fraction"),
    }  # fmt: skip
    settings = SizingSettings.model_validate(
        {k: v for k, v in chosen.items() if v is not None}
        | {"speculation": _draft(read), "stated": _stated(typed)}
    )  # fmt: skip
    return question(
        catalog, model=typed["model"], gpu=typed["gpu"], context_tokens=context, users=users,
        quantization_name=typed.get("quantization", "bf16"), kv_dtype=typed.get("kv_dtype", "fp16"),
        output_tokens=int(read.get("output", min(DEFAULT_OUTPUT_TOKENS, max(1, context // 2)))),
        target_tok_s=read.get("target", DEFAULT_TARGET_TOK_S), tenants_gb=read.get("tenants", 0.0),
        engine=typed.get("engine", ""), settings=settings,
    )  # fmt: skip


def _read(name: str, text: str) -> float:
    how, where = TYPED[name], name.replace("_", "-")
    value = how.read(text, where)
    if not how.low <= value <= how.high:
        raise InputError(f"{value:,.8g} is outside {how.low:,} to {how.high:,}.", where=where, fix=how.fix)
    return value


def _draft(read: Mapping[str, float]) -> Speculation | None:
    said = [name for name in OF_DRAFT if name in read]
    if "draft" not in read:
        if said:
            raise InputError(f"--{said[0].replace('_', '-')} is of a draft, and --draft is missing.", where="size",
                             fix="Write the tokens that are guessed ahead: --draft 4.")  # fmt: skip
        return None
    if "acceptance" not in read:
        raise InputError("--acceptance is missing.", where="draft",
                         fix="Write the share of guesses that are right, as measured: --acceptance 0.7.")  # fmt: skip
    return Speculation.model_validate({"draft_tokens": int(read["draft"]), **{name: read[name] for name in said}})


def _stated(typed: Mapping[str, str]) -> Stated:
    said = {}
    for name, (field, unit) in STATED.items():
        if name in typed:
            where = fact(field).title
            said[field] = amount(typed[name], unit, where) if unit else number(typed[name], where)
            must_be_possible(fact(field), said[field])
    return Stated.model_validate(said)
