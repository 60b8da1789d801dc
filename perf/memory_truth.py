"""Public start-up logs beside what the planner says of the same model, device and settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from perf.predicted import Predicted, Unpredictable
from perf.truth_names import engine_of, gpu_of, kv_dtype_of, model_of, number_of, quantization_of
from planner.catalog import Catalog
from planner.errors import InputError
from planner.gpu_schema import Gpu
from planner.kv_blocks import EngineKv, engine_kv
from planner.memory import VLLM_READ, Reserve, kv_bytes_per_token, reserve, stage_weights, weight_bytes
from planner.model_schema import Model
from planner.quantization import QUANTIZATIONS, Quantization
from planner.units import GIB

Row = Mapping[str, str]
REPORTED = {
    "weights_gib": "weights_gib_reported", "kv_tokens": "kv_tokens_reported",
    "max_concurrency": "max_concurrency_reported", "kv_cache_gib": "kv_cache_gib_reported",
}  # fmt: skip
FIGURES = tuple(REPORTED.values())
COLUMNS = (
    "source_url", "engine", "engine_version", "model", "gpu", "gpu_mem_gib", "dtype_weights", "dtype_kv", "tp",
    "max_model_len", "gpu_memory_utilization", *FIGURES, "notes",
)  # fmt: skip
# From this version on the log's token figure is requests of full length times that length.
TOKENS_BY_REQUESTS_FROM = (0, 24)
# From this version on states of linear layers are cached with prefixes, a second block per request.
STATES_CACHED_FROM = (0, 24)
WHOLE_PROMPTS_BEFORE = (0, 8)
MOST_DRAFTED = 8


class Stated(NamedTuple):
    """A row's settings: what it says, and defaults of the engine where it does not."""

    model: Model
    quant: Quantization
    kv_dtype: str
    vllm: tuple[int, int]
    tensor_parallel: int
    pipeline_parallel: int
    batched_tokens: int
    block_tokens: int | None
    max_model_len: int | None
    kv_gib: float | None


def predict(rows: Iterable[Row], catalog: Catalog) -> list[Predicted]:
    """One entry per figure that a row reports: weights_gib, kv_tokens, max_concurrency, kv_cache_gib, per device.

    Tokens and requests come from the KV memory that the row reports, kv_cache_gib from its settings. A figure that
    cannot be predicted has `predicted` None and the reason, and so has a row that reports none.
    """
    return [p for row in rows for p in _row(row, catalog)]


def _row(row: Row, catalog: Catalog) -> list[Predicted]:
    reported = [name for name, column in REPORTED.items() if row[column]]
    return [_predicted(row, name, catalog) for name in reported or ["weights_gib"]]


def _predicted(row: Row, quantity: str, catalog: Catalog) -> Predicted:
    model, measured = model_of(row["model"], catalog), number_of(row[REPORTED[quantity]])
    value, reason, detail = None, "", ""
    try:
        if not measured:
            raise Unpredictable(f"the row reports no number: {row[REPORTED[quantity]]!r}")
        stated = _stated(row, model, quantity)
        value, detail = PREDICTIONS[quantity](row, stated, catalog)
    except (Unpredictable, InputError) as e:
        reason = str(e)
    return Predicted(
        quantity=quantity, klass=model.architecture if model else "unknown", engine=engine_of(row["engine"]),
        model=row["model"], gpu=row["gpu"], measured=measured, predicted=value, reason=reason,
        source_url=row["source_url"], detail=detail,
    )  # fmt: skip


def _stated(row: Row, model: Model | None, quantity: str) -> Stated:
    if model is None:
        raise Unpredictable(f"the catalogue has no model {row['model']!r}")
    quant = quantization_of(row["dtype_weights"], row["model"])
    if quant is None:
        raise Unpredictable(f"weight format {row['dtype_weights']!r} is not known")
    if re.match(r"meta-llama/.*-fp8$", row["model"].lower()):
        quant = QUANTIZATIONS["fp8_mlp"]  # Meta's own FP8 files leave attention in 16 bit
    notes = row["notes"]
    if "lora" in row["model"].lower() and quantity == "weights_gib":
        raise Unpredictable("an adapter is loaded beside the model, and its rank is not stated")
    if "DCP" in notes:
        raise Unpredictable("the context is shared out over devices (decode context parallel), which is not modelled")
    stages = _number(r"\bpp=(\d+)", notes)
    if stages is None and "pipeline parallel" in notes:
        raise Unpredictable("the number of pipeline stages is not stated")
    return Stated(
        model=model, quant=quant, kv_dtype=_kv_dtype(row, model), vllm=_version(row["engine_version"]),
        tensor_parallel=_number(r"(\d+)", row["tp"]) or 1, pipeline_parallel=stages or 1,
        batched_tokens=_number(r"max_num_batched_tokens (\d+)", notes) or _default_batched_tokens(row),
        block_tokens=_number(r"attention block (\d+)|block (\d+);", notes),
        max_model_len=_length(row),
        kv_gib=_kv_gib(row),
    )  # fmt: skip


