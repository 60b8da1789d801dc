"""The chain finds every change, removal inside, and re-ordering; a cut-off tail only against a known head."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.chain import GENESIS, Entry, head, link, verify


def chain_of(bodies: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for body in bodies:
        entries.append(link("01J0", body, entries[-1] if entries else None))
    return entries


BODIES = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20), min_size=2, max_size=8)


def test_the_hash_is_the_written_rule():
    entry = link("01J0", '{"kind":"proposed"}')
    told = hashlib.sha256(("0" * 64 + '\n01J0\n1\n{"kind":"proposed"}').encode()).hexdigest()
    assert (entry.seq, entry.prev, entry.hash) == (1, "0" * 64, told)
    assert head([]) == GENESIS


@settings(max_examples=60)
@given(BODIES)
def test_an_untouched_chain_is_whole(bodies):
    entries = chain_of(bodies)
    assert verify(entries) is None
    assert verify(entries, known_head=head(entries)) is None


@settings(max_examples=100)
@given(BODIES, st.data())
def test_any_changed_field_is_found_at_its_place(bodies, data):
    entries = chain_of(bodies)
    at = data.draw(st.integers(0, len(entries) - 1))
    field = data.draw(st.sampled_from(["adr", "seq", "body", "prev", "hash"]))
    old = getattr(entries[at], field)
    entries[at] = entries[at]._replace(**{field: old + 1 if field == "seq" else old + "x"})
    broken = verify(entries)
    assert broken is not None
    assert broken.seq == (at + 1 if field != "adr" or at else 1)


@settings(max_examples=100)
@given(BODIES, st.data())
def test_removal_inside_and_reordering_are_found(bodies, data):
    entries = chain_of([f"{i}{b}" for i, b in enumerate(bodies)])
    at = data.draw(st.integers(0, len(entries) - 2))
    assert verify(entries[:at] + entries[at + 1 :]).seq == at + 1
    other = data.draw(st.integers(at + 1, len(entries) - 1))
    entries[at], entries[other] = entries[other], entries[at]
    assert verify(entries).seq == at + 1


def test_renumbering_after_a_removal_does_not_help():
    entries = chain_of(["a", "b", "c"])
    forged = [entries[0], entries[2]._replace(seq=2)]
    assert str(verify(forged)) == "01J0, edit 2: does not follow the edit before it."


def test_a_cut_tail_is_found_only_against_a_known_head():
    entries = chain_of(["a", "b", "c"])
    assert verify(entries[:2]) is None
    broken = verify(entries[:2], known_head=head(entries))
    assert broken.seq == 3
    assert "not in the log" in broken.why
    assert verify([*entries, link("01J0", "d", entries[-1])], known_head=head(entries)) is None


def test_a_well_formed_addition_is_found_when_nothing_may_come_after_the_known_head():
    entries = chain_of(["a", "b", "c"])
    longer = [*entries, link("01J0", "d", entries[-1])]
    assert verify(entries, known_head=head(entries), nothing_after=True) is None
    assert verify(longer, known_head=head(entries), nothing_after=True).seq == 4
    assert verify(longer, known_head=GENESIS, nothing_after=True).seq == 1
    assert verify([], known_head=GENESIS, nothing_after=True) is None


def test_a_record_that_was_written_anew_from_an_edit_on_is_found_only_against_a_known_head():
    entries = chain_of(["a", "b", "c"])
    anew = [entries[0], second := link("01J0", "B", entries[0]), link("01J0", "c", second)]
    assert verify(anew) is None
    assert "not in the log" in verify(anew, known_head=head(entries)).why


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_single_flipped_bit_in_a_body_is_found(where):
    entries = chain_of(["aaa", "bbb", "ccc"])
    body = entries[where].body
    entries[where] = entries[where]._replace(body=chr(ord(body[0]) ^ 1) + body[1:])
    assert str(verify(entries)) == f"01J0, edit {where + 1}: was changed after it was written."
