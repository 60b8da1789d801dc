"""From requirements to the weight of each criterion, by rules that a person can read.

Each rule adds points to one criterion of the engine catalogue when it applies; a weight is a criterion's share of all
points. A caller may replace the points of a criterion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.requirements import Requirements

RULES_VERSION = 2
FEW_USERS = 5


class Rule(NamedTuple):
    """`points` for one criterion when the requirement applies, and why; {r.field} stands for the case's own number."""

    criterion: str
    points: float
    applies: Callable[[Requirements], bool]
    why: str


class Weight(Frozen):
    """One criterion's points, its share of all points, and the rules that gave them."""

    criterion: str
    points: float
    weight: float
    why: tuple[str, ...]


def _always(r: Requirements) -> bool:
    return True


def _many(r: Requirements) -> bool:
    return r.peak_users_max > FEW_USERS


def _few(r: Requirements) -> bool:
    return not _many(r)


def _nobody_full_time(r: Requirements) -> bool:
    return r.operators_full_time < 1


def _share_at_least(share: float) -> Callable[[Requirements], bool]:
    return lambda r: r.shared_prefix_share is not None and r.shared_prefix_share >= share


RULES: tuple[Rule, ...] = (
    Rule("batching", 4, _many, "many users at once: how requests share a step decides how many are served"),
    Rule("kv_management", 3, _many, "many users at once: KV memory decides how many fit"),
    Rule("scheduling_policy", 1, _many, "a queue forms when more users come than one unit serves"),
    Rule("chunked_prefill", 2, lambda r: _many(r) and r.ttft_s <= 3,
         "first token within {r.ttft_s:g} s while others run"),
    Rule("prefix_reuse", 1, lambda r: r.shared_prefix_share is None, "shared prefix not known yet: counted once"),
    Rule("prefix_reuse", 1, _share_at_least(0.1), "a tenth of the prompt or more is shared"),
    Rule("prefix_reuse", 2, _share_at_least(0.3), "a third of the prompt or so is shared"),
    Rule("prefix_reuse", 3, _share_at_least(0.6), "most of the prompt is shared"),
    Rule("openai_api", 2, lambda r: r.api != "any", "the layer above speaks the OpenAI form"),
    Rule("metrics", 3, lambda r: r.metrics_needed and _many(r),
         "TTFT, throughput and KV use are wanted from the server"),
    Rule("metrics", 1, lambda r: r.metrics_needed and _few(r),
         "metrics are wanted; with few users the log of the layer above shows what each one waits"),
    Rule("ops_information", 1, _always, "somebody has to see what the server does"),
    Rule("model_formats", 1, _always, "the next model should load as well"),
    Rule("quantization", 2, lambda r: any(p.quantization.lower() not in ("bf16", "fp16") for p in r.model_plans),
         "a model plan is quantized"),
    Rule("kv_quantization", 1, lambda r: any(p.kv_cache_dtype == "fp8" for p in r.model_plans),
         "a model plan has FP8 KV"),
    Rule("multi_gpu", 2, lambda r: (r.multi_gpu_later and _many(r)) or any(h.count > 1 for h in r.hardware),
         "several GPUs now, or later for many users"),
    Rule("hardware_breadth", 1, lambda r: not all(h.in_house for h in r.hardware), "the machine is not bought yet"),
    Rule("ease_of_install", 1, _always, "somebody has to install it"),
    Rule("ease_of_install", 2, lambda r: r.operators_full_time <= 1, "one full-time operator or none"),
    Rule("ease_of_install", 2, _nobody_full_time, "nobody full time: what breaks waits for somebody"),
    # What sharing gives for many users (4 + 3 + 1 + 2), and what their metrics give more than those of a few (2).
    Rule("ease_of_install", 12, _few, "few users: ease counts what sharing and its metrics count for many"),
    Rule("release_cadence", 1, _always, "every release has to be taken in"),
    Rule("release_cadence", 1, lambda r: r.operators_full_time <= 1, "one full-time operator or none"),
    Rule("release_cadence", 1, _nobody_full_time, "nobody full time: a release waits for somebody"),
    Rule("release_cadence", 1, lambda r: r.upgrade_effort == "low", "little time for upgrades"),
    Rule("licence_maintenance", 1, _always, "fixes must keep coming"),
    Rule("security_defaults", 1, _always, "what is open by default has to be closed by hand"),
    Rule("benchmark_control", 1, _always, "the choice is proven by a measurement"),
    Rule("structured_output", 2, lambda r: r.structured_output, "structured output is required"),
    Rule("lora", 2, lambda r: r.lora, "adapters are required"),
    Rule("multimodal", 2, lambda r: r.multimodal, "images or audio are required"),
    Rule("container_images", 1, lambda r: r.air_gap, "everything has to be carried in"),
)  # fmt: skip
CRITERIA: tuple[str, ...] = tuple(dict.fromkeys(r.criterion for r in RULES))


def weights(requirements: Requirements, adjust: Mapping[str, float] | None = None) -> tuple[Weight, ...]:
    """Weights that sum to 1, one per criterion of the rules.

    `adjust` replaces the points of criteria. Raises UnknownName for a criterion without a rule, InputError for negative
    points or when none are left.
    """
    by_hand = adjust or {}
    points = _points(requirements, by_hand)
    total = _sum(points)
    why: dict[str, tuple[str, ...]] = {c: (f"{value:g}: set by hand",) for c, value in by_hand.items()}
    for c in points.keys() - by_hand.keys():
        why[c] = tuple(
            f"{rule.points:g}: {rule.why.format(r=requirements)}"
            for rule in RULES
            if rule.criterion == c and rule.applies(requirements)
        )
    return tuple(Weight(criterion=c, points=p, weight=p / total, why=why[c]) for c, p in points.items())


def shares(requirements: Requirements, adjust: Mapping[str, float] | None = None) -> dict[str, float]:
    """Weight by criterion, without the reasons; raises as `weights` does."""
    points = _points(requirements, adjust or {})
    total = _sum(points)
    return {c: p / total for c, p in points.items()}


def _points(requirements: Requirements, by_hand: Mapping[str, float]) -> dict[str, float]:
    points: dict[str, float] = dict.fromkeys(CRITERIA, 0.0)
    for rule in RULES:
        if rule.applies(requirements):
            points[rule.criterion] += rule.points
    for criterion, value in by_hand.items():
        if criterion not in points:
            raise UnknownName.from_known("criterion", criterion, CRITERIA, where="weights")
        if value < 0:
            raise InputError(f"{criterion}: {value:g} points are below zero.", where="weights", fix="Use 0 or more.")
        points[criterion] = value
    return points


def _sum(points: Mapping[str, float]) -> float:
    total = sum(points.values())
    if total <= 0:
        raise InputError("no criterion has any points.", where="weights", fix="Give at least one criterion points.")
    return total


class Unknown(NamedTuple):
    """A requirement that may still be open, the criterion it weighs, and the values at which the rules change."""

    field: str
    criterion: str
    values: tuple[float, ...]
    words: str


UNKNOWNS: tuple[Unknown, ...] = (
    Unknown("shared_prefix_share", "prefix_reuse", (0.0, 0.1, 0.3, 0.6), "share of the prompt in common"),
)


def open_requirements(requirements: Requirements) -> tuple[Unknown, ...]:
    """Requirements of UNKNOWNS that are not stated."""
    return tuple(u for u in UNKNOWNS if getattr(requirements, u.field) is None)
