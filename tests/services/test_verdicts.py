"""What a case says after evidence: hypotheses, users served, history, and what fires."""

from __future__ import annotations

from planner.poc import Stage
from services.arrivals import bring_in, bring_in_files, bring_in_table
from services.decisions import begin_draft, open_adr, save
from services.filled import Filled
from services.rejudging import rejudge
from services.verdicts import (
    asked_conditions,
    case_state,
    decision_of,
    headline,
    judge_levels,
    missing,
    users_served,
)
from tests.bundle.made import POINT, bundle, closed_loop
from tests.services.made import CASE, FIRST_DAY, accepted, asking, measured, small_plan, with_plan, zipped


def entered(ws, n, speed, ttft, who="vllm"):
    point = f"parallel-{n}" if n > 1 else "single"
    rows = [
        Filled(who, point, n, None, 3596, 500, "user_tok_s", "p5", speed, 130),
        Filled(who, point, n, None, 3596, 500, "ttft_ms", "p95", ttft, 130),
    ]
    bring_in_table(ws, CASE, rows, by="Kim", source="sheet", measured_at=FIRST_DAY)


def test_users_served_is_the_largest_load_that_keeps_every_level(shipped):
    entered(shipped, 1, 60, 300)
    assert users_served(case_state(shipped, CASE)).sentence.startswith("1 user at a time gets the promise")
    entered(shipped, 4, 25, 900)
    entered(shipped, 8, 21, 2500)  # fast enough, but the first token comes after 2 s
    state = case_state(shipped, CASE)
    assert users_served(state).sentence == (
        "4 simultaneous users get the promise on one unit (vllm, as entered); you need 20 to 50."
    )
    levels = judge_levels(state)
    assert [levels["vllm", p].side for p in ("single", "parallel-4", "parallel-8")] == ["holds", "holds", "fails"]
    assert levels["ollama", "single"].state == "unmeasured"


def test_a_promise_of_which_one_level_was_typed_in_is_kept_as_entered(shipped, tmp_path):
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2", levels=("ttft p95 <= 2 s", "json_valid >= 50 %")))
    for start in (1, 2, 3):
        bring_in(shipped, CASE, measured(tmp_path / f"{start}", start=start), "Kim")
    valid = Filled("vllm", POINT.name, 2, None, POINT.input_tokens, POINT.output_tokens, "json_valid", "value", 1, 130)
    bring_in_table(shipped, CASE, [valid], by="Kim", source="sheet", measured_at=FIRST_DAY)
    users = users_served(case_state(shipped, CASE))
    assert (users.users, users.kind) == (2, "entered")
    assert "(vllm, as entered)" in users.sentence


def test_what_holds_above_a_load_that_fails_serves_nobody(shipped):
    entered(shipped, 4, 15, 900)
    entered(shipped, 8, 21, 900)
    users = users_served(case_state(shipped, CASE))
    assert (users.users, users.kind) == (None, "")
    assert "is contradictory (vllm: 4 in flight fails, 8 holds); you need 20 to 50." in users.sentence
    entered(shipped, 2, 30, 900)
    assert users_served(case_state(shipped, CASE)).users == 2


def test_the_headline_speaks_of_whom_the_decision_chose(shipped):
    entered(shipped, 4, 25, 900)
    entered(shipped, 1, 60, 300, who="ollama")
    assert headline(case_state(shipped, CASE)).sentence.startswith(
        "4 simultaneous users get the promise on one unit (vllm"
    )
    draft = decision_of(case_state(shipped, CASE))
    opened = open_adr(shipped, draft.id)
    save(shipped, opened, opened.adr.text.model_copy(update={"chosen": "Ollama"}), "Kim")
    state = case_state(shipped, CASE)
    assert headline(state).sentence.startswith("1 user at a time gets the promise on one unit (ollama")
    assert headline(state._replace(adrs=())) == users_served(state)  # nobody is chosen: the favourite


def test_an_accepted_decision_stands_before_a_newer_draft(shipped):
    standing = accepted(shipped)
    begin_draft(shipped, CASE, "Kim")
    assert decision_of(case_state(shipped, CASE)).id == standing.id


def test_when_every_load_fails_the_sentence_says_how_that_is_known(shipped):
    with_plan(shipped, case_state(shipped, CASE).plan.model_copy(update={
        "load_points": case_state(shipped, CASE).plan.load_points[:2], "stages": (Stage(name="A", points=("single",)),),
        "hypotheses": (), "title": "two points",
    }))  # fmt: skip
    entered(shipped, 1, 5, 300)
    entered(shipped, 2, 4, 300)
    users = users_served(case_state(shipped, CASE))
    assert (users.users, users.kind) == (0, "entered")
    assert users.sentence == "No load of the plan keeps the promise on one unit (vllm, as entered); you need 20 to 50."


def test_a_draft_says_of_each_hypothesis_how_it_is_known(shipped):
    entered(shipped, 16, 12, 900)
    confirmation = begin_draft(shipped, CASE, "Kim").adr.confirmation
    assert "H3 At 16 in flight each user gets at least 20 tok/s. Today: fails, as entered." in confirmation
    assert "Today: fails, as imported." in confirmation  # H4, on the shipped import


def test_simulated_figures_serve_nobody(shipped, tmp_path):
    levels = case_state(shipped, CASE).requirements.service_levels()
    case = with_plan(shipped, small_plan(POINT).model_copy(update={"service_levels": levels}))
    folder = bundle(tmp_path / "a", closed_loop(rounds=100))
    bring_in_files(shipped, case, [("a.zip", zipped([folder], tmp_path / "a.zip"))], "Kim")
    assert users_served(case_state(shipped, CASE)).users is None


def test_the_history_grows_only_when_something_changed(shipped):
    case = shipped.store.cases.get(CASE).id
    before = shipped.store.verdicts.history(case)
    rejudge(shipped, CASE)
    assert shipped.store.verdicts.history(case) == before
    entered(shipped, 16, 12, 900)
    new = shipped.store.verdicts.history(case)[len(before) :]
    assert [(j.condition, j.state, j.value) for j in new] == [("H3", "fails", 12.0)]


def test_an_engine_that_does_not_start_fires_its_condition_only_when_it_was_measured(shipped, tmp_path):
    adr = accepted(shipped)
    case = with_plan(shipped, small_plan(POINT))
    folder = bundle(tmp_path / "a", started=False)  # simulated
    arrived = bring_in_files(shipped, case, [("a.zip", zipped([folder], tmp_path / "a.zip"))], "Kim")
    assert arrived.fired == ()
    assert shipped.store.adrs.get(adr.id).fires == ()


def test_conditions_of_plan_and_decisions_are_asked_about(shipped):
    state = case_state(shipped, CASE)
    asked = asked_conditions(state.plan, state.adrs)
    assert {"ttft_ms", "user_tok_s", "started", "peak_in_flight"} <= {c.metric for c in asked}


def test_an_accepted_decision_is_not_missing(shipped):
    accepted(shipped)
    assert [page for _, page in missing(case_state(shipped, CASE))] == ["measure"]
