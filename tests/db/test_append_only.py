"""History cannot be rewritten through SQL, by a client of ours or by a foreign one with other settings."""

import sqlite3
from datetime import timedelta

import pytest

from db.verdicts import Judged
from decisions.record import Deployment
from planner.errors import ConflictError
from tests.db.made import NOW
from tests.db.test_cases import requirements
from tests.decisions.made import nortia

ID = nortia().id


@pytest.fixture
def full(store):
    store.adrs.add_draft(nortia(), at=NOW, by="Sato")
    store.adrs.propose(ID, version=1, at=NOW, author="Sato")
    store.adrs.accept(ID, at=NOW, author="Sato", snapshots={"plan": b"plan"})
    store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato")
    store.deployments.add("nortia", Deployment(candidate="vllm-b", since=NOW, engine="vllm", by="Lee"))
    store.verdicts.record("nortia", [Judged(condition="few-users", adr=ID, at=NOW, state="armed", sentence="far")])
    return store


TABLES = ("adr_edit", "snapshot", "requirements_version", "deployment", "verdict_history")
TEXT_COLUMN = {"adr_edit": "body", "snapshot": "kind", "requirements_version": "author", "deployment": "body",
               "verdict_history": "state"}  # fmt: skip


def dump(raw, table):
    return raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize("table", TABLES)
def test_update_delete_and_replace_are_refused(full, path, table, recursive):
    column = TEXT_COLUMN[table]
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = dump(raw, table)
    assert before
    for statement in (
        f"UPDATE {table} SET {column} = 'forged'",
        f"UPDATE OR REPLACE {table} SET {column} = 'forged'",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
        f"REPLACE INTO {table} SELECT * FROM {table}",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=f"{table} is append-only"):
            raw.execute(statement)
        assert dump(raw, table) == before
    raw.close()


@pytest.mark.parametrize(
    "values",
    [
        f"'{ID}', 3, NULL, 'forged', 'p', 'h'",  # the same place
        f"'{ID}', 9, 1, 'forged', 'p', 'h'",  # the same number: would push the accepted edit out
        f"'{ID}', 9, NULL, 'forged', 'p', (SELECT hash FROM adr_edit WHERE seq = 1)",  # the same hash
    ],
)
def test_a_replacement_by_any_unique_column_is_refused(full, path, values):
    raw = sqlite3.connect(path, isolation_level=None)
    before = dump(raw, "adr_edit")
    with pytest.raises(sqlite3.IntegrityError, match="adr_edit is append-only"):
        raw.execute(f"INSERT OR REPLACE INTO adr_edit VALUES ({values})")
    assert dump(raw, "adr_edit") == before
    raw.close()


def test_through_our_own_door_it_is_a_conflict(full):
    with pytest.raises(ConflictError, match="append-only"), full._database.write() as session:
        session.connection().exec_driver_sql("DELETE FROM adr_edit")
    assert len(full.adrs.edits(ID)) == 3


def test_only_what_changed_is_written_to_the_verdict_history(full):
    later = NOW + timedelta(days=1)
    same = Judged(condition="few-users", adr=ID, at=later, state="armed", sentence="far, in other words")
    fired = same.model_copy(update={"state": "fired", "value": 5.0, "distance": 0.0, "evidence": ("e",)})
    assert full.verdicts.record("nortia", [same]) == ()
    assert full.verdicts.record("nortia", [fired, fired]) == (fired,)
    assert [j.state for j in full.verdicts.history("nortia", adr=ID)] == ["armed", "fired"]
    assert full.verdicts.last_states("nortia", ID) == {"few-users": "fired"}
