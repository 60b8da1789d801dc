"""The log is searched by all words, in any width and case, best field first, and filtered by how it stands."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.verdicts import Judged
from decisions.flips import FlipState
from decisions.record import Adr, Comment, Fire, Status
from planner.errors import UnknownName
from services.adr_search import Wanted, choices, due_on, excerpt, find_adr, found_in, near_ids, search, terms
from tests.decisions.made import NOW, nortia
from tests.services.made import accepted


def adr(id: str, **fields: object) -> Adr:
    return nortia(f"01J-{id.replace(' ', '-')}").model_copy(update={"title": id, **fields})


FIRE = Fire(condition="few-users", at=NOW, sentence="peak_in_flight max 4 against 5.")
LOG = (
    adr("queue", tags=("慣性", "推論"), context="プレフィックスキャッシュを使う。", number=1, status=Status.ACCEPTED,
        accepted_at=datetime(2025, 3, 1, tzinfo=UTC), accepted_by="Sato", fires=(FIRE,)),
    adr("Prefix cache first", number=2, status=Status.ACCEPTED, accepted_at=datetime(2026, 3, 1, tzinfo=UTC)),
    adr("weights", drivers=("the prefix cache fills",), comments=(Comment(at=NOW, author="Lee", text="straße 12"),)),
)  # fmt: skip


def ids(words: str = "", **wanted: object) -> list[str]:
    return [h.adr.title for h in found_in(LOG, Wanted(words, **wanted))]  # type: ignore[arg-type]


def test_without_words_the_newest_comes_first() -> None:
    assert ids() == ["weights", "Prefix cache first", "queue"]


def test_a_word_in_the_title_counts_more_than_one_in_the_drivers() -> None:
    assert ids("prefix cache") == ["Prefix cache first", "weights"]


def test_every_word_must_stand_somewhere() -> None:
    assert ids("prefix fills") == ["weights"]
    assert ids("prefix nowhere") == []


def test_a_phrase_between_quotes_stands_together() -> None:
    assert ids('"prefix first"') == []
    assert ids('"cache first"') == ["Prefix cache first"]


@pytest.mark.parametrize("words", ["PREFIX CACHE", "ｐｒｅｆｉｘ　ｃａｃｈｅ", '"Prefix　Cache"'])
def test_case_and_width_do_not_matter(words: str) -> None:
    """The second and third carry full-width letters or the ideographic space of a Japanese keyboard."""
    assert ids(words) == ["Prefix cache first", "weights"]


@pytest.mark.parametrize("words", ["キャッシュ", "ｷｬｯｼｭ", "慣性"])  # half-width kana is the same word
def test_japanese_is_found_inside_a_sentence(words: str) -> None:
    assert ids(words) == ["queue"]


def test_case_folds_as_unicode_does() -> None:
    assert ids("STRASSE") == ["weights"]


def test_a_number_is_found_as_people_call_it() -> None:
    assert ids("adr-0002") == ["Prefix cache first"]


def test_filters_narrow_and_go_together() -> None:
    assert ids(status=Status.ACCEPTED) == ["Prefix cache first", "queue"]
    assert ids(tag="推論") == ["queue"]
    assert ids(year=2026) == ["Prefix cache first"]
    assert ids(flips="fired") == ["queue"]
    assert ids(owner="infrastructure", status=Status.DRAFT) == ["weights"]
    assert ids(owner="nobody") == []
    assert ids(case="another") == []


def test_due_is_the_earliest_day_of_what_is_still_open() -> None:
    # Nortia's re-checks are on 2026-12-01, its review on 2027-03-01; a draft is not due.
    assert due_on(LOG[0]) == date(2026, 12, 1)
    assert due_on(LOG[2]) is None
    assert ids(due=date(2026, 11, 30)) == []
    assert ids(due=date(2026, 12, 1)) == ["Prefix cache first", "queue"]


def test_an_adr_that_changed_is_found_by_its_new_words_and_not_by_the_old_ones() -> None:
    before = adr("same id", headline="first thought")
    assert found_in([before], Wanted("first thought"))
    after = before.model_copy(update={"headline": "second thought"})
    assert not found_in([after], Wanted("first"))
    assert found_in([after], Wanted("second"))


def test_where_it_was_found_is_said_with_an_excerpt() -> None:
    (hit,) = found_in(LOG, Wanted("cache first"))
    assert hit.fields == ("title",)
    assert excerpt(LOG[2], "FILLS") == "the prefix cache fills"
    assert excerpt(LOG[1], "first") == excerpt(LOG[2], "") == ""  # a title is shown anyway


def test_what_can_be_chosen_occurs_in_the_log() -> None:
    found = choices(LOG)
    assert found.tags == ("inference", "慣性", "推論")
    assert found.owners == ("infrastructure",)
    assert found.years == (2026, 2025)


@pytest.mark.parametrize("words", ["", '"', '""', "   ", '" "'])
def test_a_query_without_words_asks_for_everything(words: str) -> None:
    assert terms(words) == () and len(ids(words)) == 3


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_any_query_is_answered_and_each_hit_has_all_terms(words: str) -> None:
    for hit in found_in(LOG, Wanted(words)):
        assert len(hit.fields) <= max(1, len(terms(words)))


def test_the_store_is_searched_by_case_and_an_adr_is_found_by_its_number(shipped) -> None:
    decided = accepted(shipped)
    assert [h.adr.id for h in search(shipped, "vllm", case="nortia")] == [decided.id]
    assert search(shipped, fired=True) == ()
    for name in ("1", "ADR-0001", "adr-1", decided.id):
        assert find_adr(shipped, name).id == decided.id
    with pytest.raises(UnknownName, match="ADR-0001"):
        find_adr(shipped, "ADR-0002")
    with pytest.raises(UnknownName):
        search(shipped, case="nowhere")


def test_near_is_what_the_last_judgement_said(shipped) -> None:
    decided = accepted(shipped)
    assert near_ids(shipped) == frozenset()

    def seen(state: FlipState, minute: int) -> None:
        at = NOW + timedelta(minutes=minute)
        judged = Judged(
            condition="few-users", adr=decided.id, at=at, state=state.value, value=5.0 + minute, sentence=""
        )
        shipped.store.verdicts.record(decided.case, [judged])

    seen(FlipState.NEAR, 1)
    assert [h.adr.id for h in search(shipped, near=True)] == [decided.id]
    seen(FlipState.ARMED, 2)
    assert search(shipped, near=True) == ()


def test_the_day_of_a_recheck_counts_only_while_its_condition_stands() -> None:
    retired = tuple(c.model_copy(update={"retired": True}) for c in LOG[0].conditions)
    later = LOG[0].model_copy(update={"conditions": retired})
    assert due_on(later) == date(2027, 3, 1)
    assert found_in([later], Wanted(due=date(2027, 3, 1) - timedelta(days=1))) == ()
