"""Decisions out of other people's files: links at both ends, numbers kept where they are free."""

from __future__ import annotations

from datetime import date

from decisions.adopted import Found, edits_of, linked, numbers
from decisions.madr_foreign import Read
from decisions.record import AdrText, Status
from decisions.view import current
from tests.decisions.made import NOW


def found(id: str, file: str, status: Status = Status.ACCEPTED, **links: tuple[str, ...]) -> Found:
    return Found(id, file, Read(AdrText(title=id), status, status.value, None, date(2024, 3, 5), **links))


def test_two_that_say_that_each_supersedes_the_other_are_linked_one_way():
    one = found("one", "0001-a.md", superseded_by=("2",))
    two = found("two", "0002-b.md", superseded_by=("1",))
    assert linked([one, two]).by == {"one": "two"}


def test_of_two_files_with_one_number_a_link_means_the_first_and_the_other_gets_a_free_one():
    first, second = found("first", "0003-a.md"), found("second", "0003-b.md")
    later = found("later", "0004-c.md", supersedes=("3",))
    assert linked([first, second, later]).by == {"first": "later"}
    assert numbers([first, second, later], taken=[7]) == {"first": 3, "later": 4, "second": 8}


def test_a_link_to_number_0000_is_resolved_though_no_decision_here_has_it():
    first, next_one = found("a", "0000-use-madr.md"), found("b", "0001-b.md", supersedes=("0",))
    assert linked((first, next_one)).by == {"a": "b"}
    assert numbers((first, next_one), ()) == {"b": 1, "a": 2}


def test_what_is_only_proposed_supersedes_nothing_yet_and_says_what_it_would():
    old, new = found("older", "0001-a.md"), found("newer", "0002-b.md", Status.PROPOSED, supersedes=("1",))
    links = linked([old, new])
    assert (links.by, links.of) == ({}, {"newer": ("older",)})
    adr = current(edits_of(new, links, 2, case="c", by="Kim", at=NOW))
    assert (adr.status, adr.supersedes) == (Status.PROPOSED, ("older",))


def test_what_was_superseded_by_something_that_is_not_here_is_deprecated_with_its_words():
    lost = found("lost", "0001-a.md", Status.SUPERSEDED)
    lost = lost._replace(read=lost.read._replace(status_words="superseded by ADR-0009"))
    edits = edits_of(lost, linked([lost]), 1, case="c", by="Kim", at=NOW)
    assert current(edits).status is Status.DEPRECATED
    assert edits[-1].reason == "imported from 0001-a.md: superseded by ADR-0009, which is not here"
