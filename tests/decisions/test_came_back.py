"""A hand-edited export: each edit of a reviewer becomes a typed edit, or is refused with the difference."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from decisions.came_back import came_back
from decisions.edits import Accepted, Amended, Commented, RecheckMoved, Superseded
from decisions.markdown import to_markdown
from decisions.record import AdrText
from decisions.view import apply, current, propose
from planner.errors import InputError
from tests.decisions.made import NOW, accepted_edits, nortia

ACCEPTED = current(accepted_edits())
PROPOSED = current(propose(nortia(), at=NOW, author="Tanaka"))
ROW = "| `vllm-b: error_share <= 1 % at peak` | fails | | | Kim | 2027-01-01 | stop |\n| `peak_in"


def back(base, old, new, now=None, language="en"):
    markdown = to_markdown(base, language=language)
    assert old in markdown
    return came_back(markdown.replace(old, new, 1), base, now or base, at=NOW, author="Kim", reason="as reviewed")


def changed(asked, of) -> dict:
    (amended,) = asked.edits
    return {n: getattr(amended.text, n) for n in AdrText.model_fields if getattr(amended.text, n) != getattr(of, n)}


@pytest.mark.parametrize("base", [ACCEPTED, PROPOSED], ids=["accepted", "proposed"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_untouched_file_asks_for_nothing_even_with_other_line_ends(base, language):
    assert back(base, "\n", "\n", language=language)[:2] == ((), ())
    crlf = to_markdown(base, language=language).replace("\n", "\r\n").rstrip()
    assert came_back(crlf, base, base, at=NOW, author="Kim")[:2] == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("# vLLM serves the internal assistant", "# vLLM serves *all*", "title", "vLLM serves *all*"),
        ("Today developers run", "Today some run", "context",
         "20 to 50 users at once ask an internal assistant.\n\nToday some run Ollama on their own PCs."),
        ("it batches, speaks the API and shows its metrics.", "it batches.", "outcome", "it batches."),
        ("2027-03-01", "2027-04-01", "review_on", date(2027, 4, 1)),
        ('consulted: ["Tanaka", "Lee"]\n', "", "people", None),
        ("* Good, because one server for all\n", "- Good, because one server\n  for all of us\n", "consequences", None),
        ("## More Information", "## Costs\n\nMuch.\n\n## More Information", "kept", None),
        ("| infrastructure | 2026-12-01 | keep", "| Kim | 2026-12-01 | keep", "conditions", None),
        ("  owner: infrastructure\n", "  owner: Kim\n", "conditions", None),
    ],
)  # fmt: skip
def test_a_proposal_is_amended(old, new, field, value):
    found = changed(back(PROPOSED, old, new), PROPOSED)
    assert set(found) == {field}
    assert value is None or found[field] == value


def test_an_option_is_added_by_its_line_in_the_list_alone_and_taken_out_everywhere():
    added = back(PROPOSED, "* Ollama\n\n", "* Ollama\n* llama.cpp\n\n")
    assert [o.title for o in changed(added, PROPOSED)["options"]] == ["vLLM", "Ollama", "llama.cpp"]
    half = back(PROPOSED, "* Ollama\n\n", "\n").refused[0]
    assert half.startswith("nothing takes these words where they stand: ")
    assert "Ollama" in half


def test_an_option_is_renamed_where_it_is_listed_where_it_is_weighed_and_where_its_candidate_stands():
    whole = to_markdown(PROPOSED)
    renamed = whole.replace("* Ollama\n", "* Ollama 0.6\n").replace("### Ollama\n", "### Ollama 0.6\n")
    kept = "candidates in the block name 'Ollama', which is no option any more"
    assert kept in came_back(renamed, PROPOSED, PROPOSED, at=NOW, author="Kim").refused[0]
    everywhere = renamed.replace("  Ollama: ollama-b", "  Ollama 0.6: ollama-b")
    asked = came_back(everywhere, PROPOSED, PROPOSED, at=NOW, author="Kim")
    assert changed(asked, PROPOSED)["options"][1].candidate == "ollama-b"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# vLLM serves", f"# {'x' * 301}", "title: string should have at most 300 characters"),
        ("* Ollama\n\n", "* vLLM\n* Ollama\n\n", "two options carry the title 'vLLM'"),
        (
            "| `peak_in",
            "| `vllm-b: started is true` | fails | | | Kim | | |\n| `peak_in",
            "two rows of the table say the same condition, engine-does-not-start",
        ),
    ],
)
def test_a_field_that_cannot_stand_is_named(old, new, says):
    with pytest.raises(InputError, match=says):
        back(PROPOSED, old, new)


def test_the_author_and_the_reason_stand_in_the_edit():
    (edit,) = back(PROPOSED, "Today developers run", "Today some run").edits
    assert (edit.author, edit.reason, edit.at) == ("Kim", "as reviewed", NOW)


def test_an_accepted_decision_takes_a_review_date_a_condition_and_comments():
    assert back(ACCEPTED, "2027-03-01", "2027-04-01").edits[0].review_on == date(2027, 4, 1)
    (added,) = back(ACCEPTED, "| `peak_in", ROW).edits
    assert added.kind == "condition_added"
    assert added.condition.in_words() == "vllm-b: error_share <= 0.01 at peak"
    few_users = next(x for x in to_markdown(ACCEPTED).split("\n") if x.startswith("| `peak_in"))
    (retired,) = back(ACCEPTED, f"{few_users}\n", "").edits
    assert (retired.kind, retired.condition, retired.reason) == ("condition_retired", "few-users", "as reviewed")
    said = back(ACCEPTED, "### For machines", "### Comments\n\n* I disagree.\n\nSo do\nI.\n\n### For machines").edits
    assert [(e.kind, e.text) for e in said] == [("comment", "I disagree."), ("comment", "So do I.")]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Today developers run", "Today some run", "context of an ADR that is accepted does not change"),
        ("Accepted by Sato", "Accepted by Kim", "nothing takes these words where they stand: Kim."),
        ("### For machines", "Words.\n\n### For machines", "nothing takes these words where they stand: Words."),
        ("To be reviewed by 2027-03-01.\n", "", "review_on of an ADR that is accepted does not change"),
        ('status: "accepted"', 'status: "rejected"', "status is 'rejected', and was 'accepted'"),
        ("| infrastructure |", "| Kim |", "engine-does-not-start does not change once accepted"),
        ("number: 7", "number: 8", "number in the block is 8, and was 7"),
        ("case: nortia", "case: other", "case in the block is 'other', and was 'nortia'"),
        ("Accepted by Sato on 2026-09-02.\n", "", "these words cannot be taken out: "),
        (
            "number: 7",
            "number: 7\nopinions: [{author: Kim}]",
            "opinions in the block is [{'author': 'Kim'}]",
        ),
        ("TTFT p95 2.8 s", "TTFT p95 1.8 s", "evidence cannot be changed by hand"),
        ("date: 2026", "x-team: a\ndate: 2026", "nothing takes these words where they stand: front matter x-team."),
        ("### Consequences", "> I doubt it.\n\n### Consequences", "where they stand: > I doubt it."),
        (
            "### What would change",
            "* Supersedes [ADR-0003: x](<0003-x.md>)\n\n### What would change",
            "where they stand: * Supersedes.",
        ),
        ("```yaml", "By hand.\n\n```yaml", "nothing takes these words where they stand: By hand."),
        (
            "### What would change",
            "![mine](<mine.svg>)\n\n### What would change",
            "where they stand: ![mine](<mine.svg>)",
        ),
    ],
)
def test_what_cannot_be_an_edit_is_refused_with_the_difference(old, new, says):
    asked = back(ACCEPTED, old, new)
    assert asked.edits == ()
    assert any(says in sentence for sentence in asked.refused), asked.refused
    assert asked.difference


def test_what_is_in_the_record_already_is_not_asked_for_again():
    said = "### Comments\n\n* I disagree.\n\n### For machines"
    (edit,) = back(ACCEPTED, "### For machines", said).edits
    assert back(ACCEPTED, "### For machines", said, now=apply(ACCEPTED, edit)).edits == ()
    (moved,) = back(ACCEPTED, "2027-03-01", "2027-04-01").edits
    assert back(ACCEPTED, "2027-03-01", "2027-04-01", now=apply(ACCEPTED, moved)).edits == ()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("* One line\n  of an editor that wraps.", ["One line of an editor that wraps."]),
        ("* One line.\\\n  Another.", ["One line.\nAnother."]),
        ("* One line.  \n  Another.\n* Yes.", ["One line.\nAnother.", "Yes."]),
        ("* No break \\\\\n  of a line.", ["No break \\ of a line."]),
        ("* One paragraph.\n\n  Another.\n\n* Yes.", ["One paragraph.\n\nAnother.", "Yes."]),
        ("* Two reasons:\n  - cost\n  - noise", ["Two reasons:\n- cost\n- noise"]),
        ("Out of any list.\nWrapped.\n\nAnd once more.", ["Out of any list. Wrapped.", "And once more."]),
    ],
)  # fmt: skip
def test_a_comment_by_hand_has_the_lines_that_markdown_gives_it(written, said):
    asked = back(ACCEPTED, "### For machines", f"### Comments\n\n{written}\n\n### For machines")
    assert ([e.text for e in asked.edits], asked.refused) == (said, ())


def test_comments_of_the_record_are_known_again_whatever_they_hold_and_none_is_changed_by_hand():
    said = ("Two  blanks and\nlines.\n\n- x", "a mark \u200f of direction", "+1")
    base = ACCEPTED
    for words in said:
        base = apply(base, Commented(at=NOW, author="Kim", text=words))
    line = r"* Kim, 2026-09-01: \+1"
    assert [e.text for e in back(base, line, f"{line}\n* No.").edits] == ["No."]
    for old, new in ((f"{line}\n", ""), ("blanks and", "tabs and"), (line, line.replace("2026", "2025"))):
        asked = back(base, old, new)
        assert asked.edits == ()
        assert "a comment stays as it was written: Kim, 2026-09-01: " in asked.refused[0]


def test_a_name_that_reads_like_the_beginning_of_a_comment_is_known_again():
    """Files of before 2026-11-30 keep no comments in their block."""
    base = apply(ACCEPTED, Commented(at=NOW, author="Kim, 2026-01-01: me", text="Yes."))
    asked = back(base, re.search(r"exact: .*\n", to_markdown(base))[0], "")
    assert (asked.edits, asked.refused) == ((), ())


def test_two_people_may_say_the_same():
    approved = apply(ACCEPTED, Commented(at=NOW, author="Lee", text="Yes."))
    line = "* Lee, 2026-09-01: Yes."
    (edit,) = back(approved, line, f"{line}\n* Yes.").edits
    assert (edit.author, edit.text) == ("Kim", "Yes.")
    assert back(approved, line, f"{line}\n* Yes.", now=apply(approved, edit)).edits == ()


def test_the_same_words_said_twice_are_two_comments():
    said = "### Comments\n\n* Yes.\n\n### For machines"
    once = apply(ACCEPTED, Commented(at=NOW, author="Kim", text="Yes."))
    assert back(ACCEPTED, "### For machines", said.replace("* Yes.", "* Yes.\n* Yes.")).edits[1].text == "Yes."
    twice = said.replace("* Yes.", "* Yes.\n* Yes.")
    assert [e.text for e in back(ACCEPTED, "### For machines", twice, now=once).edits] == ["Yes."]
    line = "Kim, 2026-09-01: Yes."
    assert [e.text for e in back(once, line, f"{line}\n* No.").edits] == ["No."]
    assert [e.text for e in back(once, line, f"{line}\n* {line}").edits] == ["Kim: Yes."]


def test_a_superseded_decision_is_still_commented_in_its_file():
    successor = nortia("01J0000000000000000NORTIA2").model_copy(update={"number": 8})
    old = apply(ACCEPTED, Superseded(at=NOW, author="Sato", by=successor.id))
    markdown = to_markdown(old, related={successor.id: successor})
    assert 'status: "superseded by ADR-0008"' in markdown
    spoken = markdown.replace("### For machines", "### Comments\n\n* It served us well.\n\n### For machines")
    (edit,) = came_back(spoken, old, old, at=NOW, author="Kim").edits
    assert edit.text == "It served us well."


def test_edits_in_the_log_meanwhile_are_kept_and_a_clash_is_named():
    commented = apply(ACCEPTED, Commented(at=NOW + timedelta(days=9), author="Lee", text="Seen."))
    assert [e.kind for e in back(ACCEPTED, "2027-03-01", "2027-04-01", now=commented).edits] == ["review_moved"]
    (mine,) = back(PROPOSED, "Today developers run", "Today some run").edits
    clash = back(PROPOSED, "Today developers run", "Today many run", now=apply(PROPOSED, mine))
    assert clash.refused == ("context was changed in the log too since the file was written.",)
    other = back(PROPOSED, "2027-03-01", "2027-04-01", now=apply(PROPOSED, mine))
    assert set(changed(other, apply(PROPOSED, mine))) == {"review_on"}


def test_a_condition_that_moved_in_the_log_since_stays_as_it_is_there():
    looked_at = RecheckMoved(at=NOW, author="Lee", reason="looked", condition="few-users", recheck_on=date(2027, 2, 1))
    (added,) = back(ACCEPTED, "| `peak_in", ROW, now=apply(ACCEPTED, looked_at)).edits
    assert added.kind == "condition_added"


def test_a_condition_that_was_taken_out_of_the_proposal_since_does_not_come_back():
    left = PROPOSED.text.model_copy(update={"conditions": PROPOSED.conditions[1:]})
    amended = Amended(at=NOW, author="Lee", text=left)
    stands = apply(apply(PROPOSED, amended), Accepted(at=NOW, author="Sato", number=7))
    (added,) = back(PROPOSED, "| `peak_in", ROW, now=stands).edits
    assert (added.kind, added.condition.in_words()) == ("condition_added", "vllm-b: error_share <= 0.01 at peak")
    gone = next(x for x in to_markdown(PROPOSED).split("\n") if x.startswith("| `vllm-b: started"))
    (other,) = back(PROPOSED, gone, ROW.split("\n")[0], now=stands).edits
    assert other == added


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("status: accepted\nhead", "status: [accepted]\nhead", "status in the block is not text"),
        ("snapshots:\n  plan", "snapshots:\n- plan", "snapshots in the block is not a mapping"),
        ("conditions:\n", "conditions: 3\nx:\n", "conditions in the block is not a list"),
        ("conditions:\n", "conditions:\n- few users\n", "an entry of conditions in the block has no fields"),
        ("evidence:\n", "evidence:\n- e-1\n", "an entry of evidence in the block has no fields"),
    ],
)
def test_a_block_in_another_shape_is_named(old, new, says):
    with pytest.raises(InputError, match=says):
        back(ACCEPTED, old, new)


def test_table_and_block_that_say_different_things_are_refused():
    markdown = (
        to_markdown(PROPOSED).replace("| infrastructure |", "| Kim |", 1).replace("owner: inf", "owner: Lee # ", 1)
    )
    with pytest.raises(InputError, match="the table of conditions and the block say different things"):
        came_back(markdown, PROPOSED, PROPOSED, at=NOW, author="Kim")


def test_a_re_check_of_an_accepted_decision_moves():
    (edit,) = back(ACCEPTED, "| infrastructure | 2026-12-01 |", "| infrastructure | 2027-02-01 |").edits
    assert (edit.kind, edit.condition, edit.recheck_on) == (
        "recheck_moved", "engine-does-not-start", date(2027, 2, 1),
    )  # fmt: skip
