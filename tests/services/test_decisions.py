"""A decision from its draft to its successor, by several people."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bundle.manifest import BUNDLE_SCHEMA
from db.cases import Case
from db.ids import new_id
from db.migrations import MIGRATIONS
from decisions.flip_condition import FlipCondition
from decisions.record import People, Status, draft
from planner.catalog_rows import CATALOG_SCHEMA
from planner.conditions import STANDING
from planner.errors import ConflictError, InputError, NotAllowed
from planner.frozen import sha256_of
from planner.plan_file import PLAN_SCHEMA
from planner.weighting import RULES_VERSION
from services.adr_form import flip_from, flip_rows, flips_from, text_from
from services.arrivals import bring_in, bring_in_usage
from services.cases import begin_case
from services.decisions import (
    accept,
    answer_fire,
    begin_draft,
    checklist,
    comment,
    findings,
    merge_with_stored,
    open_adr,
    preview,
    propose_draft,
    reject,
    save,
)
from services.verdicts import case_state
from services.workspace import VERSION, now
from tests.services.made import CASE, accepted, asking, days, decide, measured, superseding, with_plan


@pytest.fixture
def opened(shipped):
    return open_adr(shipped, shipped.store.adrs.all()[0].id)


def proposed(ws, opened, by="Sato"):
    text = opened.adr.text.model_copy(update={"people": People(decided=(by,))})
    return propose_draft(ws, opened.adr.id, save(ws, opened, text, by).version, "Tanaka")


def test_the_draft_is_prefilled_from_the_case(opened):
    adr = opened.adr
    assert adr.headline == "How many users get the promise on one unit is not measured; you need 20 to 50."
    assert adr.chosen == "vLLM"
    assert {o.title for o in adr.options} >= {"vLLM", "Ollama", "SGLang"}
    assert [c.id for c in adr.conditions] == [
        "engine-does-not-start", "few-users", "shared-prefix-dominates", "format-not-supported",
    ]  # fmt: skip
    assert [e.kind for e in adr.evidence] == ["imported"]


def test_only_the_people_are_missing_from_the_shipped_draft(shipped, opened):
    assert [c.id for c in checklist(shipped, opened.adr) if not c.done] == ["people"]
    assert findings(shipped, opened.adr) == ()


def test_acceptance_waits_for_the_checklist(shipped, opened):
    propose_draft(shipped, opened.adr.id, opened.version, "Tanaka")
    with pytest.raises(NotAllowed, match=r"Those who decide are named \(nobody yet\)"):
        accept(shipped, opened.adr.id, "Sato")
    assert shipped.store.adrs.get(opened.adr.id).status is Status.PROPOSED


def test_acceptance_waits_for_conditions_without_a_lint_error(shipped, opened):
    nobodys = FlipCondition.from_line("few-users", "peak_in_flight max <= 5 over 28 days")
    text = opened.adr.text.model_copy(update={"people": People(decided=("Sato",)), "conditions": (nobodys,)})
    saved = save(shipped, opened, text, "Sato")
    assert ("FL009", "error") in [(f.rule, f.severity) for f in findings(shipped, saved.adr)]
    propose_draft(shipped, saved.adr.id, saved.version, "Sato")
    with pytest.raises(NotAllowed, match="not everything is done: Flip conditions are there and free of errors: "):
        accept(shipped, saved.adr.id, "Sato")
    assert shipped.store.adrs.get(saved.adr.id).status is Status.PROPOSED


def test_a_proposal_can_still_be_amended_until_it_is_decided(shipped, opened):
    propose_draft(shipped, opened.adr.id, opened.version, "Tanaka")
    again = open_adr(shipped, opened.adr.id)
    saved = save(shipped, again, again.adr.text.model_copy(update={"people": People(decided=("Sato",))}), "Sato")
    assert saved.version == again.version + 1
    assert save(shipped, saved, saved.adr.text, "Sato") == saved  # nothing changed, nothing written
    assert accept(shipped, opened.adr.id, "Sato", seen=saved.version).number == 1


def test_who_saves_second_loses_nothing_and_hears_who_was_first(shipped, opened):
    mine = opened.adr.text.model_copy(update={"title": "Mine"})
    save(shipped, opened, opened.adr.text.model_copy(update={"title": "Theirs"}), "Lee")
    with pytest.raises(ConflictError, match="Lee saved the draft"):
        save(shipped, opened, mine, "Kim")
    found = merge_with_stored(shipped, opened, mine)
    assert (found.by, found.stored.adr.title) == ("Lee", "Theirs")
    assert [(c.field, c.mine, c.theirs) for c in found.merged.clashes] == [("title", "Mine", "Theirs")]
    assert save(shipped, found.stored, found.merged.text, "Kim").adr.title == "Mine"


def test_what_two_people_changed_in_different_places_is_saved_by_both(shipped, opened):
    save(shipped, opened, opened.adr.text.model_copy(update={"title": "Theirs"}), "Lee")
    found = merge_with_stored(shipped, opened, opened.adr.text.model_copy(update={"headline": "Mine"}))
    assert (found.merged.clashes, found.merged.taken) == ((), ("title",))
    saved = save(shipped, found.stored, found.merged.text, "Kim").adr
    assert (saved.title, saved.headline) == ("Theirs", "Mine")


def test_a_proposal_is_merged_too(shipped, opened):
    propose_draft(shipped, opened.adr.id, opened.version, "Tanaka")
    mine = open_adr(shipped, opened.adr.id)
    save(shipped, mine, mine.adr.text.model_copy(update={"title": "Theirs"}), "Lee")
    with pytest.raises(ConflictError, match="Lee added 'amended'"):
        save(shipped, mine, mine.adr.text.model_copy(update={"headline": "Mine"}), "Kim")
    found = merge_with_stored(shipped, mine, mine.adr.text.model_copy(update={"headline": "Mine"}))
    saved = save(shipped, found.stored, found.merged.text, "Kim").adr
    assert (found.by, saved.title, saved.headline) == ("Lee", "Theirs", "Mine")


def test_an_amendment_while_a_proposal_is_opened_is_a_conflict_and_is_not_lost(shipped, opened, monkeypatch):
    id = opened.adr.id
    propose_draft(shipped, id, opened.version, "Tanaka")
    read = shipped.store.adrs.get

    def and_then_lee_saves(adr_id):
        adr = read(adr_id)
        monkeypatch.undo()
        save(shipped, open_adr(shipped, id), adr.text.model_copy(update={"title": "Theirs"}), "Lee")
        return adr

    monkeypatch.setattr(shipped.store.adrs, "get", and_then_lee_saves)
    mine = open_adr(shipped, id)
    with pytest.raises(ConflictError, match="Lee added 'amended'"):
        save(shipped, mine, mine.adr.text.model_copy(update={"headline": "Mine"}), "Kim")


def test_two_people_accept_the_same_decision(shipped, opened):
    adr = proposed(shipped, opened)
    seen = len(shipped.store.adrs.edits(adr.id))
    first = accept(shipped, adr.id, "Sato", seen=seen)
    entries = shipped.store.adrs.entries(adr.id)
    with pytest.raises(ConflictError, match=r"Sato accepted it on \d{4}-"):
        accept(shipped, adr.id, "Lee", seen=seen)
    assert shipped.store.adrs.entries(adr.id) == entries
    assert shipped.store.adrs.get(adr.id).accepted_by == first.accepted_by == "Sato"


def test_what_it_was_decided_on_is_kept_byte_for_byte(shipped):
    adr = accepted(shipped)
    state = case_state(shipped, CASE)
    kept = {s.kind: shipped.store.snapshots.get(s.sha256) for s in adr.snapshots}
    assert set(kept) == {"requirements", "score", "plan", "evidence", "contracts", "verdicts", "catalogue", "made_with"}
    assert kept["plan"] == state.stored_plan.body
    assert kept["requirements"] == state.version.body
    rows = shipped.store.evidence.stored(state.case.id, kinds=STANDING)
    # the bytes as they are stored, then what is not: figures counted again, facts of the catalogue
    assert kept["evidence"].startswith(("[" + ",".join(r.body for r in rows)).encode())


def test_it_is_kept_what_the_decision_was_made_with(shipped):
    adr = accepted(shipped)
    ref = next(s for s in adr.snapshots if s.kind == "made_with")
    made_with = json.loads(shipped.store.snapshots.get(ref.sha256))
    assert made_with["schemas"] == {
        "database": MIGRATIONS[-1].__name__, "plan": PLAN_SCHEMA, "bundle": BUNDLE_SCHEMA, "catalogue": CATALOG_SCHEMA,
    }  # fmt: skip
    assert made_with["rules_version"] == RULES_VERSION
    assert made_with["code_version"] == VERSION
    other = shipped.catalog.model_copy(update={"gpus": {}})
    assert made_with["catalogue_sha256"] == sha256_of(shipped.catalog.model_dump(mode="json"))
    assert made_with["catalogue_sha256"] != sha256_of(other.model_dump(mode="json"))


def test_a_reference_names_the_stored_figure_though_more_was_counted_since(shipped, tmp_path):
    case = with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    with_plan(shipped, asking("vllm: ttft p95 <= 3 s at parallel-2"))  # nobody had counted beyond 3 s
    (ref,) = begin_draft(shipped, CASE, "Kim").adr.evidence
    stored = {s.evidence.id: s for s in shipped.store.evidence.stored(case)}
    assert ref.sha256 == stored[ref.id].sha256
    assert ref.run == stored[ref.id].run_sha256


@pytest.mark.parametrize("blank", ["", "  "])
def test_nobody_signs_nothing(shipped, opened, blank):
    adr = proposed(shipped, opened)
    entries = shipped.store.adrs.entries(adr.id)
    for act in (
        lambda: accept(shipped, adr.id, blank), lambda: reject(shipped, adr.id, blank, "no"),
        lambda: comment(shipped, adr.id, blank, "seen"), lambda: begin_draft(shipped, CASE, blank),
    ):  # fmt: skip
        with pytest.raises(InputError, match="nobody is named"):
            act()
    assert shipped.store.adrs.entries(adr.id) == entries


def test_a_rejection_needs_a_reason(shipped, opened):
    adr = proposed(shipped, opened)
    with pytest.raises(NotAllowed, match="without a reason"):
        reject(shipped, adr.id, "Sato", "")
    assert reject(shipped, adr.id, "Sato", "the machine is not bought").status is Status.REJECTED


def test_an_empty_comment_is_refused(shipped):
    adr = accepted(shipped)
    with pytest.raises(InputError, match="comment: is empty"):
        comment(shipped, adr.id, "Kim", " ")
    assert comment(shipped, adr.id, "Kim", "seen").comments[0].text == "seen"


def test_one_successor_at_a_time(shipped):
    old = accepted(shipped)
    first = superseding(shipped, old)
    with pytest.raises(NotAllowed, match="ADR-0001: a draft that would supersede it is under way: Revisit: vLLM"):
        superseding(shipped, old)
    propose_draft(shipped, first, open_adr(shipped, first).version, "Kim")
    with pytest.raises(NotAllowed, match=r"a proposal that would supersede it is under way.*Accept or reject that one"):
        superseding(shipped, old)
    proposal = open_adr(shipped, first)
    decided = proposal.adr.text.model_copy(update={"people": People(decided=("Sato",))})
    save(shipped, proposal, decided, "Kim")
    accept(shipped, first, "Sato")
    with pytest.raises(NotAllowed, match="ADR-0001: is superseded and cannot be superseded"):
        superseding(shipped, old)


def test_what_was_not_decided_has_no_successor(shipped, opened):
    with pytest.raises(NotAllowed, match="is draft and cannot be superseded"):
        superseding(shipped, opened.adr)
    other = begin_case(shipped, "Other", case_state(shipped, CASE).requirements, "Lee")
    old = accepted(shipped)
    with pytest.raises(NotAllowed, match="belongs to another case"):
        begin_draft(shipped, other.id, "Lee", supersedes=old.id)


def test_the_successor_can_be_accepted_though_its_predecessor_fired(shipped):
    old = accepted(shipped)
    bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
    successor = answer_fire(shipped, old.id, "few-users", "Sato", "few users", reopen=True)
    assert [c.id for c in successor.conditions if c.retired] == ["few-users"]
    assert "carried over as retired, since it would fire again at once: few-users." in successor.context
    assert [c.id for c in checklist(shipped, successor) if not c.done] == ["people"]
    assert decide(shipped, successor.id).number == 2


def test_what_is_revisited_twice_is_called_so_once(shipped):
    first = superseding(shipped, accepted(shipped))
    decide(shipped, first)
    second = shipped.store.adrs.get(superseding(shipped, shipped.store.adrs.get(first)))
    assert second.title == shipped.store.adrs.get(first).title
    assert second.title.count("Revisit: ") == 1


def test_a_second_fired_condition_is_answered_by_the_successor_that_is_under_way(shipped):
    old = accepted(shipped)
    bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
    under_way = superseding(shipped, old)
    assert answer_fire(shipped, old.id, "few-users", "Sato", "few users", reopen=True).id == under_way
    assert shipped.store.adrs.edits(old.id)[-1].successor == under_way


def test_a_condition_shows_its_verdict_before_it_is_added(shipped, opened):
    state = case_state(shipped, CASE)
    fields = {"manual": False, "fires_when": "fails", "owner": "Kim", "recheck_on": None, "action": "reopen",
              "consequence": ""}  # fmt: skip
    # imported: TTFT p95 at peak of 8,131 ms
    near = flip_from("slow", "vllm: ttft p95 <= 9 s at peak near 10 % -> add a unit", **fields)
    seen = preview(shipped, state, opened.adr, near)
    assert seen.state == "near"
    assert seen.distance == pytest.approx(9000 - 8130.8587, abs=0.001)
    assert near.consequence == "add a unit"
    assert (
        preview(shipped, state, opened.adr, flip_from("slow", "vllm: ttft p95 <= 2 s at peak", **fields)).state
        == "fired"
    )
    by_hand = flip_from("licence", "The licence changes", **(fields | {"manual": True}))
    assert preview(shipped, state, opened.adr, by_hand).state == "unmeasurable"


def test_a_faulty_condition_is_named_by_its_id(opened):
    rows = flip_rows(opened.adr.conditions)
    rows[1]["line"] = "peak_in_flight max 5"
    with pytest.raises(InputError, match="flip condition 'few-users': no comparison"):
        flips_from(opened.adr.conditions, rows)


def test_the_table_of_conditions_reads_back_as_it_was(opened):
    assert flips_from(opened.adr.conditions, flip_rows(opened.adr.conditions)) == opened.adr.conditions


def test_what_is_typed_becomes_the_text(opened):
    text = text_from(
        opened.adr, {"title": "vLLM it is"}, good="- one server for all\n\nknown", neutral="", bad="",
        decided="Sato, Kim,", consulted="", informed="", conditions=opened.adr.conditions,
    )  # fmt: skip
    assert text.title == "vLLM it is"
    assert text.consequences.good == ("one server for all", "known")
    assert text.people.decided == ("Sato", "Kim")
    with pytest.raises(InputError, match="decision: title"):
        text_from(opened.adr, {"title": ""}, good="", neutral="", bad="", decided="", consulted="", informed="",
                  conditions=())  # fmt: skip


def test_a_case_without_requirements_gets_no_draft(ws):
    ws.store.cases.add(Case(id=new_id(now()), slug="bare", title="Bare", created_at=now(), created_by="Kim"))
    with pytest.raises(NotAllowed, match="requirements are not written"):
        begin_draft(ws, "bare", "Kim")


def test_a_review_date_in_the_past_blocks_acceptance(shipped, opened):
    yesterday = (now() - timedelta(days=1)).date()
    late = draft(opened.adr.id, opened.adr.case, opened.adr.text.model_copy(update={"review_on": yesterday}))
    assert "review" in [c.id for c in checklist(shipped, late) if not c.done]
