"""What is done to the stored log behind the store's back is found and named, on both databases."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from db.store import open_store
from decisions import chain
from decisions.edits import Commented, edit_to_json
from planner.errors import InputError
from planner.frozen import canonical_json
from tests.db.made import NOW
from tests.decisions.made import nortia

A, B = "01J0000000000000000NORTIA1", "01J0000000000000000NORTIA2"
COLUMNS = ("adr_id", "seq", "number", "body", "prev", "hash")
BY = {"at": NOW, "author": "Sato"}


@pytest.fixture
def log(store, place):
    """Two records of four edits, and their append-only triggers taken away, as the owner of the database can."""
    for id in (A, B):
        store.adrs.add_draft(nortia(id), at=NOW, by="Tanaka")
        store.adrs.propose(id, version=1, **BY)
        store.adrs.accept(id, **BY, snapshots={"plan": f"plan of {id}".encode()})
        store.adrs.append(id, Commented(at=NOW, author="Lee", text="fine"))
    place.lift("adr_edit")
    place.lift("snapshot")
    return store


def heads(store):
    return {id: store.adrs.head(id) for id in (A, B)}


def stored(place):
    return [tuple(r) for r in place.run(f"SELECT {', '.join(COLUMNS)} FROM adr_edit ORDER BY adr_id, seq")]


def put(place, rows):
    """The log as these rows say."""
    text = "?" if place.name == "postgresql" else "CAST(? AS TEXT)"  # of bytes that need be no UTF-8
    insert = f"INSERT INTO adr_edit ({', '.join(COLUMNS)}) VALUES (?, ?, ?, {text}, {text}, {text})"
    place.run("DELETE FROM adr_edit", *((insert, row) for row in rows))


def forged(adr, seq, prev, text="forged"):
    body = edit_to_json(Commented(at=NOW, author="Lee", text=text))
    return (adr, seq, None, body, prev, chain.link_hash(prev, adr, seq, body))


def changed_byte(data, place, rows):
    at, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.sampled_from(COLUMNS[2:]))
    row = dict(zip(COLUMNS, rows[at], strict=True))
    old = row[column]
    if isinstance(old, str):
        raw = bytearray(old.encode())
        n = data.draw(st.integers(0, len(raw) - 1))
        # PostgreSQL takes no text that is no UTF-8, nor a zero, from its owner either
        raw[n] = data.draw(st.integers(0, 255) if place.name == "sqlite" else st.integers(1, 127))
        assume(raw != old.encode())
        row[column] = bytes(raw) if place.name == "sqlite" else raw.decode()
    else:
        row[column] = 77 if old is None else None
    return [*rows[:at], tuple(row[c] for c in COLUMNS), *rows[at + 1 :]], rows[at][:2]


def removed(data, place, rows):
    at = data.draw(st.integers(0, len(rows) - 1))
    return rows[:at] + rows[at + 1 :], rows[at][:2]


def swapped(data, place, rows):
    at = data.draw(st.sampled_from([n for n in range(len(rows) - 1) if rows[n][0] == rows[n + 1][0]]))
    (adr, seq, *one), (_, after, *two) = rows[at], rows[at + 1]
    return [*rows[:at], (adr, seq, *two), (adr, after, *one), *rows[at + 2 :]], (adr, seq)


def inserted(data, place, rows):
    """A link that follows the one before it; the one after it is the first that does not fit."""
    at = data.draw(st.sampled_from([n for n in range(len(rows)) if rows[n][1] > 1]))
    adr, seq, _, _, prev, _ = rows[at]
    shifted = [(a, s + 1, *rest) if a == adr and s >= seq else (a, s, *rest) for a, s, *rest in rows[at:]]
    return [*rows[:at], forged(adr, seq, prev), *shifted], (adr, seq + 1)


def moved(data, place, rows):
    at = data.draw(st.integers(0, len(rows) - 1))
    adr, seq, *rest = rows[at]
    return [*rows[:at], (adr, seq + 40, *rest), *rows[at + 1 :]], (adr, seq)


def put_under_another(data, place, rows):
    """A link at the end of the other record: it is missing here, and does not follow there."""
    at = data.draw(st.integers(0, len(rows) - 1))
    adr, seq, *rest = rows[at]
    return [*rows[:at], (B if adr == A else A, 5, *rest), *rows[at + 1 :]], (adr, seq)


@settings(max_examples=48, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), attack=st.sampled_from([changed_byte, removed, swapped, inserted, moved, put_under_another]))
def test_any_change_removal_reordering_or_insertion_is_found_and_named(log, place, data, attack):
    before, known = stored(place), heads(log)
    rows, named = attack(data, place, before)
    put(place, rows)
    try:
        others = [(B if named[0] == A else A, 5)] if attack is put_under_another else []
        assert sorted((b.adr, b.seq) for b in log.adrs.verify(known)) == sorted([named, *others])
    finally:
        put(place, before)
    assert log.adrs.verify(known, nothing_after=True) == ()


def cut_off(rows):
    return [r for r in rows if r[:2] != (A, 4)], (A, 4)


def rewritten(rows):
    return [*rows[:3], forged(A, 4, rows[2][5], "rewritten"), *rows[4:]], (A, 5)


@pytest.mark.parametrize("attack", [cut_off, rewritten])
def test_what_is_well_formed_is_found_only_against_the_exported_head(log, place, attack):
    known = heads(log)
    rows, named = attack(stored(place))
    put(place, rows)
    assert log.adrs.verify() == ()
    (broken,) = log.adrs.verify(known)
    assert (broken.adr, broken.seq) == named
    assert broken.why == f"is missing: the known head {known[A][:12]} is not in the log."


def test_a_well_formed_addition_is_found_only_when_nothing_may_come_after_the_exported_head(log, place):
    known, rows = heads(log), stored(place)
    put(place, [*rows, forged(B, 5, known[B])])
    assert log.adrs.verify() == log.adrs.verify(known) == ()
    (broken,) = log.adrs.verify(known, nothing_after=True)
    assert str(broken) == f"{B}, edit 5: was added after the known head {known[B][:12]}."
    (whole,) = log.adrs.verify({A: known[A]}, nothing_after=True)
    assert (whole.adr, whole.seq) == (B, 1)


def test_a_record_that_vanished_is_found_with_and_without_its_head(log, place):
    known = heads(log)
    place.run(("DELETE FROM adr_edit WHERE adr_id = ?", (A,)))
    (broken,) = log.adrs.verify()
    assert str(broken) == f"{A}, edit 1: is missing: the ADR has neither a draft nor a record."
    with pytest.raises(InputError, match="its record is missing"):
        log.adrs.get(A)
    place.run(("DELETE FROM adr WHERE id = ?", (A,)))
    assert log.adrs.verify() == ()
    assert [(b.adr, b.seq) for b in log.adrs.verify(known)] == [(A, 1)]


def test_a_draft_that_is_put_beside_a_record_or_in_its_place_hides_nothing(log, place):
    known = heads(log)
    draft = canonical_json(nortia(A).model_dump(mode="json"))
    place.run(
        ("INSERT INTO adr_draft VALUES (?, 1, ?, '2026-09-01', 'Mallory')", (A, draft)),
        ("UPDATE adr_edit SET body = body || ' ' WHERE adr_id = ? AND seq = 4", (A,)),
    )
    assert [(b.adr, b.seq) for b in log.adrs.verify()] == [(A, 4)]
    place.run(("DELETE FROM adr_edit WHERE adr_id = ?", (A,)))
    assert [(b.adr, b.seq) for b in log.adrs.verify(known)] == [(A, 1)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_of_any_snapshot_is_found_and_named(log, place, data):
    adr = data.draw(st.sampled_from([A, B]))
    (ref,) = log.adrs.get(adr).snapshots
    raw, written = bytearray(log.snapshots.get(ref.sha256)), "UPDATE snapshot SET body = ? WHERE sha256 = ?"
    n = data.draw(st.integers(0, len(raw) - 1))
    raw[n] ^= data.draw(st.integers(1, 255))
    place.run((written, (bytes(raw), ref.sha256)))
    try:
        assert [(b.adr, b.seq) for b in log.adrs.verify()] == [(adr, 3)]
    finally:
        place.run((written, (f"plan of {adr}".encode(), ref.sha256)))
    assert log.adrs.verify() == ()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE snapshot SET body = {bytes} WHERE sha256 = ?", "which was changed"),
        ("UPDATE snapshot SET kind = 'score' WHERE sha256 = ?", "which was changed"),
        ("DELETE FROM snapshot WHERE sha256 = ?", "which is missing"),
    ],
)
def test_a_snapshot_that_was_changed_is_named_with_the_edit_that_rests_on_it(log, place, statement, why):
    sha256 = log.adrs.get(A).snapshots[0].sha256
    other = {"sqlite": "x'00'", "postgresql": r"'\x00'::bytea"}[place.name]
    place.run((statement.replace("{bytes}", other), (sha256,)))
    (broken,) = log.adrs.verify()
    assert (broken.adr, broken.seq) == (A, 3)
    assert why in broken.why


def test_an_adr_that_was_moved_to_another_case_is_named(log, place):
    place.run("INSERT INTO case_file VALUES ('two', 'two', 'Two', 'x', 'Lee')")
    place.run(("UPDATE adr SET case_id = 'two' WHERE id = ?", (A,)))
    (broken,) = log.adrs.verify()
    assert str(broken) == f"{A}, edit 1: belongs to case nortia, and the list of ADRs says two."


def test_a_view_in_memory_follows_what_others_write_and_what_was_undone(log, place):
    other = open_store(place.url)
    assert [a.comments[-1].text for a in log.adrs.all()] == ["fine", "fine"]
    other.adrs.append(A, Commented(at=NOW, author="Kim", text="later"))
    assert [a.comments[-1].text for a in log.adrs.all()] == ["later", "fine"]
    with pytest.raises(RuntimeError), log.transaction():
        log.adrs.append(A, Commented(at=NOW, author="Kim", text="undone"))
        assert log.adrs.get(A).comments[-1].text == "undone"
        raise RuntimeError
    other.adrs.append(A, Commented(at=NOW, author="Kim", text="last"))
    assert [c.text for c in log.adrs.get(A).comments] == ["fine", "later", "last"]
    assert log.adrs.get(B) is log.adrs.get(B)
    other.close()


def test_a_view_in_memory_is_not_continued_by_a_record_that_was_written_anew(log, place):
    rows = stored(place)
    assert [c.text for c in log.adrs.get(A).comments] == ["fine"]
    anew = forged(A, 4, rows[2][5], "written anew")
    put(place, [*rows[:3], anew, forged(A, 5, anew[5], "and on"), *rows[4:]])
    assert [c.text for c in log.adrs.get(A).comments] == ["written anew", "and on"]


def test_a_draft_in_memory_follows_what_others_save(log, place):
    draft = log.adrs.add_draft(nortia("01J0000000000000000NORTIA3"), at=NOW, by="Tanaka")
    assert log.adrs.all()[-1].title == draft.adr.title
    other = open_store(place.url)
    other.adrs.save_draft(draft.adr.model_copy(update={"title": "Theirs"}), version=1, at=NOW, by="Lee")
    assert log.adrs.all()[-1].title == "Theirs"
    other.close()
