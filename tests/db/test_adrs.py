"""Drafts with two editors, acceptance by two people, the record that only grows, and what verify finds."""

import threading
from datetime import timedelta

import pytest
from sqlmodel import select

from db.ids import new_id
from db.store import open_store
from db.tables import DraftRow
from decisions.edits import Commented, Rejected
from decisions.record import Adr, Deployment, Status
from decisions.view import current
from planner.errors import ConflictError, InputError, NotAllowed, UnknownName
from tests.db.made import NOW
from tests.decisions.made import nortia

ID = nortia().id
BY = {"at": NOW, "author": "Sato"}


def titled(title: str, id: str = ID) -> Adr:
    return nortia(id).model_copy(update={"title": title})


def proposed(store, adr: Adr | None = None) -> Adr:
    draft = store.adrs.add_draft(adr or nortia(), at=NOW, by="Tanaka")
    return store.adrs.propose(draft.adr.id, version=draft.version, **BY)


def test_a_draft_is_saved_freely(store):
    first = store.adrs.add_draft(nortia(), at=NOW, by="Tanaka")
    second = store.adrs.save_draft(titled("Another"), version=first.version, at=NOW, by="Lee")
    assert store.adrs.draft(ID) == second
    assert (store.adrs.get(ID).title, store.adrs.edits(ID)) == ("Another", ())


def test_the_second_saver_gets_the_name_of_the_first_and_changes_nothing(store):
    store.adrs.add_draft(nortia(), at=NOW, by="Tanaka")
    store.adrs.save_draft(titled("Lee's"), version=1, at=NOW, by="Lee")
    with pytest.raises(ConflictError, match=r"Lee saved the draft on 2026-09-01 at 09:00 UTC"):
        store.adrs.save_draft(titled("Kim's"), version=1, at=NOW, by="Kim")
    with pytest.raises(ConflictError, match="Lee saved the draft"):
        store.adrs.propose(ID, version=1, **BY)
    assert store.adrs.get(ID).title == "Lee's"


def test_a_draft_stays_in_its_case_and_stands_where_it_was_begun(store):
    store.adrs.add_draft(nortia("01Z00000000000000000NORTIA"), at=NOW, by="Tanaka")
    store.adrs.add_draft(nortia(), at=NOW + timedelta(days=1), by="Tanaka")
    assert [a.id for a in store.adrs.all()] == ["01Z00000000000000000NORTIA", ID]
    with pytest.raises(NotAllowed, match="belongs to case nortia"):
        store.adrs.save_draft(nortia().model_copy(update={"case": "other"}), version=1, at=NOW, by="Lee")


def test_what_is_read_at_once_is_of_one_moment_whatever_others_write(store, place):
    store.adrs.add_draft(nortia(), at=NOW, by="Tanaka")
    other = open_store(place.url)
    with store._database.read() as session:
        before = session.exec(select(DraftRow.body)).all()
        other.adrs.save_draft(titled("Theirs"), version=1, at=NOW, by="Lee")
        assert session.exec(select(DraftRow.body)).all() == before
    other.close()
    assert store.adrs.get(ID).title == "Theirs"


def test_a_proposal_is_no_draft_any_more(store):
    proposed(store)
    assert [e.kind for e in store.adrs.edits(ID)] == ["created", "proposed"]
    with pytest.raises(NotAllowed, match="no draft any more"):
        store.adrs.save_draft(nortia(), version=1, at=NOW, by="Lee")
    with pytest.raises(InputError, match="is proposed, not a draft"):
        store.adrs.add_draft(store.adrs.get(ID), at=NOW, by="Lee")


def test_two_people_accept_the_same_adr(store):
    proposed(store)
    accepted = store.adrs.accept(ID, **BY, snapshots={"plan": b"the plan"})
    assert (accepted.number, accepted.accepted_by) == (1, "Sato")
    with pytest.raises(ConflictError, match=r"ADR-0001: Sato accepted it on 2026-09-01 at 09:00 UTC"):
        store.adrs.accept(ID, at=NOW + timedelta(minutes=1), author="Lee", snapshots={"plan": b"another"})
    assert store.adrs.get(ID) == accepted
    assert store.snapshots.get(accepted.snapshots[0].sha256) == b"the plan"


def test_acceptance_of_what_changed_meanwhile_names_the_change(store):
    proposed(store)
    store.adrs.append(ID, Commented(at=NOW, author="Lee", text="wait"))
    with pytest.raises(ConflictError, match="Lee added 'comment'"):
        store.adrs.accept(ID, **BY, seen=2)
    assert store.adrs.accept(ID, **BY, seen=3).status is Status.ACCEPTED


