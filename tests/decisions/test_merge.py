"""Two people save the same draft: what merges by itself, what is asked, and that nothing is lost."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.flips import from_template
from decisions.merge import merge
from decisions.record import AdrText, Consequences, Option, People
from tests.decisions.made import text

BASE = text()


def with_(**changes: object) -> AdrText:
    return BASE.model_copy(update=changes)


def test_fields_that_only_one_changed_merge_by_themselves():
    merged = merge(BASE, with_(headline="40 users are served"), with_(title="vLLM first", review_on=date(2027, 1, 1)))
    assert merged.clashes == ()
    assert merged.taken == ("title", "review_on")
    assert (merged.text.headline, merged.text.title) == ("40 users are served", "vLLM first")
    assert merged.text.context == BASE.context


def test_what_both_changed_is_a_choice_and_both_are_shown():
    mine, theirs = with_(outcome="it is fastest."), with_(outcome="it has metrics.", tags=("gpu",))
    (clash,) = merge(BASE, mine, theirs).clashes
    assert clash == ("outcome", BASE.outcome, "it is fastest.", "it has metrics.")
    assert merge(BASE, mine, theirs, {"outcome": "theirs"}).text == theirs
    assert merge(BASE, mine, theirs, {"outcome": "mine"}).text == with_(outcome="it is fastest.", tags=("gpu",))


def test_conditions_merge_one_by_one():
    few, prefix = BASE.conditions[1], BASE.conditions[2]
    later = few.model_copy(update={"owner": "Lee"})
    slow = from_template("slow-start", candidate="vllm-b")
    errors = from_template("errors", candidate="vllm-b", point="peak")
    others = tuple(c for c in BASE.conditions if c not in (few, prefix))
    merged = merge(BASE, with_(conditions=(*others, later, prefix, slow)), with_(conditions=(*others, few, errors)))
    assert merged.clashes == ()  # I gave one an owner and added one; they removed another and added one
    assert merged.text.conditions == (*others, later, errors, slow)


def test_a_condition_that_one_edits_and_the_other_removes_is_a_choice():
    few = BASE.conditions[1]
    edited = tuple(c.model_copy(update={"owner": "Lee"}) if c == few else c for c in BASE.conditions)
    removed = tuple(c for c in BASE.conditions if c != few)
    (clash,) = merge(BASE, with_(conditions=edited), with_(conditions=removed)).clashes
    assert (clash.field, clash.theirs) == ("conditions: few-users", None)
    chosen = merge(BASE, with_(conditions=edited), with_(conditions=removed), {clash.field: "theirs"})
    assert chosen.text.conditions == removed


def test_lines_are_added_and_taken_out_by_both():
    mine = with_(people=People(decided=("Sato", "Kim"), consulted=("Tanaka", "Lee")))
    theirs = with_(people=People(decided=("Sato", "Mori"), consulted=("Lee",)))
    merged = merge(BASE, mine, theirs)
    assert merged.clashes == ()
    assert merged.text.people == People(decided=("Sato", "Mori", "Kim"), consulted=("Lee",))
    assert merged.taken == ("people.decided", "people.consulted")
    both = merge(BASE, with_(supersedes=("01JAAA",)), with_(supersedes=("01JBBB",)))
    assert (both.clashes, both.text.supersedes) == ((), ("01JBBB", "01JAAA"))


def test_the_same_line_in_two_wordings_is_a_choice():
    mine = with_(consequences=Consequences(good=("one server for everybody",), bad=BASE.consequences.bad))
    theirs = with_(consequences=Consequences(good=("one server to care for",), bad=BASE.consequences.bad))
    (clash,) = merge(BASE, mine, theirs).clashes
    assert (clash.field, clash.theirs) == ("consequences.good", ("one server to care for",))


words = st.sampled_from(["a", "b", "c"])
texts = st.builds(
    lambda title, drivers, decided, good, options, flips: with_(
        title=title, drivers=tuple(drivers), people=People(decided=tuple(decided)),
        consequences=Consequences(good=tuple(good)),
        options=tuple(Option(title=k, summary=v) for k, v in options.items()),
        conditions=tuple(BASE.conditions[i].model_copy(update={"owner": o}) for i, o in flips.items()),
    ),
    words, st.lists(words, unique=True), st.lists(words, unique=True), st.lists(words, unique=True),
    st.dictionaries(words, words), st.dictionaries(st.integers(0, 3), words),
)  # fmt: skip


@given(texts, texts, texts)
@settings(max_examples=150, deadline=None)
def test_nothing_that_somebody_wrote_is_lost(base, mine, theirs):
    merged = merge(base, mine, theirs)
    shown = {c.field: c for c in merged.clashes}
    for one, other in ((mine, theirs), (theirs, mine)):
        if one.title != base.title and "title" not in shown:
            assert merged.text.title == one.title
        for line in set(one.drivers) - set(base.drivers):
            assert line in merged.text.drivers or "drivers" in shown
        for flip in one.conditions:
            if flip not in base.conditions:
                assert flip in merged.text.conditions or f"conditions: {flip.id}" in shown
        assert merge(base, one, base).text == one
        assert merge(base, one, one).text == one
        assert merge(base, base, one).text == one
        assert {c.field for c in merge(base, other, one).clashes} == set(shown)
    assert merge(base, mine, theirs, dict.fromkeys(shown, "theirs")).clashes == merged.clashes
