"""The candidates of a plan: each engine's launch from the sizing, and the contract that it states."""

from __future__ import annotations

from typing import NamedTuple

from planner.capacity import Sizing
from planner.catalog import facts_to_carry
from planner.contract import FIELD
from planner.contract_edit import Edit, edited_contract, edited_settings
from planner.engine_facts import server
from planner.launch import LaunchPlan, launch
from planner.planning import candidate_of
from planner.poc import PlanCandidate
from planner.requirements import Requirements
from planner.scoring import Score
from planner.server_schema import Server
from services.launches import SERVER_OF, Weights, run_form, settings_of
from services.workspace import Workspace


class StartedEngine(NamedTuple):
    """One engine of a draft: its launch as edited by hand, and its contract as derived."""

    engine: str
    launch: LaunchPlan
    contract: dict[str, str]


def started_engines(
    ws: Workspace, score: Score, r: Requirements, sizing: Sizing, engines: list[str], weights: Weights,
    edits: tuple[Edit, ...],
) -> list[StartedEngine]:  # fmt: skip
    """How each engine is started for the measurement. Raises InputError for an edit that its field cannot have."""
    found = []
    for e in engines:
        own = server(ws.catalog.engines, SERVER_OF.get(e, e))
        settings = settings_of(score, r, sizing, own, "benchmark", weights)
        edited = edited_settings(settings, candidate_of(e), edits)
        derived = launch(own, settings)
        found.append(StartedEngine(e, launch(own, edited), _contract(score, r, sizing, e, own, derived)))
    return found


def candidate(
    ws: Workspace, score: Score, r: Requirements, started: StartedEngine, edits: tuple[Edit, ...],
    bounds: dict[str, float],
) -> PlanCandidate:  # fmt: skip
    """The candidate of a plan; `bounds` are the favourite's, in tok/s by load point."""
    e, id = started.engine, candidate_of(started.engine)
    return PlanCandidate(
        id=id,
        role="favourite" if e == score.favourite else "baseline" if e == score.baseline else "challenger",
        engine=started.launch.engine,
        model_name=r.favourite_plan.model,
        launch=started.launch.for_plan(),
        contract=edited_contract(started.contract, id, edits),
        facts=facts_to_carry(ws.catalog.engines, started.launch.engine),
        by_hand=tuple(x.field for x in edits if x.candidate == id),
        bound_tok_s=bounds if e == score.favourite else {},
    )


# Contract fields that a launch states by a flag, by the flag's role in the catalogue.
_BY_FLAG = {"gpu_memory_share": "gpu_memory_fraction", "prefill_chunk": "chunked_prefill_size"}
NO_SETTING = "no setting of this engine"


def _contract(
    score: Score, r: Requirements, sizing: Sizing, engine: str, found: Server, started: LaunchPlan
) -> dict[str, str]:
    form = run_form(score, engine)
    values = {f.flag: f.value for f in started.flags}
    by_flag = {
        field: values.get(found.parameters[role].flag, "") if role in found.parameters else NO_SETTING
        for field, role in _BY_FLAG.items() if field in FIELD
    }  # fmt: skip
    return {
        "engine": started.engine,
        "engine_version": started.version,
        "weight_format": form.weight_format,
        "quantization": form.quantization,
        "kv_cache_dtype": r.favourite_plan.kv_cache_dtype,
        "output_length": "fixed",
        "max_model_len": str(sizing.launch.max_model_len),
        "max_num_seqs": str(sizing.launch.max_num_seqs),
        "prefix_caching": "on",
        "tensor_parallel": str(sizing.launch.tensor_parallel),
        **{k: v for k, v in by_flag.items() if v},
    }
