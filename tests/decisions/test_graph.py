"""Decisions as a graph: superseding, resting on, naming; the picture is text that no title can break."""

from __future__ import annotations

from decisions.graph import Edge, Node, around, decision_graph, to_dot
from decisions.record import Adr, EvidenceRef, Fire, SnapshotRef, Status
from planner.conditions import Kind
from tests.decisions.made import NOW, nortia

A, B, C, D = (f"01J0000000000000000000000{x}" for x in "ABCD")


def adr(id: str, number: int | None, **fields: object) -> Adr:
    return nortia(id).model_copy(update={"number": number, "evidence": (), **fields})


FIRST = adr(A, 1, title="Ollama", status=Status.SUPERSEDED, superseded_by=B)
SECOND = adr(B, 2, title="vLLM", status=Status.ACCEPTED, supersedes=(A,))
THIRD = adr(C, None, title="SGLang", supersedes=(B,), context="ADR-0002 is re-opened. See ADR-0004 and ADR-0099.")
OTHER = adr(D, 4, title="Gateway", status=Status.ACCEPTED)
LOG = (FIRST, SECOND, THIRD, OTHER)


def test_edges_read_as_sentences() -> None:
    assert decision_graph(LOG).sentences() == (
        ("ADR-0002 vLLM", "supersedes", "ADR-0001 Ollama"),
        ("SGLang", "would supersede", "ADR-0002 vLLM"),
        ("SGLang", "mentions", "ADR-0004 Gateway"),
    )


def test_what_was_rejected_superseded_nothing_and_only_a_decision_in_force_waits_for_an_answer() -> None:
    fire = Fire(condition="few-users", at=NOW, sentence="few users")
    turned_down = adr(C, None, title="SGLang", status=Status.REJECTED, supersedes=(B,))
    over = FIRST.model_copy(update={"fires": (fire,)})
    graph = decision_graph((over, SECOND.model_copy(update={"fires": (fire,)}), turned_down))
    assert ("SGLang", "would supersede", "ADR-0002 vLLM") in graph.sentences()
    assert [n.note for n in graph.nodes] == ["superseded", "fired", "rejected"]


def test_what_a_decision_rests_on_is_found_by_its_hash_and_what_nobody_rests_on_is_left_out() -> None:
    inputs = {
        "a" * 64: Node("plan a", "plan", "plan a"), "b" * 64: Node("run b", "run", "run b"),
        "c" * 64: Node("run c", "run", "run c"),
    }  # fmt: skip
    measured = EvidenceRef(id="e", sha256="e" * 64, run="b" * 64, kind=Kind.MEASURED)
    based = SECOND.model_copy(update={
        "snapshots": (SnapshotRef(kind="plan", sha256="a" * 64), SnapshotRef(kind="made_with", sha256="f" * 64)),
        "evidence": (measured, measured.model_copy(update={"id": "e2"})),
    })  # fmt: skip
    graph = decision_graph([based], inputs)
    assert graph.edges == (Edge(B, "rests on", "plan a"), Edge(B, "rests on", "run b"))
    assert [n.id for n in graph.nodes] == [B, "plan a", "run b"]


def test_around_one_decision_stands_its_whole_line_and_what_it_names() -> None:
    stranger = adr("01J0000000000000000000000E", 5, title="Network")
    assert [a.id for a in around((*LOG, stranger), A)] == [A, B, C, D]
    assert [a.id for a in around((*LOG, stranger), D)] == [C, D]  # named by C, but not of its line
    assert around((*LOG, stranger), stranger.id) == (stranger,)


def test_two_that_supersede_each_other_in_a_broken_log_end() -> None:
    circle = (adr(A, 1, supersedes=(B,)), adr(B, 2, supersedes=(A,)))
    assert len(around(circle, A)) == 2


def test_the_picture_names_status_and_relation_and_reads_from_old_to_new() -> None:
    dot = to_dot(decision_graph(LOG), focus=B)
    assert f'"{A}" -> "{B}" [label="supersedes", style=solid];' in dot
    assert f'"{B}" -> "{C}" [label="would supersede", style=dashed];' in dot
    assert 'label="ADR-0002 vLLM\\n(accepted)", shape=box, fillcolor="#bbf7d0", penwidth=2.5' in dot


def test_a_title_cannot_leave_its_string() -> None:
    dot = to_dot(decision_graph([adr(A, 1, title='x"]; "evil" [label="\\')]))
    (node,) = (line for line in dot.splitlines() if line.startswith(f'  "{A}"'))
    assert 'x\\"]; \\"evil\\"\\n[label=\\"\\\\' in node
    bare = node.replace("\\\\", "").replace('\\"', "")
    assert bare.count('"') == 6  # id, label and fill colour, a pair each


def test_a_title_without_spaces_is_cut_into_lines() -> None:
    dot = to_dot(decision_graph([adr(A, None, title="推" * 100)]))
    assert f'label="{"推" * 28}\\n{"推" * 28}\\n{"推" * 28}…\\n(draft)"' in dot


def test_the_same_log_gives_the_same_text() -> None:
    assert to_dot(decision_graph(LOG)) == to_dot(decision_graph(tuple(LOG)))
