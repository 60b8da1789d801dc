"""Public benchmark rows beside the planning value for the same model, accelerator, lengths and concurrency."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from perf.predicted import Predicted, Unpredictable
from perf.truth_names import engine_of, gpu_of, kv_dtype_of, model_of, number_of, quantization_of
from planner.catalog import Catalog
from planner.conditions import Kind
from planner.errors import InputError
from planner.fit import FitSettings, Footprint, footprint
from planner.gpu_schema import Gpu
from planner.model_schema import Model
from planner.prefill import first_token
from planner.quantization import QUANTIZATIONS, Quantization
from planner.speed_inputs import speed_inputs
from planner.throughput import ThroughputInputs, running_batch, step_s

Row = Mapping[str, str]
FIGURES = ("tpot_ms_median", "output_tok_s_total", "ttft_ms_median")
COLUMNS = (
    "source_url", "engine", "version", "model", "gpu", "n_gpu", "weights_dtype", "kv_dtype", "input_len", "output_len",
    "concurrency", *FIGURES, "notes",
)  # fmt: skip
# Mean lengths of the ShareGPT prompts as gpustack's performance lab counts them, where a row does not.
SHAREGPT_TOKENS = (217, 201)
# Most requests that vLLM runs at once by default on devices of 70 GiB and more.
MAX_NUM_SEQS = 1024
MOST_DEVICES = 8
GGUF_ENGINES = ("llama.cpp", "ollama")
FEW_IN_FLIGHT = 8


class Stated(NamedTuple):
    """A row's settings, read."""

    model: Model
    gpu: Gpu
    quant: Quantization
    kv_dtype: str
    devices: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    notes: str


def predict(rows: Iterable[Row], catalog: Catalog) -> list[Predicted]:
    """One entry per figure of a row: tpot_ms, and ttft_ms where at most eight requests are in flight.

    A figure that cannot be predicted has `predicted` None and the reason, and so has a row that states neither.
    """
    return [p for row in rows for p in _predicted(row, catalog)]


def _predicted(row: Row, catalog: Catalog) -> list[Predicted]:
    found = [p for p in (_tpot(row, catalog), _ttft(row, catalog)) if p]
    if found:
        return found
    said = ", ".join(f"{name} {row[name]!r}" for name in (*FIGURES, "concurrency") if row[name]) or "nothing"
    return [_entry("tpot_ms", row, catalog, None, None, f"no time per token follows from what it states: {said}", "")]


def measured_tpot(row: Row) -> tuple[float, str] | None:
    """Time per output token in ms and where it is from; None when the row measured none.

    First the stated TPOT; then the decode rate of one request that some pages state; else concurrency / output tokens
    per second of all, which holds a share of each first token too.
    """
    if stated := number_of(row["tpot_ms_median"]):
        return stated, "stated"
    if rate := re.search(r"mean per-request decode ([\d.]+) t/s", row["notes"]):
        return 1000 / float(rate[1]), "decode rate of one request"
    total, concurrency = number_of(row["output_tok_s_total"]), number_of(row["concurrency"])
    return (1000 * concurrency / total, "concurrency / total") if total and concurrency else None


def _tpot(row: Row, catalog: Catalog) -> Predicted | None:
    measured = measured_tpot(row)
    if measured is None:
        return None
    value, reason = None, ""
    try:
        stated = _stated(row, catalog)
        inputs = _loaded(_inputs(stated), stated, measured[1])
        value = 1000 * step_s(inputs, Kind.PLANNING, running_batch(inputs, min(stated.concurrency, MAX_NUM_SEQS)))
    except (Unpredictable, InputError, ValidationError) as e:
        reason = _reason(e)
    return _entry("tpot_ms", row, catalog, measured[0], value, reason, measured[1])


def _ttft(row: Row, catalog: Catalog) -> Predicted | None:
    measured, concurrency = number_of(row["ttft_ms_median"]), number_of(row["concurrency"])
    if not measured or not concurrency or concurrency > FEW_IN_FLIGHT:
        return None
    value, reason = None, ""
    try:
        found = first_token(_inputs(_stated(row, catalog)), int(concurrency))
        if found is None:
            raise Unpredictable("the matrix rate is unknown")
        if measured < found.prefill_ms_at_peak:
            raise Unpredictable("it came sooner than the multiplications of the prompt allow: part of it was cached")
        value = found.planning_ms
    except (Unpredictable, InputError, ValidationError) as e:
        reason = _reason(e)
    return _entry("ttft_ms", row, catalog, measured, value, reason, "stated")


def _reason(e: Unpredictable | InputError | ValidationError) -> str:
    if not isinstance(e, ValidationError):
        return str(e)
    fault = e.errors()[0]
    return f"{'.'.join(map(str, fault['loc']))} is no setting of a server: {fault['input']}"


