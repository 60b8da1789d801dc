"""Any two versions are compared: a decision's history, requirements and what they invalidate, scores, plans."""

from __future__ import annotations

import pytest

from planner.errors import InputError, UnknownName
from services.cases import save_requirements
from services.decisions import comment
from services.diffs import (
    adr_against,
    adr_diff,
    adr_versions,
    newest_two,
    plan_diff,
    plan_versions,
    requirements_diff,
    requirements_versions,
    score_diff,
    score_versions,
)
from services.plans import draft_plan, save_plan
from services.workspace import Workspace
from tests.services.made import CASE, accepted, decide, superseding


def rows(diff) -> dict[str, tuple[str | None, str | None]]:
    return {r.where: (r.before, r.after) for r in diff.rows}


def change(ws: Workspace, **fields: object) -> None:
    """Another version of Nortia's requirements."""
    last = ws.store.cases.current_requirements(ws.store.cases.get(CASE).id)
    assert last is not None
    save_requirements(ws, last.case, last.requirements().model_copy(update=fields), "Lee", last.n)


def test_a_draft_has_one_version_and_nothing_to_compare_it_with(shipped: Workspace) -> None:
    draft = shipped.store.adrs.all()[0]
    (only,) = adr_versions(shipped, draft.id)
    assert only.label == "draft" and newest_two([only]) is None
    assert adr_diff(shipped, draft.id, "1", "1").rows == ()


def test_two_points_of_a_history_say_what_acceptance_added(shipped: Workspace) -> None:
    adr = accepted(shipped)
    comment(shipped, adr.id, "Kim", "Seen in the weekly meeting.")
    assert [v.label for v in adr_versions(shipped, adr.id)] == ["1 created", "2 proposed", "3 accepted", "4 comment"]
    found = rows(adr_diff(shipped, adr.id, "2", "3"))
    assert found["status"] == ("proposed", "accepted")
    assert found["number"] == (None, "1")
    assert found["accepted by"] == (None, "Sato")
    assert found["decided on › plan"] == (None, plan_versions(shipped, CASE)[-1].key)
    assert found["decided on › requirements"] == (None, "version 1")
    assert found["decided on › score"][0] is None
    (said,) = adr_diff(shipped, adr.id, "3", "4").rows
    assert said.where == "comments" and said.after is not None and "Seen in the weekly meeting." in said.after
    with pytest.raises(UnknownName, match="5"):
        adr_diff(shipped, adr.id, "1", "5")


def test_a_successor_is_compared_with_what_it_supersedes(shipped: Workspace) -> None:
    old = accepted(shipped)
    found = rows(adr_against(shipped, superseding(shipped, old), old.id))
    assert found["title"] == (old.title, f"Revisit: {old.title}")
    assert "status" not in found and "supersedes" not in found


def test_another_decision_is_called_by_its_name(shipped: Workspace) -> None:
    old = accepted(shipped)
    decide(shipped, superseding(shipped, old))
    found = rows(adr_diff(shipped, old.id, "3", "4"))
    assert found == {"status": ("accepted", "superseded"), "superseded by": (None, "ADR-0002")}


def test_requirements_say_what_a_change_of_them_leaves_behind(shipped: Workspace) -> None:
    adr = accepted(shipped)
    plan = plan_versions(shipped, CASE)[-1].key
    change(shipped, ttft_s=3.0, shared_prefix_share=0.9)
    assert [v.label for v in requirements_versions(shipped, CASE)] == ["version 1", "version 2"]
    diff = requirements_diff(shipped, CASE, "1", "2")
    assert rows(diff)["first token within (s)"] == ("2", "3")
    assert rows(diff)["shared prefix share"][1] == "0.9"
    said = "\n".join(diff.follows)
    assert f"The plan {plan} was made for version 1" in said
    assert f"{adr.name} was decided on version 1." in said
    assert "Requests that fit at once stays" in said  # neither the first token nor the prefix takes memory
    assert "The score changes" in said
    assert requirements_diff(shipped, CASE, "2", "2").follows == ()


def test_a_longer_context_takes_room_from_requests(shipped: Workspace) -> None:
    change(shipped, context_tokens=8192)
    said = requirements_diff(shipped, CASE, "1", "2").follows
    assert any(s.startswith("Requests that fit at once changes: ") for s in said)


def test_scores_under_two_versions_differ_in_weight_and_in_what_each_criterion_adds(shipped: Workspace) -> None:
    change(shipped, shared_prefix_share=0.9)
    found = rows(score_diff(shipped, CASE, "1", "2"))
    before, after = found["weight › prefix reuse"]
    assert before is not None and after is not None and float(after) > float(before)
    assert "contribution › SGLang › prefix reuse" in found
    assert score_diff(shipped, CASE, "2", "today").rows == ()


def test_a_score_as_decided_is_compared_with_the_one_of_today(shipped: Workspace) -> None:
    adr = accepted(shipped)
    assert score_versions(shipped, CASE)[0].label == f"{adr.name}, as decided"
    assert score_diff(shipped, CASE, adr.name, "today").rows == ()
    change(shipped, lora=True)
    found = rows(score_diff(shipped, CASE, adr.name, "today"))
    assert float(found["weight › LoRA"][1] or 0) > float(found["weight › LoRA"][0] or 0)


def test_two_plans_differ_in_points_hypotheses_contract_and_what_they_were_made_for(shipped: Workspace) -> None:
    case = shipped.store.cases.get(CASE).id
    stored = shipped.store.plans.of_case(case)[-1].plan()
    change(shipped, user_tok_s_promise=22.0)
    r = shipped.store.cases.current_requirements(case)
    assert r is not None
    drafted = draft_plan(shipped, CASE, r.requirements()).plan
    contract = {**drafted.shared_contract, "model_revision": "ad44e777"}
    save_plan(shipped, case, drafted.model_copy(update={"shared_contract": contract}), "Lee")
    before, after = newest_two(plan_versions(shipped, CASE)) or ("", "")
    found = rows(plan_diff(shipped, CASE, before, after))
    assert found["made for requirements"] == ("version 1", "version 2")
    assert found["contract › model_revision"] == (None, "ad44e777")
    levels = found["service levels"]
    assert levels[0] is not None and levels[1] is not None
    assert "user_tok_s p5 >= 20 tok/s" in levels[0] and "user_tok_s p5 >= 22 tok/s" in levels[1]
    assert any(w.startswith("hypotheses › H3 › ") for w in found)
    assert stored.sha256() == shipped.store.plans.of_case(case)[0].sha256
    assert rows(plan_diff(shipped, CASE, before[:6], after)) == found  # the beginning of a hash is enough


@pytest.mark.parametrize(("compare", "key"), [(requirements_diff, "7"), (score_diff, "ADR-0009"), (plan_diff, "abcd")])
def test_a_version_that_is_not_there_is_named_with_those_that_are(shipped: Workspace, compare, key: str) -> None:
    with pytest.raises(UnknownName, match=key):
        compare(shipped, CASE, key, key)


def test_a_score_that_an_older_flipline_stored_is_one_sentence(shipped: Workspace, monkeypatch) -> None:
    adr = accepted(shipped)
    monkeypatch.setattr(shipped.store.snapshots, "get", lambda sha256: b'{"rules_version": 0}')
    with pytest.raises(InputError, match=r"ADR-0001.*cannot read"):
        score_diff(shipped, CASE, adr.name, "today")
