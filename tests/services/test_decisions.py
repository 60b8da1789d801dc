"""A decision from its draft to its successor, by several people."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from db.cases import Case
from db.ids import new_id
from decisions.record import People, Status, draft
from planner.errors import ConflictError, InputError, NotAllowed
from services.adr_form import differences, flip_from, flip_rows, flips_from, text_from
from services.decisions import (
    accept,
    begin_draft,
    checklist,
    comment,
    export_all,
    export_markdown,
    findings,
    open_adr,
    preview,
    propose_draft,
    reject,
    save,
)
from services.verdicts import case_state
from services.workspace import now
from tests.services.made import CASE, accepted, decide, superseding


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
    theirs = open_adr(shipped, opened.adr.id)
    assert theirs.adr.title == "Theirs"
    assert differences(mine, theirs.adr.text) == (("title", "Theirs"),)
    assert save(shipped, theirs, mine, "Kim").adr.title == "Mine"


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
    assert set(kept) == {"requirements", "score", "plan", "evidence"}
    assert kept["plan"] == state.stored_plan.body
    assert kept["requirements"] == state.version.body


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


def test_two_successors_cannot_both_supersede(shipped):
    old = accepted(shipped)
    a, b = superseding(shipped, old), superseding(shipped, old)
    decide(shipped, a)
    with pytest.raises(NotAllowed, match="superseded"):
        decide(shipped, b)
    assert shipped.store.adrs.get(b).status is Status.PROPOSED


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


def test_export_writes_numbered_records_with_their_head(shipped, tmp_path):
    adr = accepted(shipped)
    begin_draft(shipped, CASE, "Kim")  # a draft has no number and stays at home
    (path,) = export_all(shipped, tmp_path / "decisions")
    assert path.name == "0001-vllm-serves-nortia-internal-assistant.md"
    text = path.read_text()
    assert text == export_markdown(shipped, adr.id)[1]
    assert yaml.safe_load(text.split("---")[1])["status"] == "accepted"
    assert shipped.store.adrs.head(adr.id) in text
    assert export_all(shipped, tmp_path / "decisions") == (path,)  # our own file is written anew


def test_a_file_that_is_not_ours_is_never_overwritten(shipped, tmp_path):
    accepted(shipped)
    mine = tmp_path / "0001-vllm-serves-nortia-internal-assistant.md"
    mine.write_text("my own notes")
    with pytest.raises(NotAllowed, match="was not written by Flipline"):
        export_all(shipped, tmp_path)
    assert mine.read_text() == "my own notes"


def test_a_case_without_requirements_gets_no_draft(ws):
    ws.store.cases.add(Case(id=new_id(now()), slug="bare", title="Bare", created_at=now(), created_by="Kim"))
    with pytest.raises(NotAllowed, match="requirements are not written"):
        begin_draft(ws, "bare", "Kim")


def test_a_review_date_in_the_past_blocks_acceptance(shipped, opened):
    yesterday = (now() - timedelta(days=1)).date()
    late = draft(opened.adr.id, opened.adr.case, opened.adr.text.model_copy(update={"review_on": yesterday}))
    assert "review" in [c.id for c in checklist(shipped, late) if not c.done]