def _entry(
    quantity: str, row: Row, catalog: Catalog, measured: float | None, value: float | None, reason: str, how: str
) -> Predicted:
    model = model_of(row["model"], catalog)
    load = f"{row['input_len']}/{row['output_len']} tokens, {row['concurrency']} in flight, {row['n_gpu']} devices"
    return Predicted(
        quantity=quantity, klass="unknown" if model is None else "moe" if model.moe else "dense",
        engine=engine_of(row["engine"]), model=row["model"], gpu=row["gpu"], measured=measured,
        predicted=value, reason=reason, source_url=row["source_url"],
        detail=f"{row['weights_dtype'] or 'format not stated'}, {load}; measured: {how}",
    )  # fmt: skip


def _stated(row: Row, catalog: Catalog) -> Stated:
    model, gpu = model_of(row["model"], catalog), gpu_of(row["gpu"], catalog)
    if model is None:
        raise Unpredictable(f"the catalogue has no model {row['model']!r}")
    if gpu is None:
        raise Unpredictable(f"the catalogue has no accelerator {row['gpu']!r}")
    quant = quantization_of(row["weights_dtype"], row["model"])
    if quant is None:
        raise Unpredictable(f"weight format {row['weights_dtype']!r} is not known")
    concurrency, lengths = number_of(row["concurrency"]), _lengths(row)
    if not concurrency:
        raise Unpredictable(f"concurrency is not stated as a number: {row['concurrency']!r}")
    if lengths is None:
        raise Unpredictable("prompt and answer lengths are not stated")
    quant = published(model, quant, engine_of(row["engine"]))
    return Stated(
        model=model, gpu=gpu, quant=quant, kv_dtype=kv_dtype_of(row["kv_dtype"]), devices=_devices(row),
        input_tokens=lengths[0], output_tokens=lengths[1], concurrency=int(concurrency),
        notes=row["notes"],
    )  # fmt: skip


def published(model: Model, quant: Quantization, engine: str = "") -> Quantization:
    """The format as it is published for this kind of model.

    NVFP4 files of mixtures, of models with linear attention and of Gemma 4 leave attention in 16 bit (vllm-project/
    llm-compressor#2740, sgl-project/sglang#18189 and #22618, vllm-project/vllm#40291); INT4 of latent-attention
    mixtures packs the experts alone (Kimi K2). GGUF files of gpt-oss keep in Q8_0 what is not MXFP4 (ggml-org).
    """
    if quant.id == "mxfp4" and engine.startswith(GGUF_ENGINES):
        return quant.model_copy(update={"wide_bits": QUANTIZATIONS["q8_0"].bits})
    narrow = quant.narrow
    if quant.id == "nvfp4" and (model.moe or model.linear_attention or model.global_attention):
        narrow = quant.narrow - {"attention"}
    if quant.id == "int4" and model.moe and model.mla:
        narrow = frozenset({"experts"})
    return quant if narrow == quant.narrow else quant.model_copy(update={"narrow": narrow})


def _devices(row: Row) -> int:
    devices = number_of(row["n_gpu"])
    if not devices:
        raise Unpredictable("the number of devices is not stated")
    if devices > MOST_DEVICES:
        raise Unpredictable(f"{devices:g} devices span several machines, whose network is not modelled")
    split = re.search(r"moe_tp=(\d+) moe_ep=(\d+)", row["notes"])
    if split and int(split[1]) * int(split[2]) > devices:
        raise Unpredictable("the experts lie on more devices than the row counts (data-parallel attention)")
    return int(devices)


def _lengths(row: Row) -> tuple[int, int] | None:
    if row["input_len"].lower() == "sharegpt":
        counted = re.search(r"mean (\d+)/(\d+)", row["notes"])
        return (int(counted[1]), int(counted[2])) if counted else SHAREGPT_TOKENS
    given, answer = number_of(row["input_len"]), number_of(row["output_len"])
    return (int(given), int(answer)) if given and answer else None


def _inputs(stated: Stated) -> ThroughputInputs:
    """Inputs at the mean context of a run: the prompt and half of the answer."""
    context = stated.input_tokens + stated.output_tokens // 2
    memory = _footprint(stated, context)
    if not memory.requests_that_fit:
        raise Unpredictable("the weights and one request do not fit the devices that the row counts")
    return speed_inputs(
        stated.model, stated.quant, stated.gpu, memory.weights, input_tokens=stated.input_tokens,
        output_tokens=stated.output_tokens, context_tokens=context, kv_dtype=stated.kv_dtype,
        tensor_parallel=stated.devices, kv_capacity=memory.requests_that_fit,
    )  # fmt: skip


def _footprint(stated: Stated, context: int) -> Footprint:
    settings = FitSettings(context_tokens=context, kv_dtype=stated.kv_dtype, devices=stated.devices)
    return footprint(stated.model, stated.quant, stated.gpu, settings)


def _loaded(inputs: ThroughputInputs, stated: Stated, how: str) -> ThroughputInputs:
    """The inputs as the row's benchmark loads the server.

    llama-batched-bench times decode alone. llama-benchy sends its requests all at once and states the decode rate of
    one: on average half of the other prompts are computed while a request decodes.
    """
    if "batched-bench" in stated.notes or "pure decode" in stated.notes:
        return inputs.model_copy(update={"averages_prefill": False})
    if how == "decode rate of one request" and inputs.prefill_s is not None:
        return inputs.model_copy(update={"prefill_s": inputs.prefill_s / 2})
    return inputs
