"""A decision that stands: conditions come and go with a reason, and somebody looks again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from decisions.flip_condition import FlipCondition
from decisions.flips import from_template
from planner.errors import InputError, NotAllowed
from services import recounts
from services.arrivals import bring_in
from services.decisions import begin_draft
from services.due import due, due_of
from services.flip_edits import add_condition, fire_by_hand, looked_at, retire_condition, reviewed
from services.opinions import answer_objection, approve, object_to, withdraw
from services.workspace import now
from tests.services.made import CASE, accepted, asking, decide, measured, with_plan

SOON = now().date() + timedelta(days=30)
LICENCE = FlipCondition(id="licence", statement="The licence changes", owner="Kim", recheck_on=SOON)


def test_a_condition_is_added_with_a_reason_and_judged_at_once(shipped):
    adr = accepted(shipped)
    flip = from_template("slow-start", candidate="vllm", owner="Kim", recheck_on=SOON)
    with pytest.raises(NotAllowed, match="needs a reason"):
        add_condition(shipped, adr.id, flip, "Kim", " ")
    assert add_condition(shipped, adr.id, flip, "Kim", "we scale now").conditions[-1] == flip
    last = shipped.store.verdicts.latest(adr.case)[adr.id, "slow-start"]
    assert (last.state, last.cause.says) == ("unmeasured", "Kim added the condition")


def test_bundles_are_counted_for_a_new_limit_before_everybody_else_has_to_wait(shipped, tmp_path, monkeypatch):
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    adr = decide(shipped, begin_draft(shipped, CASE, "Kim").adr.id)
    read, locked = recounts.read_kept, []

    def watched(ws, run):
        locked.append(ws.store.in_transaction)
        return read(ws, run)

    monkeypatch.setattr(recounts, "read_kept", watched)
    slower = FlipCondition.from_line("slower", "vllm: ttft p95 <= 1.5 s at parallel-2", fires_when="fails", owner="Kim",
                                     recheck_on=SOON)  # fmt: skip
    add_condition(shipped, adr.id, slower, "Kim", "we promise more")
    assert locked == [False]
    assert shipped.store.verdicts.latest(adr.case)[adr.id, "slower"].state == "armed"


@pytest.mark.parametrize(
    ("line", "rule"),
    [("vllm: ttft p95 <= 2 s at nowhere", "FL005"), ("vllm: ttft p95 <= 2 s at peak", "FL006")],  # imported: 8.1 s
)
def test_a_condition_that_the_lint_refuses_is_not_added(shipped, line, rule):
    adr = accepted(shipped)
    flip = FlipCondition.from_line("slow", line, fires_when="fails", owner="Kim", recheck_on=SOON)
    entries = shipped.store.adrs.entries(adr.id)
    with pytest.raises(NotAllowed, match=rule):
        add_condition(shipped, adr.id, flip, "Kim", "speed matters")
    assert shipped.store.adrs.entries(adr.id) == entries


def test_a_retired_condition_stays_readable_and_is_judged_no_more(shipped):
    adr = accepted(shipped)
    after = retire_condition(shipped, adr.id, "few-users", "Sato", "the new site doubled the users")
    assert after.condition("few-users").retired
    assert "few-users" not in [c.id for c in after.active_conditions]


def test_what_is_judged_by_hand_fires_by_hand_and_waits_for_an_answer(shipped):
    adr = accepted(shipped)
    add_condition(shipped, adr.id, LICENCE, "Kim", "lawyers asked")
    with pytest.raises(NotAllowed, match="is measured: only evidence fires it"):
        fire_by_hand(shipped, adr.id, "few-users", "Kim", "few users")
    fire_by_hand(shipped, adr.id, "licence", "Kim", "it is BUSL from 1.0 on")
    now_ = shipped.store.adrs.get(adr.id)
    assert [(f.condition, f.sentence) for f in now_.fires] == [("licence", "it is BUSL from 1.0 on (Kim)")]
    last = shipped.store.verdicts.latest(adr.case)[adr.id, "licence"]
    assert (last.state, last.cause.says) == ("fired", "Kim saw it happen")
    with pytest.raises(NotAllowed, match="has fired already and waits for an answer"):
        fire_by_hand(shipped, adr.id, "licence", "Lee", "the same")
    assert [e.kind for e in shipped.store.adrs.edits(adr.id)].count("condition_fired") == 1


def test_what_is_due_is_listed_and_a_look_moves_it(shipped):
    adr = accepted(shipped)  # review after 180 days, re-checks after 90
    assert due(shipped, CASE) == ()
    on = now().date() + timedelta(days=92)
    listed = due_of([shipped.store.adrs.get(adr.id)], on)
    assert {(d.what, d.condition, d.days_left) for d in listed} == {
        ("re-check", c.id, -2) for c in adr.active_conditions
    }  # fmt: skip
    assert all(d.overdue for d in listed)
    on_the_day = due_of([shipped.store.adrs.get(adr.id)], on - timedelta(days=2))
    assert {(d.days_left, d.overdue) for d in on_the_day} == {(0, True)}
    looked_at(shipped, adr.id, "few-users", on + timedelta(days=60), "Kim", "still 30 users a day")
    reviewed(shipped, adr.id, on + timedelta(days=3), "Sato", "nothing new")
    again = due_of([shipped.store.adrs.get(adr.id)], on)
    assert ("few-users", "re-check") not in [(d.condition, d.what) for d in again]
    assert [(d.what, d.days_left, d.overdue) for d in again][-1] == ("review", 3, False)


def test_a_look_names_a_day_ahead_and_what_was_found(shipped):
    adr = accepted(shipped)
    with pytest.raises(InputError, match="does not lie ahead"):
        looked_at(shipped, adr.id, "few-users", now().date(), "Kim", "fine")
    with pytest.raises(NotAllowed, match="without a reason"):
        looked_at(shipped, adr.id, "few-users", SOON, "Kim", "")
    with pytest.raises(NotAllowed, match="needs a reason"):
        reviewed(shipped, adr.id, SOON, "Kim", "")


def test_opinions_are_kept_by_name(shipped):
    adr = accepted(shipped)
    approve(shipped, adr.id, "Lee")
    object_to(shipped, adr.id, "Mori", "too many releases")
    answer_objection(shipped, adr.id, "Mori", "Sato", "one a quarter is enough")
    after = withdraw(shipped, adr.id, "Lee")
    assert [(o.author, o.stance, o.answer) for o in after.opinions] == [("Mori", "objects", "one a quarter is enough")]
