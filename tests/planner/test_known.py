"""Evidence with an index: what it finds is what a walk over all of it finds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.conditions import Evidence, Kind
from planner.known import Derived, Fact, Known, facts_of

METRICS, POINTS = ("ttft_ms", "oom", "itl_ms"), ("single", "peak", None)


@st.composite
def figures(draw: st.DrawFn) -> list[Evidence]:
    drawn = draw(st.lists(st.tuples(st.sampled_from(METRICS), st.sampled_from(POINTS)), max_size=12))
    return [
        Evidence(id=f"e{i:02d}", metric=m, value=i, unit="ms", kind=Kind.MEASURED, source="s", load_point=p,
                 at=datetime(2026, 1, 1, tzinfo=UTC))
        for i, (m, p) in enumerate(drawn)
    ]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(figures(), st.integers(0, 12))
def test_the_index_finds_what_a_walk_finds_joined_or_not(evidence: list[Evidence], cut: int) -> None:
    later = Known.read_later({m: partial(of_metric, evidence, m) for m in METRICS}, facts_of(evidence))
    some = {m: [e for e in evidence if e.metric == m] for m in METRICS[:1]}
    parts = Known.joined(Known(evidence[:cut]), Known(evidence[cut:]))
    for known in (Known(evidence), parts, later, Known(evidence).with_metrics(some)):
        assert list(known) == evidence
        for metric in METRICS:
            walked = [e for e in evidence if e.metric == metric]
            assert sorted(known.of_metric(metric), key=lambda e: e.value) == walked
            assert known.points(metric) == {e.load_point for e in walked if e.load_point}
            for point in POINTS:
                assert known.at(metric, point) == [e for e in walked if e.load_point == point]
        for point in POINTS:
            here = [e for e in evidence if e.load_point == point]
            assert sorted(known.at_point(point), key=lambda e: e.value) == here


def of_metric(evidence: list[Evidence], metric: str) -> list[Evidence]:
    return [e for e in evidence if e.metric == metric]


def test_figures_of_a_metric_are_read_when_they_are_asked_for_and_once() -> None:
    read: list[str] = []

    def of(metric: str) -> list[Evidence]:
        read.append(metric)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return [Evidence(id=metric, metric=metric, value=1, unit="", kind=Kind.ENTERED, source="s", at=at)]

    facts = [Fact(m, Kind.ENTERED, None, None) for m in ("oom", "itl_ms")]
    known = Known.read_later({f.metric: partial(of, f.metric) for f in facts}, facts)
    assert known.points("oom") == set()
    assert {f.kind for f in Known.joined(known, Known()).facts} == {Kind.ENTERED}
    assert read == []
    assert [e.id for e in known.of_metric("oom", "ttft_ms")] == ["oom"]
    assert known.by_id(["oom"]) == {"oom": known.at("oom", None)[0]}
    assert read == ["oom"]
    assert [e.id for e in known] == ["itl_ms", "oom"]  # of one time, so by id
    assert read == ["oom", "itl_ms"]


def test_what_was_worked_out_is_remembered_for_the_very_same_evidence_and_question_only() -> None:
    made: list[int] = []
    derived: Derived[int] = Derived(most=2)

    def make() -> int:
        made.append(1)
        return len(made)

    a, b = Known(), Known()
    assert [derived.get(a, "q", make), derived.get(a, "q", make)] == [1, 1]
    assert [derived.get(b, "q", make), derived.get(a, "other", make)] == [2, 3]
    assert derived.get(a, "q", make) == 4  # two are held, and this was the oldest
