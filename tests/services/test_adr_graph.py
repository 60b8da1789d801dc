"""What a decision rests on is called in its picture as people know it elsewhere."""

from __future__ import annotations

from decisions.graph import Node
from services.adr_graph import graph_around
from services.arrivals import bring_in
from services.decisions import begin_draft
from services.diffs import adr_diff, plan_versions
from tests.services.made import CASE, accepted, asking, decide, measured, with_plan


def nodes(graph) -> dict[str, Node]:
    return {n.kind: n for n in graph.nodes}


def test_a_plan_and_requirements_are_called_as_in_the_comparison(shipped):
    adr = accepted(shipped)
    found = nodes(graph_around(shipped, adr))
    rows = {r.where: r.after for r in adr_diff(shipped, adr.id, "2", "3").rows}
    assert found["plan"].label == f"plan {plan_versions(shipped, CASE)[-1].key}" == f"plan {rows['decided on › plan']}"
    assert found["requirements"].label == f"requirements, {rows['decided on › requirements']}"
    assert found["score"].label == f"score {rows['decided on › score']}"


def test_a_run_is_called_by_candidate_stage_and_start(shipped, tmp_path):
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    adr = decide(shipped, begin_draft(shipped, CASE, "Kim").adr.id)
    run = nodes(graph_around(shipped, adr))["run"]
    assert (run.label, run.note) == ("vllm stage A start 1", "measured")
