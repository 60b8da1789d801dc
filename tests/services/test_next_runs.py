"""What Nortia has to measure next: what imports settled is left out, the rest stands by what it could change."""

from __future__ import annotations

from services.arrivals import bring_in, bring_in_usage
from services.cases import begin_case
from services.next_runs import next_runs
from services.verdicts import case_state
from tests.services.made import CASE, accepted, asking, days, measured, with_plan


def test_nortia_starts_before_anything_else_and_leaves_out_what_imports_settled(shipped):
    runs = next_runs(shipped, case_state(shipped, CASE))
    first = runs[0]
    assert (first.what, first.could) == ("vllm at single", "end the plan")
    assert {"H1", "engine-does-not-start"} <= {c.id for c in first.changes}
    assert first.minutes and first.starts == 3
    everything = {c.id: c for r in runs for c in r.changes}
    assert "H4" not in everything  # fails, as imported (case sheet, 4)
    assert everything["H3"].doubtful  # 10 against 20 tok/s by the planning value (case sheet, 3)
    assert everything["few-users"].then == "move to a simpler set-up"


def test_what_the_score_proposes_comes_behind_what_the_plan_asks_and_says_that_no_plan_runs_it(shipped):
    runs = [r for r in next_runs(shipped, case_state(shipped, CASE)) if r.could == "change the favourite"]
    asked = [any(c.kind != "proposal" for c in r.changes if c.could == r.could) for r in runs]
    assert asked == sorted(asked, reverse=True)
    assert {r.candidate for r in runs if not r.in_plan} >= {"sglang"}


def test_a_fired_condition_and_a_measured_hypothesis_are_settled(shipped, tmp_path):
    accepted(shipped)
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    before = {c.id for r in next_runs(shipped, case_state(shipped, CASE)) for c in r.changes}
    assert {"H1", "few-users"} <= before
    bring_in(shipped, CASE, measured(tmp_path / "a", n=400), "Kim")
    bring_in_usage(shipped, CASE, days(28, 4.0), by="Kim", source="log")
    after = {c.id: c.state for r in next_runs(shipped, case_state(shipped, CASE)) for c in r.changes}
    assert not {"H1", "few-users"} & after.keys()
    assert after["engine-does-not-start"] == "expired"  # another model ran than the one that was decided on


def test_without_a_plan_there_is_nothing_to_run(shipped):
    new = begin_case(shipped, "New", case_state(shipped, CASE).requirements, "Kim")
    assert next_runs(shipped, case_state(shipped, new.slug)) == ()