def test_a_draft_cannot_be_accepted_and_leaves_no_snapshot(store):
    store.adrs.add_draft(nortia(), at=NOW, by="Tanaka")
    with pytest.raises(NotAllowed, match="Propose it first"):
        store.adrs.accept(ID, **BY, snapshots={"plan": b"orphan"})
    with pytest.raises(UnknownName):
        store.snapshots.get("0" * 64)
    with store._database.read() as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM snapshot").scalar() == 0


def test_numbers_follow_each_other(store):
    for n in (1, 2, 3):
        proposed(store, titled(f"Number {n}", f"01JN{n}"))
    assert [store.adrs.accept(f"01JN{n}", **BY).number for n in (2, 1, 3)] == [1, 2, 3]
    assert [a.number for a in store.adrs.all(case="nortia", status=Status.ACCEPTED)] == [2, 1, 3]


def test_superseding_marks_both_in_one_step(store):
    proposed(store)
    store.adrs.accept(ID, **BY)
    proposed(store, titled("Simpler", "01JNEW").model_copy(update={"supersedes": (ID,)}))
    new = store.adrs.accept("01JNEW", **BY)
    old = store.adrs.get(ID)
    assert (old.status, old.superseded_by, new.supersedes) == (Status.SUPERSEDED, "01JNEW", (ID,))
    assert "Superseded by ADR-0002: Simpler" in store.adrs.edits(ID)[-1].reason


def test_superseding_what_does_not_stand_undoes_the_acceptance(store):
    proposed(store)
    store.adrs.append(ID, Rejected(**BY, reason="no money"))
    proposed(store, titled("Simpler", "01JNEW").model_copy(update={"supersedes": (ID,)}))
    with pytest.raises(NotAllowed, match="cannot be superseded: it is rejected"):
        store.adrs.accept("01JNEW", **BY)
    assert store.adrs.get("01JNEW").status is Status.PROPOSED


def test_unknown_names(store):
    with pytest.raises(UnknownName):
        store.adrs.get("01JNONE")
    with pytest.raises(InputError, match="not stored here"):
        store.adrs.add_draft(nortia().model_copy(update={"case": "nobody"}), at=NOW, by="Lee")
    store.adrs.add_draft(nortia(), at=NOW, by="Lee")
    with pytest.raises(ConflictError):
        store.adrs.add_draft(nortia(), at=NOW, by="Lee")


def test_the_view_is_computed_from_the_stored_edits(store):
    proposed(store)
    store.adrs.accept(ID, **BY)
    assert store.adrs.get(ID) == current(store.adrs.edits(ID))
    assert store.adrs.verify({ID: store.adrs.head(ID)}) == ()


def test_many_writers_lose_nothing_and_double_nothing(store, place):
    proposed(store)
    failed = []

    def write(who):
        mine = open_store(place.url)
        try:
            for i in range(8):
                mine.adrs.append(ID, Commented(at=NOW, author=who, text=f"{who} {i}"))
        except Exception as e:
            failed.append(e)
        finally:
            mine.close()

    threads = [threading.Thread(target=write, args=(f"writer {n}",)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    texts = [c.text for c in store.adrs.get(ID).comments]
    assert sorted(texts) == sorted(f"writer {n} {i}" for n in range(4) for i in range(8))
    assert store.adrs.verify() == ()


def test_one_of_two_acceptances_at_the_same_moment_wins(store):
    proposed(store)
    outcomes = []
    gate = threading.Barrier(2)

    def accept(who):
        gate.wait()
        try:
            outcomes.append(store.adrs.accept(ID, at=NOW, author=who).accepted_by)
        except ConflictError as e:
            outcomes.append(e)

    threads = [threading.Thread(target=accept, args=(who,)) for who in ("Sato", "Lee")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    winner = store.adrs.get(ID).accepted_by
    assert sorted(str(o) == winner for o in outcomes) == [False, True]
    assert any(f"{winner} accepted it" in str(o) for o in outcomes)


def test_the_newest_deployment_is_last(store):
    for version, days in (("0.33", 10), ("0.32", 0)):
        since = NOW + timedelta(days=days)
        runs = Deployment(candidate="vllm-b", since=since, engine="vllm", engine_version=version, by="Lee")
        store.deployments.add("nortia", runs)
    assert [d.engine_version for d in store.deployments.of_case("nortia")] == ["0.32", "0.33"]


def test_ids_sort_by_time_and_are_accepted_as_adr_ids():
    early, late = new_id(NOW), new_id(NOW + timedelta(milliseconds=1))
    assert early[:10] < late[:10]
    assert (len(early), len({new_id(NOW) for _ in range(100)})) == (26, 100)
    assert nortia(early).id == early
