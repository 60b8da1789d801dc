"""What evidence is held against: the version asked for, the plan that was decided on, what runs in production."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.errors import InputError, UnknownName
from services.adr_form import flip_from
from services.arrivals import bring_in
from services.decisions import flips, open_adr, save
from services.deployments import deploy
from services.plans import save_plan
from services.verdicts import candidate_of, case_state, judge_hypotheses
from services.workspace import now
from tests.services.made import CASE, accepted, asking, measured, with_plan

SLOW = "vllm: ttft p95 <= 2 s at parallel-2"  # every first token of these bundles comes after 200 ms


def today(ws):
    return judge_hypotheses(case_state(ws, CASE))[0].verdict


@pytest.mark.parametrize(
    ("asked", "reported", "state"),
    [
        ("0.33.0", "0.33.0", "holds"),
        ("0.33.0", "v0.34.1+cpu", "holds"),  # a minor release is tolerated unless the line says otherwise
        ("0.33.0", "", "holds"),  # a server that reports none is not another one
        ("0.33.0", "unknown", "holds"),
        ("0.33.0", "1.0.0", "expired"),
        ("b11434", "b11434-a1b2c3d", "holds"),
        ("b11434", "b9832-a1b2c3d", "expired"),
    ],
)
def test_the_version_that_really_ran_is_held_against_the_one_asked_for(shipped, tmp_path, asked, reported, state):
    with_plan(shipped, asking(SLOW, version=asked))
    bring_in(shipped, CASE, measured(tmp_path / "a", asked=asked, reported=reported), "Lee")
    assert today(shipped).state == state
    if state == "expired":
        assert f"engine_version_reported: {asked} -> {reported}" in today(shipped).sentence


@pytest.fixture
def decided(shipped, tmp_path):
    """Accepted on 0.33.0, with a condition about the first token that was measured there."""
    with_plan(shipped, asking(SLOW, version="0.33.0"))
    bring_in(shipped, CASE, measured(tmp_path / "a", asked="0.33.0", reported="0.33.0"), "Lee")
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all() if a.status == "draft"))
    slow = flip_from("slow", SLOW, manual=False, fires_when="fails", owner="Lee", action="reopen", consequence="",
                     recheck_on=(now() + timedelta(days=90)).date())  # fmt: skip
    save(shipped, opened, opened.adr.text.model_copy(update={"conditions": (*opened.adr.conditions, slow)}), "Lee")
    return accepted(shipped)


def state_of(ws, adr):
    return next(v.state for v in flips(ws, ws.store.adrs.get(adr.id)) if v.condition == "slow")


def test_a_later_plan_changes_nothing_about_what_was_decided(shipped, decided):
    assert state_of(shipped, decided) == "armed"
    save_plan(shipped, decided.case, asking(SLOW, version="1.0.0"), "Lee")
    assert state_of(shipped, decided) == "armed"
    assert today(shipped).state == "expired"  # the new plan asks for what nobody measured yet


def test_another_version_in_production_makes_the_evidence_expire(shipped, decided):
    day = now().date()
    deploy(shipped, CASE, candidate="vllm", since=day, engine_version="0.34.0", by="Kim", flags="--max-num-seqs 16")
    assert state_of(shipped, decided) == "armed"  # within the tolerance
    deploy(shipped, CASE, candidate="vllm", since=day, engine_version="1.0.0", by="Kim")
    assert state_of(shipped, decided) == "expired"
    stored = shipped.store.deployments.of_case(decided.case)
    assert [(d.engine, d.engine_version, d.by) for d in stored] == [("vllm", "0.34.0", "Kim"), ("vllm", "1.0.0", "Kim")]
    assert stored[0].flags == ("--max-num-seqs", "16")
    history = shipped.store.verdicts.history(decided.case, adr=decided.id)
    assert [j.state for j in history if j.condition == "slow"] == ["armed", "expired"]


def test_evidence_from_what_runs_now_is_current_again(shipped, decided, tmp_path):
    deploy(shipped, CASE, candidate="vllm", since=now().date(), engine_version="1.0.0", by="Kim")
    bring_in(shipped, CASE, measured(tmp_path / "b", start=2, asked="1.0.0", reported="1.0.0"), "Lee")
    assert state_of(shipped, decided) == "armed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": " "}, "nobody is named"),
        ({"engine_version": ""}, "the engine's version is missing"),
        ({"since": (now() + timedelta(days=2)).date()}, "lies ahead"),
        ({"candidate": "vlm"}, "unknown candidate 'vlm'.*Did you mean 'vllm'"),
    ],
)
def test_a_deployment_says_what_since_when_and_by_whom(shipped, decided, change, message):
    fields = {"candidate": "vllm", "since": now().date(), "engine_version": "1.0.0", "by": "Kim"}
    with pytest.raises((InputError, UnknownName), match=f"deployment: .*{message}"):
        deploy(shipped, CASE, **(fields | change))
    assert shipped.store.deployments.of_case(decided.case) == ()


def test_the_form_begins_with_what_was_chosen(shipped, decided):
    assert candidate_of(case_state(shipped, CASE), decided) == "vllm"
