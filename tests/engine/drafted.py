"""The plan as the PoC plan page drafts it for two cores, and what a person changes in its file before it runs here."""

from __future__ import annotations

from typing import Any

import yaml

from planner.loads import LoadPoint
from planner.poc import PlanCandidate
from planner.requirements import Hardware, ModelPlan, Requirements
from tests.engine.tiny_model import NAME

# Promises that any machine of two cores keeps by far, and to the median, which few requests decide also on a busy one:
# so each verdict on them is known beforehand.
REQUIREMENTS = Requirements(
    peak_users_min=4, peak_users_max=8, user_tok_s_promise=1, user_tok_s_percentile=50, user_tok_s_target=2, ttft_s=30,
    ttft_percentile=50, input_tokens=64, output_tokens=32, context_tokens=2048, requests_per_user_per_min=10,
    shared_prefix_share=0,
    model_plans=(ModelPlan(id="T", label="tiny", model=NAME, quantization="fp32", kv_cache_dtype="fp32",
                           favourite=True),),
    hardware=(Hardware(gpu="two-cpu-cores", in_house=True),),
)  # fmt: skip
BASELINE = "ollama"  # the draft's second candidate, which needs llama-server


def edited(text: str, here: PlanCandidate, shared: dict[str, str], points: tuple[LoadPoint, ...],
           own: list[dict[str, Any]]) -> str:  # fmt: skip
    """The drafted file for this machine: the CPU build's launch, vLLM alone, loads that two cores end in minutes.

    What needs the other candidate goes; the drafted peak stays as a load that no stage runs. `own` are hypotheses that
    a person adds.
    """
    plan = yaml.safe_load(text)
    drafted = next(c for c in plan["candidates"] if c["id"] == here.id)
    stated = here.model_dump(mode="json", include={"launch", "contract"}, exclude_defaults=True)
    plan["candidates"] = [drafted | stated]
    plan["shared_contract"] = shared
    run = {p.name: p.model_dump(mode="json", exclude_defaults=True) for p in points}
    for p in plan["load_points"]:
        if p["name"] in run and p["in_flight"] != run[p["name"]]["in_flight"]:
            del drafted["bound_tok_s"][p["name"]]  # computed for the other number in flight
    plan["load_points"] = [run.get(p["name"], p) for p in plan["load_points"]]
    plan["stages"] = [{"name": "A", "points": list(run)}]
    plan["hypotheses"] = [h for h in map(_alone, plan["hypotheses"]) if h["conditions"]] + own
    return yaml.safe_dump(plan, sort_keys=False)


def _alone(hypothesis: dict[str, Any]) -> dict[str, Any]:
    kept = [line for line in hypothesis["conditions"] if BASELINE not in line]
    return hypothesis | {"conditions": kept}
