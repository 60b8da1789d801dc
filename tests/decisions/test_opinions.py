"""Approvals and objections by name: what blocks, who may take back, and what an amended text does to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from decisions.edits import Amended, edit_from_json, edit_to_json
from decisions.lint import definition_of_done
from decisions.madr_own import own_fields
from decisions.madr_reader import read_madr
from decisions.markdown import to_markdown
from decisions.opinions import Approved, Objected, ObjectionAnswered, OpinionWithdrawn
from decisions.record import AdrText
from decisions.view import current, propose
from planner.errors import NotAllowed
from tests.decisions.made import NOW, context, nortia, text

PROPOSED = propose(nortia(), at=NOW, author="Tanaka")
LATER = NOW + timedelta(hours=1)
OBJECTION = Objected(at=LATER, author="Lee", reason="two releases a month are too many for us")


def done(adr) -> dict[str, bool]:
    return {c.id: c.done for c in definition_of_done(adr, (), context())}


def test_an_objection_blocks_until_it_is_answered_and_stays_readable():
    objected = current([*PROPOSED, OBJECTION])
    assert not done(objected)["objections"]
    answer = ObjectionAnswered(at=LATER, author="Sato", objector="Lee", reason="one a quarter is enough")
    adr = current([*PROPOSED, OBJECTION, answer])
    assert done(adr)["objections"]
    (opinion,) = adr.opinions
    assert (opinion.reason, opinion.answer, opinion.answered_by) == (
        "two releases a month are too many for us", "one a quarter is enough", "Sato",
    )  # fmt: skip


def test_who_objected_takes_it_back_and_nobody_else():
    with pytest.raises(NotAllowed, match="Kim neither approved nor objected"):
        current([*PROPOSED, OBJECTION, OpinionWithdrawn(at=LATER, author="Kim")])
    assert current([*PROPOSED, OBJECTION, OpinionWithdrawn(at=LATER, author="Lee")]).opinions == ()


def test_a_later_opinion_replaces_the_one_before():
    adr = current([*PROPOSED, OBJECTION, Approved(at=LATER, author="Lee")])
    assert [(o.author, o.stance) for o in adr.opinions] == [("Lee", "approves")]


def test_an_approval_was_of_the_text_before_the_amendment():
    amended = Amended(at=LATER, author="Sato", text=text().model_copy(update={"title": "vLLM first"}))
    adr = current([*PROPOSED, Approved(at=LATER, author="Kim"), OBJECTION, amended])
    assert [(o.author, o.outdated) for o in adr.opinions] == [("Kim", True), ("Lee", False)]
    assert not done(adr)["objections"]


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (Objected(at=LATER, author="Lee"), "cannot be objected to without a reason"),
        (ObjectionAnswered(at=LATER, author="Sato", objector="Lee", reason="x"), "Lee has no objection that waits"),
    ],
)
def test_what_is_no_opinion_is_refused(edit, sentence):
    with pytest.raises(NotAllowed, match=sentence):
        current([*PROPOSED, edit])


def test_they_read_back_as_they_were_written():
    assert edit_from_json(edit_to_json(OBJECTION)) == OBJECTION


@pytest.mark.parametrize("language", ["en", "ja"])
def test_they_stand_in_the_exported_file_and_do_not_change_the_text_that_is_read_back(language):
    answer = ObjectionAnswered(at=LATER, author="Sato", objector="Lee", reason="one a quarter\n# is enough")
    adr = current([*PROPOSED, Approved(at=LATER, author="*Kim*"), OBJECTION, answer])
    written = to_markdown(adr, language=language)
    why = "two releases a month are too many for us"
    said = {
        "en": f"* Lee, 2026-09-01, objects: {why} (Sato answers: one a quarter # is enough)",
        "ja": f"* Lee, 2026-09-01, 異議: {why} (Sato の回答: one a quarter # is enough)",
    }
    assert said[language] in written.replace("\\", "")
    assert r"\*Kim\*" in written
    assert AdrText.model_validate(own_fields(read_madr(written))) == adr.text
