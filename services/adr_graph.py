"""The graph of a log's decisions with what each rests on: requirements, plan, score and measured bundles."""

from __future__ import annotations

from collections.abc import Sequence

from decisions.graph import Graph, Node, around, decision_graph
from decisions.record import Adr
from services.workspace import Workspace

LARGEST = 150  # decisions; a larger picture shows nothing any more


def graph_of(ws: Workspace, adrs: Sequence[Adr], *, inputs: bool = True) -> Graph:
    """The graph of these decisions, with what they rest on."""
    return decision_graph(adrs, _inputs(ws, adrs) if inputs else {})


def graph_around(ws: Workspace, adr: Adr) -> Graph:
    """One decision, what it rests on, and every decision that it is tied to."""
    return graph_of(ws, around(ws.store.adrs.all(), adr.id))


def tied(adrs: Sequence[Adr]) -> tuple[Adr, ...]:
    """Decisions that are tied to another one, the newest LARGEST of them."""
    graph = decision_graph(adrs)
    ends = {x for e in graph.edges for x in (e.source, e.target)}
    return tuple(a for a in adrs if a.id in ends)[-LARGEST:]


def _inputs(ws: Workspace, adrs: Sequence[Adr]) -> dict[str, Node]:
    """What snapshots and evidence are named by, as nodes: versions, plans, scores and runs of their cases."""
    found: dict[str, Node] = {}
    for case in dict.fromkeys(a.case for a in adrs):
        for v in ws.store.cases.requirements(case):
            found[v.sha256] = Node(f"requirements {v.sha256[:12]}", "requirements", f"requirements, version {v.n}")
        for p in ws.store.plans.of_case(case):
            found[p.body_sha256] = Node(f"plan {p.sha256[:12]}", "plan", f"plan {p.sha256[:12]}", f"{p.at:%Y-%m-%d}")
        for r in ws.store.runs.of_case(case):
            name = f"{r.candidate} stage {r.stage} start {r.start}"
            found[r.sha256] = Node(f"run {r.sha256[:12]}", "run", name, r.kind.value)
    for a in adrs:
        if sha256 := a.snapshot("score"):
            found[sha256] = Node(f"score {sha256[:12]}", "score", f"score {sha256[:12]}")
    return found
