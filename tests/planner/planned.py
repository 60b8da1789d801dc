"""A small plan and a server whose speed can be worked out on paper."""

from __future__ import annotations

from planner.condition_line import parse_condition
from planner.loads import LoadPoint
from planner.poc import Hypothesis, Launch, Plan, PlanCandidate, Stage, StageRule
from planner.throughput import ThroughputInputs

# One layer, no KV, no prompts: a step reads 8 GB at 0.8 of 1000 GB/s and launches one layer, 10 ms + 20 us. Every user
# gets 1 / 0.01002 s = 99.8 tok/s at any batch.
STEP_S = 0.01002
FAST = ThroughputInputs(active_weight_gb=8, always_read_gb=8, kv_gb_per_request=0, bandwidth_gb_s=1000, layers=1,
                        output_tokens=100)  # fmt: skip
SLOW = FAST.model_copy(update={"active_weight_gb": 16, "always_read_gb": 16})


def closed(n: int, name: str = "", requests: int = 20, **more: object) -> LoadPoint:
    fields = {"name": name or f"parallel-{n}", "in_flight": n, "input_tokens": 50, "output_tokens": 100,
              "requests": requests, "warmup_requests": 0}  # fmt: skip
    return LoadPoint.model_validate(fields | more)


def candidate(id: str, role: str, **more: object) -> PlanCandidate:
    launch = Launch(command=("serve", id), stage_settings={"max_num_seqs": "--max-num-seqs"})
    return PlanCandidate.model_validate({"id": id, "role": role, "engine": "vllm", "model_name": "m",
                                         "launch": launch} | more)  # fmt: skip


def hypothesis(id: str, *lines: str) -> Hypothesis:
    return Hypothesis(id=id, statement=id, conditions=tuple(parse_condition(x) for x in lines), method="run it",
                      if_rejected="think again")  # fmt: skip


LADDER = (closed(1, "single"), closed(2), closed(4), closed(8), closed(16))
KEEPS = parse_condition("fast: user_tok_s p5 >= 90 tok/s")


def plan(**more: object) -> Plan:
    """Stage A's ladder to 16, stage B with a spare point; two candidates, of which H2 compares them at 4."""
    return Plan.model_validate({
        "case": "c", "title": "t", "shared_contract": {"model": "m"},
        "candidates": (candidate("fast", "favourite"), candidate("slow", "baseline")),
        "load_points": (*LADDER, closed(16, "busy"), closed(2, "spare")),
        "stages": (
            Stage(name="A", points=tuple(p.name for p in LADDER)),
            Stage(name="B", points=("busy", "spare"),
                  rule=StageRule(setting="max_num_seqs", from_stage="A", keeps=KEEPS)),
        ),
        "hypotheses": (hypothesis("H2", "fast over slow: output_tok_s >= 2 x at parallel-4"),
                       hypothesis("H4", "fast: ttft p95 <= 2 s at busy")),
        "starts": 4, "repeats": 2,
    } | more)  # fmt: skip


def speed_of(c: PlanCandidate, p: LoadPoint) -> ThroughputInputs:
    return FAST if c.id == "fast" else SLOW
