"""What lies beside the database goes with the transaction that it belongs to, and only then."""

from __future__ import annotations

import pytest


@pytest.fixture
def undone():
    return []


def test_files_of_a_transaction_that_fails_are_undone_newest_first(store, undone):
    with pytest.raises(RuntimeError), store.transaction():
        store.when_undone(lambda: undone.append("first"))
        store.when_undone(lambda: undone.append("second"))
        raise RuntimeError("the page died")
    assert undone == ["second", "first"]


def test_what_was_stored_stays(store, undone):
    with store.transaction():
        store.when_undone(lambda: undone.append("x"))
    with pytest.raises(RuntimeError), store.transaction():  # a later one that fails
        raise RuntimeError
    assert undone == []


def test_a_part_that_fails_is_undone_alone(store, undone):
    with store.transaction():
        store.when_undone(lambda: undone.append("whole"))
        with pytest.raises(RuntimeError), store.transaction():
            store.when_undone(lambda: undone.append("part"))
            raise RuntimeError
    assert undone == ["part"]


def test_outside_a_transaction_there_is_nothing_to_undo(store, undone):
    store.when_undone(lambda: undone.append("x"))
    with pytest.raises(RuntimeError), store.transaction():
        raise RuntimeError
    assert undone == []
