"""Figures stay in memory until any of them changes, by whoever; what is counted later is kept by its question."""

from __future__ import annotations

import pytest

from planner.conditions import Exceedance
from tests.db.made import contracts, figure, run


def known(store):
    return store.evidence.of_case("nortia")


def test_the_same_figures_are_read_once(store):
    store.evidence.add("nortia", [figure("a")], contracts())
    assert known(store) is known(store)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("UPDATE evidence SET body = replace(body, '10.0', '11.0') WHERE id = 'a'", {"a": 11.0, "b": 10.0}),
        ("DELETE FROM evidence WHERE id = 'a'", {"b": 10.0}),
        ("INSERT INTO evidence SELECT * FROM evidence WHERE id = 'a' ON CONFLICT (id) DO UPDATE "
         "SET body = replace(excluded.body, '10.0', '12.0')", {"a": 12.0, "b": 10.0}),
    ],
)  # fmt: skip
def test_a_change_by_a_foreign_client_is_seen_at_once(store, place, statement, left):
    store.evidence.add("nortia", [figure("a"), figure("b")], contracts())
    assert {e.id: e.value for e in known(store)} == {"a": 10.0, "b": 10.0}
    place.run(statement)
    assert {e.id: e.value for e in known(store)} == left


def test_figures_of_a_transaction_that_is_undone_are_not_remembered(store):
    store.evidence.add("nortia", [figure("a")], contracts())

    class Undone(Exception):
        pass

    with pytest.raises(Undone), store.transaction():
        store.evidence.add("nortia", [figure("ghost")], contracts())
        assert [e.id for e in known(store)] == ["a", "ghost"]
        raise Undone
    assert [e.id for e in known(store)] == ["a"]
    store.evidence.add("nortia", [figure("b")], contracts())  # the same revision number as the ghost's
    assert [e.id for e in known(store)] == ["a", "b"]


def test_figures_come_by_time_and_id(store):
    later = figure("a").model_copy(update={"at": figure("a").at.replace(hour=23)})
    store.evidence.add("nortia", [later, figure("c"), figure("b")], contracts())
    assert [e.id for e in known(store)] == ["b", "c", "a"]


def test_a_recount_is_found_by_its_bundle_and_question(store):
    one = run()
    store.runs.take_in(one, [], contracts())
    counted = figure("a", exceedances=(Exceedance(threshold=2.0, comparison="<=", beyond=3),))
    store.recounts.keep(one.sha256, "q", [counted])
    store.recounts.keep(one.sha256, "q", [])  # the first stays
    assert store.recounts.find("q", [one.sha256, "f" * 64]) == {one.sha256: (counted,)}
    assert store.recounts.find("other", [one.sha256]) == {}
