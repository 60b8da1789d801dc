"""A team's data moves from SQLite to PostgreSQL and back: all of it, compared, or nothing."""

from __future__ import annotations

import pytest

from db.calibrations import CalibrationChoice
from db.jobs import JobState
from db.store import open_store
from db.tables import Base
from planner.errors import ConflictError, NotAllowed
from tests.db.full import DRAFT, RECORD, fill
from tests.db.made import NOW, with_nortia
from tests.db.places import OnPostgreSQL, OnSQLite


@pytest.fixture
def other(place, tmp_path, postgres):
    """An empty place in the database that `place` is not in."""
    if place.name == "postgresql":
        yield OnSQLite(tmp_path / "other.db")
        return
    name = postgres.make()
    yield OnPostgreSQL(postgres, name)
    postgres.drop(name)


@pytest.fixture
def target(other):
    target = open_store(other.url)
    yield target
    target.close()


def everything(place):
    """Rows by table as a foreign client reads them; FLAG is 0 and 1 in one and false and true in the other."""
    return {
        name: sorted(tuple(int(v) if isinstance(v, bool) else v for v in row) for row in place.run(
            f"SELECT {', '.join(c.name for c in table.columns)} FROM {name}"))
        for name, table in Base.metadata.tables.items()
    }  # fmt: skip


def test_every_row_of_every_table_arrives(store, place, target, other):
    fill(store)
    moved = store.copy_to(target)
    there = everything(other)
    assert there == everything(place)
    assert moved.rows == {name: len(rows) for name, rows in there.items()}
    assert all(moved.rows.values()), "a table without rows shows nothing: see tests/db/full.py"
    assert moved.heads == store.adrs.heads() == target.adrs.heads()
    assert target.adrs.verify(store.adrs.heads(), nothing_after=True) == ()
    assert target.snapshots.get(target.adrs.get(RECORD).snapshots[0].sha256) == b"\x00\xff exact bytes"


def test_work_goes_on_where_it_was_moved_to(store, target):
    fill(store)
    store.copy_to(target)
    target.calibrations.add(CalibrationChoice(evidence="e1", used=False, reason="again", author="Kim", at=NOW))
    assert [c.reason for c in target.calibrations.all()] == ["the fan", "mended", "again"]
    target.adrs.propose(DRAFT, version=1, at=NOW, author="Lee")
    assert target.adrs.accept(DRAFT, at=NOW, author="Lee").number == 2
    with pytest.raises(ConflictError, match="adr_edit is append-only"), target._database.write() as session:
        session.connection().exec_driver_sql("DELETE FROM adr_edit")
    assert store.calibrations.all()[-1].reason == "mended"  # the old one is as it was


def test_a_target_that_holds_anything_is_refused(store, other):
    fill(store)
    target = with_nortia(other.url)
    with pytest.raises(NotAllowed, match="holds 1 row in case_file already"):
        store.copy_to(target)
    assert target.adrs.all() == ()
    target.close()


def test_a_broken_log_goes_nowhere(store, place, target):
    fill(store)
    place.lift("adr_edit")
    place.run("UPDATE adr_edit SET body = replace(body, 'Sato', 'Kato') WHERE seq = 3")
    with pytest.raises(NotAllowed, match="edit 3: was changed after it was written") as error:
        store.copy_to(target)
    assert error.value.where == store.url  # it is the old one that is broken
    assert target.cases.all() == ()


def test_while_a_job_runs_nothing_moves(store, target):
    fill(store)
    job = store.jobs.get("j1").model_copy(update={"id": "j2", "state": JobState.QUEUED})
    store.jobs.add(job)
    with pytest.raises(NotAllowed, match="a job is still running: j2"):
        store.copy_to(target)


def test_what_does_not_arrive_as_it_was_sent_undoes_the_move(store, target, other):
    fill(store)
    if other.name == "sqlite":
        other.run("CREATE TRIGGER alters AFTER INSERT ON contract BEGIN UPDATE contract SET body = '{}'; END")
    else:
        other.run(
            "CREATE FUNCTION alter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.body := '{}'; RETURN NEW; END $$",
            "CREATE TRIGGER alters BEFORE INSERT ON contract FOR EACH ROW EXECUTE FUNCTION alter()",
        )
    with pytest.raises(ConflictError, match="contract did not arrive as it was sent; nothing was stored"):
        store.copy_to(target)
    assert target.cases.all() == ()
