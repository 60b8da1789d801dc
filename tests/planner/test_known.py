"""Evidence with an index: what it finds is what a walk over all of it finds."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.conditions import Evidence, Kind
from planner.known import Derived, Known

METRICS, POINTS = ("ttft_ms", "oom", "itl_ms"), ("single", "peak", None)


@st.composite
def figures(draw: st.DrawFn) -> list[Evidence]:
    drawn = draw(st.lists(st.tuples(st.sampled_from(METRICS), st.sampled_from(POINTS)), max_size=12))
    return [
        Evidence(id=f"e{i}", metric=m, value=i, unit="ms", kind=Kind.MEASURED, source="s", load_point=p,
                 at=datetime(2026, 1, 1, tzinfo=UTC))
        for i, (m, p) in enumerate(drawn)
    ]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(figures(), st.integers(0, 12))
def test_the_index_finds_what_a_walk_finds_joined_or_not(evidence: list[Evidence], cut: int) -> None:
    for known in (Known(evidence), Known.joined(Known(evidence[:cut]), Known(evidence[cut:]))):
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
