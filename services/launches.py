"""How a case's engines are started: settings from the sizing, for a measurement or for daily use, in every form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.capacity import Sizing
from planner.engine_facts import server
from planner.engine_schema import Engine
from planner.errors import NotAllowed
from planner.gates import RunForm, accelerator
from planner.launch import LaunchPlan, launch
from planner.launch_forms import FORMS, StartForm, start_form
from planner.launch_settings import LaunchSettings, PurposeId
from planner.quantization import WIDE_BITS, quantization
from planner.requirements import Requirements
from planner.scoring import Score
from planner.server_schema import Server
from planner.units import GIB
from services.cases import favourite_sizing
from services.scores import case_score
from services.workspace import Workspace

# The server that stands for an engine in a measurement. Ollama runs llama.cpp's llama-server and hides its metrics and
# the switch that fixes the answer length, so the baseline is measured on llama-server itself.
SERVER_OF = {"ollama": "llama-server"}
# Servers whose slots take their KV memory at the start, whether anybody comes or not (fair_run, "when KV runs out").
FIXED_SLOTS = frozenset({"llama-server", "ollama"})
# What an engine is told to convert at load; other formats need a checkpoint that is stored in them.
CONVERTS: dict[str, dict[str, str]] = {
    "vllm": {"fp8": "fp8_per_tensor"}, "sglang": {"fp8": "fp8"}, "tgi": {"fp8": "fp8"},
}  # fmt: skip


class Weights(NamedTuple):
    """What only a person can state about the weights: their revision, and the GGUF file for llama.cpp."""

    revision: str = ""
    gguf_file: str = ""


NOT_STATED = Weights()


def run_form(score: Score, engine: str) -> RunForm:
    """The form of the model that an engine reads. Raises NotAllowed when there is none."""
    form = score.of(engine).form
    if form is None:
        raise NotAllowed(f"{engine} reads no form of this model plan.", where="launch", fix="Change the model plan.")
    return form


def startable(ws: Workspace, score: Score) -> dict[str, Server]:
    """Every server that can be started for a case, by id: its engine reads a form of the model."""
    engines = [c.engine for c in score.candidates if c.form]
    names = dict.fromkeys(n for e in engines for n in (e, SERVER_OF.get(e, e)))
    return {n: server(ws.catalog.engines, n) for n in names}


def settings_of(
    score: Score, r: Requirements, sizing: Sizing, found: Server, purpose: PurposeId, weights: Weights = NOT_STATED
) -> LaunchSettings:
    """The settings of one server, each with the number that it came from. Raises NotAllowed as `run_form` does."""
    form, plan, advice, budget = (
        run_form(score, engine_of(found.id)),
        r.favourite_plan,
        sizing.launch,
        sizing.memory.budget,
    )
    gguf = weights.gguf_file or f"{plan.model.split('/')[-1]}-{form.quantization.upper()}.gguf"
    most = r.peak_users_max if found.id in FIXED_SLOTS else None
    batch, why_batch = _batch(sizing, purpose, most)
    kind, from_hub = quantization(plan.quantization), form.weight_format == "safetensors"
    converted = CONVERTS.get(found.id, {}).get(kind.id) if from_hub else None
    return LaunchSettings(
        model=gguf if form.weight_format == "gguf" else plan.model,
        purpose=purpose,
        served_name=plan.model,
        revision=weights.revision,
        max_model_len=advice.max_model_len,
        max_num_seqs=batch,
        queue_limit=r.peak_users_max,
        gpu_memory_utilization=round(advice.gpu_memory_utilization, 3),
        kv_cache_dtype=plan.kv_cache_dtype,
        quantization=converted,
        stored_as=kind.id if from_hub and kind.bits < WIDE_BITS and not converted else "",
        tensor_parallel=advice.tensor_parallel,
        weights_gib=budget.weights / GIB,
        kv_pool_gib=budget.kv / GIB or None,
        reserve_gib=budget.reserve / GIB,
        device_total_gib=budget.device_total / GIB,
        because={
            "max_model_len": f"context of {r.context_tokens:,} tokens, input plus output (requirements)",
            "max_num_seqs": why_batch,
            "queue_limit": f"the peak of {r.peak_users_max} users (requirements); more are refused at once",
            "gpu_memory_utilization": "share of the device that the sizing leaves to the engine",
            "kv_cache_dtype": f"model plan {plan.id}",
            "quantization": f"model plan {plan.id}: {plan.quantization}",
            "tensor_parallel": f"{advice.tensor_parallel} devices share the model (hardware of the requirements)",
        },
    )


def engine_of(server_id: str) -> str:
    """The engine whose entry carries a server."""
    return next((e for e, s in SERVER_OF.items() if s == server_id), server_id)


def _batch(sizing: Sizing, purpose: PurposeId, most: int | None) -> tuple[int, str]:
    """Requests in one step and why: all that a sweep needs, or in daily use what keeps the promise, up to `most`."""
    advice, fit = sizing.launch, sizing.requests_that_fit
    if purpose == "benchmark":
        return advice.max_num_seqs, (
            f"largest point of stage A's sweep; {fit} would fit (sizing). Stage B sets the limit that keeps the promise"
        )
    if advice.max_num_seqs_expected is None:
        return 1, "no number keeps the promise by the planning value (sizing): measure first"
    if most is not None and most < advice.max_num_seqs_expected:
        return most, (
            f"the peak of {most} users (requirements), since each slot takes its memory at the start; "
            f"{advice.max_num_seqs_expected} would keep {sizing.promise_tok_s:g} tok/s each by the planning value"
        )
    return advice.max_num_seqs_expected, (
        f"the most that keep {sizing.promise_tok_s:g} tok/s per user by the planning value; {fit} would fit (sizing). "
        "Take the measured limit once there is one"
    )


def launch_of(
    engines: Mapping[str, Engine], score: Score, r: Requirements, sizing: Sizing, server_id: str, weights: Weights
) -> LaunchPlan:
    """The start command for a measurement, every flag with the number that it came from."""
    found = server(engines, server_id)
    return launch(found, settings_of(score, r, sizing, found, "benchmark", weights))


def start(
    ws: Workspace, r: Requirements, server_id: str, form: str, purpose: PurposeId, weights: Weights = NOT_STATED
) -> StartForm:
    """One server of a case in one form, ready to be saved.

    Raises UnknownName for a server or form, NotAllowed when the engine reads no form of the model or it does not fit.
    """
    return start_forms(ws, r, server_id, purpose, weights, (form,))[0]


def start_forms(
    ws: Workspace, r: Requirements, server_id: str, purpose: PurposeId, weights: Weights = NOT_STATED,
    forms: Sequence[str] = tuple(FORMS),
) -> tuple[StartForm, ...]:  # fmt: skip
    """One server of a case in several forms; raises as `start` does."""
    sizing, score, found = favourite_sizing(ws, r), case_score(ws, r), server(ws.catalog.engines, server_id)
    if sizing.inputs is None:
        raise NotAllowed(sizing.sentence, where="launch", fix="Change the model plan or the hardware first.")
    settings = settings_of(score, r, sizing, found, purpose, weights)
    capability = ws.catalog.gpu(r.hardware[0].gpu).compute_capability
    settings = settings.model_copy(update={"accelerator": accelerator(capability), "os": r.hardware[0].os})
    return tuple(start_form(found, settings, form) for form in forms)
