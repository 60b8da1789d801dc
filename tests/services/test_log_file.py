"""The log as JSON: read by a schema validator that knows nothing of us, and whole again in an empty log."""

from __future__ import annotations

import json
import shutil

import pytest
from jsonschema import Draft202012Validator

from decisions import chain
from decisions.log_json import log_edits
from planner.errors import ConflictError, InputError, SchemaTooNew
from scripts import adr_log_schema
from services.cases import begin_case
from services.decisions import begin_draft, comment
from services.log_file import export_log, import_log
from services.verdicts import case_state
from services.workspace import now
from tests.services.conftest import opened
from tests.services.made import CASE, accepted, decide, superseding


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "empty").mkdir()
    workspace = opened(tmp_path / "empty")
    yield workspace
    workspace.store.close()


@pytest.fixture(scope="module")
def with_a_log(with_nortia, tmp_path_factory):
    """The folder of a workspace with a decision, one that supersedes it and a draft: to be copied, never opened."""
    folder = shutil.copytree(with_nortia, tmp_path_factory.mktemp("log") / "copy")
    ws = opened(folder)
    old = accepted(ws)
    comment(ws, old.id, "Kim", '推 <b>&amp;</b> \u2028 "quoted" `code`')
    decide(ws, superseding(ws, old))
    begin_draft(ws, CASE, "Kim")
    ws.store.close()
    return folder


@pytest.fixture
def filled(with_a_log, tmp_path):
    ws = opened(shutil.copytree(with_a_log, tmp_path / "filled"))
    yield ws
    ws.store.close()


def test_the_document_follows_the_published_schema(filled):
    published = json.loads(adr_log_schema.FILE.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(published)
    assert list(Draft202012Validator(published).iter_errors(json.loads(export_log(filled)))) == []


def test_the_published_schema_is_current():
    assert adr_log_schema.FILE.read_text(encoding="utf-8") == adr_log_schema.text()


def test_a_log_comes_into_an_empty_one_and_out_again_letter_by_letter(filled, empty):
    text = export_log(filled)
    assert export_log(filled) == text
    done = import_log(empty, text, "Lee")
    assert len(done.new) == 3
    assert empty.store.adrs.heads() == filled.store.adrs.heads()
    assert empty.store.adrs.verify(filled.store.adrs.heads()) == ()
    assert {a.id: a for a in empty.store.adrs.all()} == {a.id: a for a in filled.store.adrs.all()}
    assert export_log(empty) == text
    assert import_log(empty, text, "Lee").new == ()


def test_a_case_whose_short_name_is_taken_here_comes_under_the_next_one(filled, empty):
    here = case_state(filled, CASE)
    begin_case(empty, "Ours", here.requirements, "Lee", slug=CASE)
    done = import_log(empty, export_log(filled), "Lee")
    assert done.renamed == (f"{here.case.title}: came as nortia-2, since another case here is called nortia.",)
    assert {c.slug: c.title for c in empty.store.cases.all()} == {"nortia": "Ours", "nortia-2": here.case.title}
    assert empty.store.adrs.verify(filled.store.adrs.heads()) == ()


def test_a_shorter_record_of_the_same_log_is_known_and_another_way_is_a_conflict(filled, empty):
    text = export_log(filled)
    import_log(empty, text, "Lee")
    adr = filled.store.adrs.all()[0]
    comment(empty, adr.id, "Lee", "one way")
    assert import_log(empty, text, "Lee").new == ()  # what is here goes on from what comes
    comment(filled, adr.id, "Lee", "another way")
    with pytest.raises(ConflictError, match="went another way here than in the file"):
        import_log(empty, export_log(filled), "Lee")


def test_a_record_goes_on_from_its_draft_and_never_back_to_it(filled, empty):
    import_log(empty, export_log(filled), "Lee")
    before = export_log(filled)
    draft = next(a for a in filled.store.adrs.all() if a.status == "draft")
    filled.store.adrs.propose(draft.id, version=1, at=now(), author="Kim")
    assert draft.name in import_log(filled, before, "Lee").there  # the draft of then became this record
    with pytest.raises(ConflictError, match="went another way here than in the file"):
        import_log(empty, export_log(filled), "Lee")  # a draft here does not pass for the record that comes


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda d: d["snapshots"][0].update(text=None, base64="a"), "was changed after it was written"),
        (lambda d: d["snapshots"][0].update(text="\ud800"), "was changed after it was written"),
        (lambda d: d["adrs"][0]["edits"][0]["edit"].update(author="Eve"), "edit 1: was changed after it was written"),
        (lambda d: d["adrs"][0]["edits"].pop(1), "edit 2: is missing or out of order"),
        (lambda d: d["adrs"][0]["edits"].pop(), "ends before its head"),
        (lambda d: d["snapshots"][0].update(text="{}"), "was changed after it was written"),
        (lambda d: d.update(flipline_log=2), "is a log of schema 2"),
        (lambda d: d.update(flipline_log="x"), "is no log of Flipline"),
        (lambda d: d["adrs"][0].pop("id"), "id"),
        (lambda d: d["cases"][0].update(id="../../../elsewhere"), "cases.0.id: string should match pattern"),
        (lambda d: d["cases"][0].update(slug="../x"), "cases.0.slug: string should match pattern"),
        (lambda d: d["cases"][0].update(title="\ud800"), "cases.0.title: input should be a valid string"),
        (lambda d: d["cases"][0].update(title="x" * 201), "cases.0.title: string should have at most 200 characters"),
        (lambda d: d["cases"][0].update(created_at="0001-01-01T00:00:00+14:00"), "has no UTC"),
    ],
)
def test_a_document_that_was_changed_is_refused_whole(filled, empty, spoil, says):
    data = json.loads(export_log(filled))
    spoil(data)
    with pytest.raises((InputError, SchemaTooNew), match=says):
        import_log(empty, json.dumps(data), "Lee")
    assert empty.store.adrs.all() == ()


def test_a_body_whose_hash_the_document_could_not_give_again_is_refused():
    spaced = chain.link("01J0", '{"b": 1}')  # canonical JSON has no blanks
    with pytest.raises(InputError, match="01J0, edit 1: is not in canonical form"):
        log_edits((spaced,))


def test_what_is_no_json_is_named_with_its_line(empty):
    with pytest.raises(InputError, match=r"log, line 2: is no JSON"):
        import_log(empty, "{\n,}", "Lee")
