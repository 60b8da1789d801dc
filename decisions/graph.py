"""Decisions as a graph: what supersedes what, what a decision rests on, and which one names another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from decisions.record import Adr, Status

Kind = Literal["adr", "requirements", "plan", "score", "run"]
Relation = Literal["supersedes", "would supersede", "rests on", "mentions"]

_NAMED = re.compile(r"\bADR-(\d{4,})\b")
# Filled shapes carry their own dark text, so that they read on a light and on a dark page alike.
SHAPES: dict[Kind, str] = {
    "adr": "box",
    "requirements": "note",
    "plan": "folder",
    "score": "hexagon",
    "run": "cylinder",
}
FILLS = {
    "draft": "#e2e8f0", "proposed": "#bfdbfe", "accepted": "#bbf7d0", "rejected": "#fecaca", "superseded": "#e2e8f0",
    "deprecated": "#e2e8f0", "fired": "#fdba74",
}  # fmt: skip
INPUT_FILL, INK, LINE = "#fef9c3", "#16202e", "#7c8899"
STYLES: dict[Relation, str] = {
    "supersedes": "solid", "would supersede": "dashed", "rests on": "solid", "mentions": "dotted",
}  # fmt: skip


class Node(NamedTuple):
    """A decision, or something that decisions rest on; `note` is its status or what it is."""

    id: str
    kind: Kind
    label: str
    note: str = ""


class Edge(NamedTuple):
    """One relation, read from left to right: "ADR-0002 supersedes ADR-0001"."""

    source: str
    relation: Relation
    target: str


class Graph(NamedTuple):
    """Nodes and edges, each once."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def sentences(self) -> tuple[tuple[str, str, str], ...]:
        """Every edge in words: what the picture says, for those who do not see it."""
        labels = {n.id: n.label for n in self.nodes}
        return tuple((labels[e.source], e.relation, labels[e.target]) for e in self.edges)


def decision_graph(adrs: Sequence[Adr], inputs: Mapping[str, Node] | None = None) -> Graph:
    """The graph of decisions; `inputs` are nodes by the hash that a snapshot or a piece of evidence names them by.

    Inputs that no decision rests on, and relations to decisions that are not among `adrs`, are left out.
    """
    known = {a.id: a for a in adrs}
    by_number = {a.number: a.id for a in adrs if a.number}
    edges = dict.fromkeys(
        e
        for a in adrs
        for e in (*_superseding(a, known), *_resting(a, inputs or {}), *_mentioning(a, by_number))
    )  # fmt: skip
    used = {e.target for e in edges}
    below = dict.fromkeys(n for n in (inputs or {}).values() if n.id in used)
    return Graph((*(_node(a) for a in adrs), *below), tuple(edges))


def around(adrs: Iterable[Adr], id: str) -> tuple[Adr, ...]:
    """One decision with all that it supersedes, that supersedes it, and that they name or are named by."""
    listed = list(adrs)
    edges = decision_graph(listed).edges
    lineage = {id}
    chain = [e for e in edges if e.relation != "mentions"]
    while more := {x for e in chain if {e.source, e.target} & lineage for x in (e.source, e.target)} - lineage:
        lineage |= more
    named = {x for e in edges if {e.source, e.target} & lineage for x in (e.source, e.target)}
    return tuple(a for a in listed if a.id in lineage | named)


def to_dot(graph: Graph, focus: str = "") -> str:
    """The graph in the DOT language, decisions in time from left to right; `focus` is drawn with a thick line."""
    lines = [
        "digraph decisions {",
        '  graph [rankdir=LR, bgcolor="transparent", nodesep=0.3, ranksep=0.7, fontname="sans-serif"];',
        f'  node [style="filled", color="{LINE}", fontcolor="{INK}", fontname="sans-serif", fontsize=11, margin=0.12];',
        f'  edge [dir=back, color="{LINE}", fontcolor="{LINE}", fontname="sans-serif", fontsize=10];',
    ]
    lines += [f"  {_quoted(n.id)} [{_look(n, thick=n.id == focus)}];" for n in graph.nodes]
    # The older one stands on the left; dir=back puts the arrow's head there, so that an edge reads as its sentence.
    lines += [
        f"  {_quoted(e.target)} -> {_quoted(e.source)} [label={_quoted(e.relation)}, style={STYLES[e.relation]}];"
        for e in graph.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _superseding(adr: Adr, known: Mapping[str, Adr]) -> list[Edge]:
    done = adr.status not in (Status.DRAFT, Status.PROPOSED, Status.REJECTED)
    return [Edge(adr.id, "supersedes" if done else "would supersede", old) for old in adr.supersedes if old in known]


def _resting(adr: Adr, inputs: Mapping[str, Node]) -> list[Edge]:
    hashes = (*(s.sha256 for s in adr.snapshots), *(e.run for e in adr.evidence if e.run))
    return [Edge(adr.id, "rests on", inputs[h].id) for h in hashes if h in inputs]


def _mentioning(adr: Adr, by_number: Mapping[int, str]) -> list[Edge]:
    """Other decisions that the text names by their number and that it does not supersede."""
    text = "\n".join((adr.headline, adr.context, *adr.drivers, adr.outcome, adr.confirmation))
    named = (by_number.get(int(m[1])) for m in _NAMED.finditer(text))
    return [Edge(adr.id, "mentions", id) for id in named if id and id != adr.id and id not in adr.supersedes]


def _node(adr: Adr) -> Node:
    label = f"ADR-{adr.number:04d} {adr.title}" if adr.number else adr.title
    return Node(adr.id, "adr", label, "fired" if adr.waits else adr.status.value)


def _look(n: Node, *, thick: bool) -> str:
    fill = FILLS[n.note] if n.kind == "adr" else INPUT_FILL
    label = _wrapped(n.label) + (f"\n({n.note})" if n.note else "")
    return f"label={_quoted(label)}, shape={SHAPES[n.kind]}, fillcolor={_quoted(fill)}, penwidth={2.5 if thick else 1}"


def _wrapped(label: str, width: int = 28, lines: int = 3) -> str:
    """A label in lines of about `width` characters, cut after some; texts without spaces are cut anywhere."""
    found: list[str] = []
    line = ""
    for word in re.findall(rf"\S{{1,{width}}}|\s+", " ".join(label.split())):
        if len(line) + len(word) > width and line.strip():
            found, line = [*found, line.strip()], ""
        line += word
    found = [*found, line.strip()] if line.strip() else found
    return "\n".join(found[:lines]) + ("…" if len(found) > lines else "")


def _quoted(text: str) -> str:
    """A DOT string: backslashes and quotes escaped, so that a title stays text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
