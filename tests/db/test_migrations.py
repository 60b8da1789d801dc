"""The schema: made from nothing, made once, and the same as the row classes say."""

import sqlite3
import threading
from contextlib import closing

import pytest

from db.migrations import MIGRATIONS
from db.store import open_store
from db.tables import Base
from planner.errors import InputError, SchemaTooNew
from tests.db.made import with_nortia


def test_the_schema_is_what_the_rows_say(store, place):
    made = place.columns()
    assert made.pop("migration") == {"name", "applied_at"}
    assert made == {t.name: {c.name for c in t.columns} for t in Base.metadata.sorted_tables}


def test_text_is_sorted_by_code_point_whatever_the_locale_of_the_server(store, place):
    if place.name == "postgresql":
        query = """SELECT DISTINCT collation_name FROM information_schema.columns
                   WHERE table_schema = 'public' AND data_type = 'text'"""
        assert place.run(query) == [("C",)]
    place.run(*(("INSERT INTO contract VALUES (?, '{}')", (key,)) for key in ("a", "B", "é")))
    assert [r[0] for r in place.run("SELECT hash FROM contract ORDER BY hash")] == ["B", "a", "é"]


def test_opening_again_changes_nothing_and_keeps_the_data(store, place):
    before = place.columns()
    store.close()
    again = open_store(place.url)
    assert [c.slug for c in again.cases.all()] == ["nortia"]
    again.close()
    assert place.columns() == before
    assert [r[0] for r in place.run("SELECT name FROM migration ORDER BY name")] == [m.__name__ for m in MIGRATIONS]


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty, monkeypatch):
    def m002_breaks(connection):
        connection.exec_driver_sql("CREATE TABLE half (id TEXT)")
        connection.exec_driver_sql("INSERT INTO no_such_table VALUES (1)")

    with_nortia(empty.url).close()
    monkeypatch.setattr("db.migrations.MIGRATIONS", [*MIGRATIONS, m002_breaks])
    with pytest.raises(InputError, match="no_such_table"):
        open_store(empty.url)
    assert "half" not in empty.columns()


def test_a_database_of_a_newer_flipline_is_not_touched(store, place):
    store.close()
    place.run("INSERT INTO migration VALUES ('m900_from_the_future', 'x')")
    with pytest.raises(SchemaTooNew, match="m900_from_the_future"):
        open_store(place.url)


def test_several_that_open_an_empty_database_at_once_make_one(empty):
    failed = []

    def go():
        try:
            open_store(empty.url).close()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=go) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    assert "adr_edit" in empty.columns()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "is not a database URL"),
        ("mysql://somewhere/db", "mysql is not supported"),
    ],
)
def test_a_url_that_is_none_of_ours(url, sentence):
    with pytest.raises(InputError, match=sentence):
        open_store(url)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "notes.db").write_text("not a database at all " * 100)
    with pytest.raises(InputError, match="not a Flipline database"):
        open_store(f"sqlite:///{tmp_path}/notes.db")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be made"):
        open_store(f"sqlite:///{tmp_path}/file/flipline.db")


def test_pragmas_are_in_force(path):
    store = with_nortia(f"sqlite:///{path}")
    with store._database.read() as session:

        def ask(name):
            return session.connection().exec_driver_sql(f"PRAGMA {name}").scalar()

        assert (ask("journal_mode"), ask("foreign_keys"), ask("recursive_triggers")) == ("wal", 1, 1)
    store.close()


def test_a_file_of_another_program_is_left_as_it_is(tmp_path):
    file = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("CREATE TABLE bookmark (url TEXT)")
        theirs.commit()
    with pytest.raises(InputError, match="belongs to another program: it holds the table 'bookmark'"):
        open_store(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as theirs:
        assert theirs.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmark",)]