def _kv_dtype(row: Row, model: Model) -> str:
    """What the row says; sparse latent attention keeps 8 bit unless told otherwise, everything else 16."""
    if not row["dtype_kv"] and model.mla and model.mla.index_head_dim:
        return "fp8"
    return kv_dtype_of(row["dtype_kv"])


def _kv_gib(row: Row) -> float | None:
    corrected = re.search(r"the true figure is ([\d.]+)", row["notes"])
    return number_of(corrected[1].rstrip(".") if corrected else row["kv_cache_gib_reported"])


def _length(row: Row) -> int | None:
    return int(number_of(row["max_model_len"]) or 0) or None


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(next(g for g in found.groups() if g)) if found else None


def _version(text: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else VLLM_READ


def _default_batched_tokens(row: Row) -> int:
    """vLLM's default by device: 8,192 on large ones, else 2,048 (get_batch_defaults).

    The engine before 0.8 took a whole prompt in one step.
    """
    length = _length(row)
    if _version(row["engine_version"]) < WHOLE_PROMPTS_BEFORE and length:
        return length
    return 8192 if _large_device(row) else 2048


def _large_device(row: Row) -> bool:
    """Whether vLLM takes its larger defaults: from 70 GiB on, but not on A100 and GB10."""
    if re.search(r"A100|GB10|Spark", row["gpu"]):
        return False
    return (number_of(row["gpu_mem_gib"]) or 0) >= 70 or re.search(r"H100|H20|B200|B300|MI3", row["gpu"]) is not None


def _weights(row: Row, s: Stated, catalog: Catalog) -> tuple[float, str]:
    model, tower = s.model, weight_bytes(s.model, s.quant).extra > 0
    if "language_model_only" in row["notes"]:
        model, tower = model.model_copy(update={"vision": None, "extra_weights_gib": 0.0}), False
    counted = weight_bytes(model, s.quant, drafts=_drafted_tokens(s) > 0)
    largest = max(stage_weights(model, counted, s.tensor_parallel, s.pipeline_parallel))
    return largest / GIB, "with vision tower" if tower else "text only"


def _kv(row: Row, s: Stated) -> tuple[EngineKv, str]:
    if s.kv_gib is None:
        raise Unpredictable("the row does not say how much memory the KV cache has")
    if s.max_model_len is None:
        raise Unpredictable("the row does not say the length of a request")
    pool = s.kv_gib * GIB - _last_stage_excess(row, s)
    drafted = _drafted_tokens(s)
    held = engine_kv(
        s.model, pool, s.max_model_len, kv_dtype=s.kv_dtype, tensor_parallel=s.tensor_parallel,
        pipeline_parallel=s.pipeline_parallel, max_num_batched_tokens=s.batched_tokens,
        prefix_caching=s.vllm >= STATES_CACHED_FROM, speculative_tokens=drafted,
    )  # fmt: skip
    logged = int(number_of(row["kv_tokens_reported"]) or 0)
    if s.model.linear_attention and logged and not _tokens_by_requests(row, s) and logged % held.block_tokens:
        raise Unpredictable(
            f"{logged:,} tokens are no multiple of the {held.block_tokens:,} of a block that the stated KV precision "
            "gives, so the log is not of the stated settings"
        )
    drafts = f"; the logged block of {s.block_tokens} tokens shows {drafted} drafted tokens" if drafted else ""
    return held, f"from {s.kv_gib:g} GiB{drafts}"


def _drafted_tokens(s: Stated) -> int:
    """Tokens that the run drafted, told by the block that it logged; 0 where the plain block agrees or none is said."""
    if s.block_tokens is None or not s.model.mtp_layers:
        return 0
    for drafted in range(MOST_DRAFTED + 1):
        held = engine_kv(s.model, GIB, 4096, kv_dtype=s.kv_dtype, tensor_parallel=s.tensor_parallel,
                         speculative_tokens=drafted)  # fmt: skip
        if held.block_tokens == s.block_tokens:
            return drafted
    return 0


def _reserve(row: Row, s: Stated, *, last_stage: bool) -> Reserve:
    sequences = _number(r"max_num_seqs (\d+)", row["notes"]) or (1024 if _large_device(row) else 256)
    return reserve(s.model, sequences, s.batched_tokens, s.tensor_parallel, last_stage=last_stage, vllm=s.vllm)


def _last_stage_excess(row: Row, s: Stated) -> float:
    """What the last pipeline stage lacks against the first, whose memory the log states; the fullest stage decides."""
    if s.pipeline_parallel == 1:
        return 0.0
    held = stage_weights(s.model, weight_bytes(s.model, s.quant), s.tensor_parallel, s.pipeline_parallel)
    first, last = (_reserve(row, s, last_stage=last).total for last in (False, True))
    return max(0.0, held[-1] + last - held[0] - first)


def _tokens(row: Row, s: Stated, catalog: Catalog) -> tuple[float, str]:
    if engine_of(row["engine"]) == "sglang":
        if s.kv_gib is None:
            raise Unpredictable("the row does not say how much memory the KV cache has")
        if s.model.sliding_window or s.model.linear_attention:
            raise Unpredictable("SGLang keeps windows and states in pools of their own, which the row does not state")
        return s.kv_gib * GIB / kv_bytes_per_token(s.model, s.kv_dtype, s.tensor_parallel), f"from {s.kv_gib:g} GiB"
    if s.max_model_len is None and _one_kind(s.model):  # then the length does not change the figure
        s = s._replace(max_model_len=s.model.max_position_embeddings)
    held, detail = _kv(row, s)
    if _one_kind(s.model):
        return held.tokens, detail
    if not _tokens_by_requests(row, s):
        return held.tokens, detail
    if s.model.sliding_window and "max_num_batched_tokens" not in row["notes"]:
        raise Unpredictable("the figure depends on max_num_batched_tokens, which the row does not state")
    return held.logged_tokens, detail


def _one_kind(model: Model) -> bool:
    return not (model.linear_attention or model.sliding_window)


def _tokens_by_requests(row: Row, s: Stated) -> bool:
    """Whether the log's tokens are requests times length (later versions) or blocks times tokens, a multiple of 16."""
    if row["engine_version"]:
        return s.vllm >= TOKENS_BY_REQUESTS_FROM
    return int(number_of(row["kv_tokens_reported"]) or 0) % 16 != 0


def _concurrency(row: Row, s: Stated, catalog: Catalog) -> tuple[float, str]:
    held, detail = _kv(row, s)
    return held.max_concurrency, detail


def _kv_cache(row: Row, s: Stated, catalog: Catalog) -> tuple[float, str]:
    if engine_of(row["engine"]) != "vllm":
        raise Unpredictable("only vLLM's reserve is modelled")
    fraction = number_of(row["gpu_memory_utilization"])
    if not fraction or fraction > 1:
        raise Unpredictable(f"the memory fraction is not stated as one: {row['gpu_memory_utilization']!r}")
    gpu = gpu_of(row["gpu"], catalog)
    total = number_of(row["gpu_mem_gib"]) or _device_total(row, gpu)
    weights, _ = _weights(row, s, catalog)
    left = fraction * total - weights - _reserve(row, s, last_stage=s.pipeline_parallel == 1).total / GIB
    return max(0.0, left), f"{fraction:g} of {total:g} GiB less weights and reserve"


def _device_total(row: Row, gpu: Gpu | None) -> float:
    if gpu is None or gpu.device_total_gib is None:
        raise Unpredictable(f"the driver's total of {row['gpu']!r} is not known")
    return gpu.device_total_gib


PREDICTIONS: dict[str, Callable[[Row, Stated, Catalog], tuple[float, str]]] = {
    "weights_gib": _weights,
    "kv_tokens": _tokens,
    "max_concurrency": _concurrency,
    "kv_cache_gib": _kv_cache,
}
