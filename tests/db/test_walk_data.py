"""What the first Flipline stored is read by this one, every byte kept: its schema as a file, its rows as it wrote."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db.database import Database
from db.migrations import MIGRATIONS
from db.store import open_store
from db.tables import Base
from decisions import chain
from decisions.edits import edit_to_json
from decisions.record import Status
from planner.errors import ConflictError
from tests.decisions.made import accepted_edits, nortia

SCHEMA = Path(__file__).with_name("walk_schema.sql")
ADR = nortia().id
AT = "2026-09-01T09:00:00+00:00"
PLAN = b"title: PoC\n"


def rows():
    """Statements with the rows of a case that was decided: three edits, a snapshot, a verdict, a deployment."""
    yield "INSERT INTO case_file VALUES (?, ?, ?, ?, ?)", ("nortia", "nortia", "Nortia", AT, "Sato")
    body = b'{"peak_users_max":50}'
    yield ("INSERT INTO requirements_version VALUES (?, ?, ?, ?, ?, ?, ?)",
           ("nortia", 1, body, hashlib.sha256(body).hexdigest(), None, "Sato", AT))  # fmt: skip
    yield "INSERT INTO adr VALUES (?, ?, ?, ?)", (ADR, "nortia", AT, "Sato")
    last = None
    snapshot = hashlib.sha256(PLAN).hexdigest()
    for edit in accepted_edits():
        body = edit_to_json(edit).replace("a" * 64, snapshot)
        last = chain.link(ADR, body, last)
        number = 7 if edit.kind == "accepted" else None
        yield ("INSERT INTO adr_edit VALUES (?, ?, ?, ?, ?, ?)",
               (ADR, last.seq, number, last.body, last.prev, last.hash))  # fmt: skip
    yield "INSERT INTO snapshot VALUES (?, ?, ?)", (snapshot, "plan", PLAN)
    yield ("INSERT INTO verdict_history (case_id, adr_id, condition, at, state, value, sentence, evidence) "
           "VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ("nortia", ADR, "few-users", AT, "armed", 12.5, "far", "[]"))  # fmt: skip
    yield ("INSERT INTO evidence (id, case_id, metric, statistic, kind, at, body, sha256) "
           "VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ("e", "nortia", "m", "p95", "measured", AT, "{}", "0"))  # fmt: skip


@pytest.fixture
def walk(empty, monkeypatch):
    """A database as the walk left it; on PostgreSQL, where none was then, its schema by its one migration."""
    if empty.name == "sqlite":
        raw = sqlite3.connect(empty.path)
        raw.executescript(SCHEMA.read_text(encoding="utf-8"))
        raw.execute("INSERT INTO migration VALUES ('m001_the_first_tables', ?)", (AT,))
        raw.commit()
        raw.close()
    else:
        with monkeypatch.context() as then:
            then.setattr("db.migrations.MIGRATIONS", MIGRATIONS[:1])
            Database(empty.url).close()
    empty.run(*rows())
    return empty


def test_data_of_the_walk_is_kept_and_its_chain_whole(walk):
    before = walk.run("SELECT * FROM adr_edit ORDER BY seq"), walk.run("SELECT * FROM snapshot")
    store = open_store(walk.url)
    assert (walk.run("SELECT * FROM adr_edit ORDER BY seq"), walk.run("SELECT * FROM snapshot")) == before
    adr = store.adrs.get(ADR)
    assert (adr.number, adr.status, adr.accepted_at) == (7, Status.ACCEPTED, datetime(2026, 9, 2, 9, tzinfo=UTC))
    assert store.adrs.verify(store.adrs.heads(), nothing_after=True) == ()
    assert store.snapshots.get(adr.snapshots[0].sha256) == PLAN
    assert [(j.state, j.value, j.cause.kind) for j in store.verdicts.history("nortia")] == [("armed", 12.5, "unknown")]
    assert walk.run("SELECT * FROM evidence_revision") == [("nortia", 1)]
    with pytest.raises(ConflictError, match="append-only"), store._database.write() as session:
        session.connection().exec_driver_sql("UPDATE verdict_history SET state = 'fired'")
    store.close()


def test_it_has_the_tables_and_columns_of_a_new_one(walk):
    open_store(walk.url).close()
    made = walk.columns()
    assert made.pop("migration") == {"name", "applied_at"}
    assert made == {t.name: {c.name for c in t.columns} for t in Base.metadata.sorted_tables}


def test_it_moves_to_the_team_database(walk, postgres, tmp_path):
    old, name = open_store(walk.url), postgres.make()
    new = open_store(postgres.url(name))
    old.copy_to(new)
    assert new.adrs.get(ADR) == old.adrs.get(ADR)
    assert new.adrs.heads() == old.adrs.heads()
    old.close()
    new.close()
    postgres.drop(name)
