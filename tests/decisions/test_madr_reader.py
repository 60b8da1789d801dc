"""Decision files of any template: what they say is found, the rest is kept, what is broken names its line."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decisions.flip_condition import FlipCondition
from decisions.madr_reader import read_madr
from decisions.madr_text import text_of
from decisions.madr_words import status_of
from decisions.markdown import to_markdown
from decisions.record import AdrText, Comment, Option, Section, Status, draft
from planner.errors import InputError
from tests.decisions.corpus import MADR_2, MADR_4, NYGARD, SHAPES
from tests.decisions.made import NOW, text
from tests.decisions.test_markdown import NASTY, fired, headings, nortia, with_text


def read(body: bytes, name: str = "0001-x.md"):
    return text_of(read_madr(body.decode("utf-8-sig"), name), name)


@pytest.mark.parametrize("shape", SHAPES, ids=[s.name for s in SHAPES])
def test_what_a_file_says_is_found(shape):
    found = read(shape.body, shape.name)
    assert (found.status, found.day) == (shape.status, shape.day)
    assert {name: getattr(found.text, name) for name in shape.fields} == shape.fields
    assert tuple(part.heading for part in found.text.kept) == shape.kept


@pytest.mark.parametrize("shape", SHAPES, ids=[s.name for s in SHAPES])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_imported_file_is_exported_and_read_back_without_loss(shape, language):
    found = read(shape.body, shape.name).text
    markdown = to_markdown(draft("file-1", "case", found), language=language)
    assert text_of(read_madr(markdown)).text == found


@pytest.mark.parametrize("shape", SHAPES, ids=[s.name for s in SHAPES])
def test_no_word_of_a_file_is_lost(shape):
    file = read_madr(shape.body.decode("utf-8-sig"))
    everything = read(shape.body).text.model_dump_json()
    words = {w for p in file.parts for w in p.markdown.split() if w.isalpha()}
    fixed = {"Chosen", "because"}  # MADR's own words around what is said
    assert [w for w in words - fixed if w not in everything and status_of(w) is None] == []


def test_options_and_people_of_madr_2():
    found = read(MADR_2).text
    assert found.people.decided == ("Ann", "Bo")
    assert [(o.title, o.pros, o.cons) for o in found.options] == [
        ("Markdown", ("known",), ("of dialects",)), ("AsciiDoc", ("rich",), ("rare",)),
    ]  # fmt: skip
    assert (found.consequences.good, found.consequences.bad) == (("no training",), ("no footnotes",))


def test_a_part_that_is_not_understood_is_kept_as_it_stands():
    rollout = read(MADR_4).text.kept[0]
    assert rollout == Section(heading="Rollout", markdown="1. one team\n2. everybody\n\n### Costs\n\nNone.")


def test_nothing_in_a_fence_or_a_comment_is_a_heading():
    file = read_madr(NYGARD.decode() + "\n<!--\n## Hidden\n-->\n\n~~~\n# no\n```\n# no\n~~~\n\n## Seen\n")
    assert [p.heading for p in file.parts] == ["Status", "Context", "Decision", "Consequences", "Seen"]


@pytest.mark.parametrize(
    "body",
    [
        "# T\n\n## Seen <!--\n## Seen as well\n-->\n\n## Seen too\n",
        "# T\n\nWords `<!--` as code\n\n## Seen\n",
        "# T\n\nWords \\<!-- escaped\n\n## Seen\n",
        "# T\n\n* an entry <!-- that nothing closes\n\n## Seen\n",
        "# T\n\nWords\n<!-- one line --> and\n## Seen\n",
        "# T\n\nWords\n   <!-- several\n## Hidden\nlines --> <!--\n## Seen\n",
        "# T\n\n```\n<!--\n```\n## Seen\n",
    ],
)
def test_headings_are_those_that_a_markdown_parser_sees(body):
    assert [("h1", "T"), *((f"h{p.level}", p.heading) for p in read_madr(body).parts)] == headings(body)


def test_marks_at_the_beginning_are_no_part_of_the_text():
    assert read_madr("\ufeff---\nstatus: accepted\n---\n# T\n").front == {"status": "accepted"}
    assert read_madr("---\n\n# T\n\nWords.\n").preamble == "Words."  # a rule across the page
    assert read_madr("Choices\n=======\n\n## Context\n").title == "Choices"  # as long as a mark of a merge


@pytest.mark.parametrize(
    ("body", "status", "kept"),
    [
        (b"---\nstatus: accepted\n---\n# T\n\n* Status: proposed\n", Status.ACCEPTED,
         (Section(heading="Introduction", markdown="* Status: proposed"),)),
        (b"# T\n\n## Status\n\nAccepted\n\n## Status\n\nRejected\n", Status.ACCEPTED, ()),
        (b"# T\n\n## Status\n\nblue\n", Status.PROPOSED, ()),
        (b"# T\n\n## Context\n\nWords.\n", Status.PROPOSED, ()),
        (b"# T\n\n## Context\n\nOne.\n\n## Context\n\nTwo.\n", Status.PROPOSED,
         (Section(heading="Also under Context", markdown="Two."),)),
    ],
)  # fmt: skip
def test_what_is_said_twice_counts_once_and_is_kept(body, status, kept):
    found = read(body)
    assert (found.status, found.text.kept) == (status, kept)


def test_an_option_is_the_same_in_other_capitals():
    body = b"# T\n\n## Considered Options\n\n* markdown\n\n## Pros and Cons of the Options\n\n### Markdown\n\nKnown.\n"
    assert [(o.title, o.summary) for o in read(body).text.options] == [("markdown", "Known.")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("---\nstatus: accepted\n# T\n", "x.md, line 1: begins front matter that nothing ends"),
        ("---\nstatus: a: b\n---\n# T\n", "x.md, line 2: front matter cannot be read"),
        ("---\n- a\n---\n# T\n", "x.md, line 1: front matter holds no fields"),
        ("+++\nstatus = \n+++\n# T\n", "x.md, line 1: front matter cannot be read"),
        ("## Context\n\nwords\n", "x.md, line 1: has no title"),
        ("# T\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", "x.md, line 3: holds the marks of an unfinished merge"),
        (f"# {'x' * 301}\n\n## Status\n\nAccepted\n", "x.md: title"),
    ],
)
def test_a_broken_file_is_named_with_its_line(body, says):
    with pytest.raises(InputError) as error:
        text_of(read_madr(body, "x.md"), "x.md")
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Accepted", Status.ACCEPTED), ("accepted, was proposed", Status.ACCEPTED),
        ("Superceded by 3", Status.SUPERSEDED),
        ("superseded by ADR-0123", Status.SUPERSEDED), ("Declined", Status.REJECTED), ("Draft", Status.PROPOSED),
        ("廃止", Status.DEPRECATED), ("blue", None), ("", None),
    ],
)  # fmt: skip
def test_the_status_is_the_first_that_the_words_name(words, status):
    assert status_of(words) is status


@pytest.mark.parametrize("language", ["en", "ja"])
def test_our_own_file_is_read_back_with_all_that_its_text_holds(language):
    adr, verdicts = fired()
    back = text_of(read_madr(to_markdown(adr, verdicts, language=language)))
    assert back.text == adr.text
    assert (back.status, back.number, back.accepted[0]) == (adr.status, adr.number, adr.accepted_by)


def test_what_the_prose_says_letter_by_letter_is_not_said_twice():
    assert "exact:" not in to_markdown(nortia())


@settings(max_examples=100)
@given(st.text(st.sampled_from(NASTY + "ab推🚀\n\r"), min_size=1, max_size=24), st.sampled_from(["en", "ja"]))
@example("#\r", "en")
@example("see <!-- here", "en")
@example("1\r=", "en")
@example("```\n## open", "ja")
@example("a  b\x00c", "en")
@example("x\n<<<<<<< HEAD\n=======\n>>>>>>> b", "en")
def test_any_text_comes_back_letter_by_letter(words, language):
    adr = with_text(words)
    odd = adr.model_copy(update={
        "kept": (Section(heading=words, markdown=words),), "supersedes": ("01JABC",),
        "options": (*adr.options, Option(title="Y", candidate="b")),
    })  # fmt: skip
    assert text_of(read_madr(to_markdown(odd, language=language))).text == odd.text


@settings(max_examples=100)
@given(st.text(st.sampled_from(NASTY + "ab推🚀\n\r"), min_size=1, max_size=24), st.sampled_from(["en", "ja"]))
@example("  two  blanks, a\ttab\nand an end \n", "en")
@example("a\r\nb\u2028c\u200fd", "ja")
@example(", 2026-01-01: x\ny, 2026-01-01: z", "en")
@example(" ", "en")
def test_comments_come_back_letter_by_letter(words, language):
    said = tuple(
        Comment(at=NOW, author=who, text=x) for who, x in (("Kim", words), (f"a {words}", "Yes."), ("Kim", words))
    )
    markdown = to_markdown(nortia().model_copy(update={"comments": said}), language=language)
    assert text_of(read_madr(markdown)).comments == tuple((c.author, NOW.date(), c.text) for c in said)


@pytest.mark.parametrize("title", ["推" * 300, "🚀🎉", "x" * 300, "<script>alert(1)</script>", "a | b `c` [d](e)"])
def test_titles_of_all_sorts_come_back(title):
    adr = draft("01J0", "n", text().model_copy(update={"title": title}))
    assert text_of(read_madr(to_markdown(adr))).text.title == title


def test_a_text_without_kept_parts_has_the_bytes_that_it_had_before_there_were_any():
    assert "kept" not in AdrText(title="t").model_dump(mode="json")


def test_a_condition_on_a_metric_that_is_gone_comes_back_too():
    stored = {
        "id": "old",
        "condition": {"metric": "no_such_metric", "comparison": "<=", "threshold": 3.0},
        "owner": "K",
    }
    gone = FlipCondition.model_validate(stored)
    adr = draft("01J0", "n", text().model_copy(update={"conditions": (gone,)}))
    assert text_of(read_madr(to_markdown(adr))).text == adr.text
