"""What a database refuses is one sentence with the way out, and no password is ever in it."""

from __future__ import annotations

import sqlite3
import sys
import threading

import pytest
from sqlalchemy.exc import OperationalError

from db.cases import Case
from db.dialects import DIALECTS, POSTGRESQL, SQLITE
from db.engines import must_suit, shown
from db.faults import translated
from db.store import open_store
from planner.errors import ConflictError, InputError
from tests.db.made import NOW, with_nortia

SECRET = "geheim%2Fs"


@pytest.fixture
def role(postgres):
    """A role with a password, and a database that it owns."""
    database = postgres.make()
    name = f"role_{database}"
    postgres.do(f"CREATE ROLE {name} LOGIN PASSWORD 'geheim/s'", f"ALTER DATABASE {database} OWNER TO {name}")
    yield name, database
    postgres.drop(database)
    postgres.do(f"DROP ROLE {name}")


def failure(url):
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert "geheim" not in f"{caught.value} {caught.value.__cause__}"
    return str(caught.value)


def test_a_role_with_its_password_opens_its_database(postgres, role):
    name, database = role
    store = open_store(postgres.url(database, name, "geheim/s"))
    assert SECRET not in store.url
    assert "***" in store.url
    store.close()


def test_a_wrong_password(postgres, role):
    assert "refuses the user or the password" in failure(postgres.url(role[1], role[0], "geheim?"))


def test_a_user_that_there_is_not(postgres, role):
    assert "refuses the user or the password" in failure(postgres.url(role[1], "nobody_here", "geheim/s"))


def test_a_database_that_there_is_not(postgres):
    assert "there is no such database" in failure(postgres.url("flipline_nowhere"))


@pytest.mark.parametrize("host", ["?host=/nowhere", "127.0.0.1:1/x", "no-such-host.invalid/x"])
def test_a_server_that_cannot_be_reached(host):
    assert "cannot be reached" in failure(f"postgresql+psycopg://u:{SECRET}@{host}")


def test_a_role_that_may_not_create_tables(postgres, role):
    name, database = role
    postgres.do(f"ALTER DATABASE {database} OWNER TO postgres", database=database)
    assert "this role may not do that (permission denied for schema public)" in failure(
        postgres.url(database, name, "geheim/s")
    )


def test_a_role_that_may_only_read_reads(postgres, role):
    name, database = role
    with_nortia(postgres.url(database)).close()
    postgres.do(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", database=database)
    store = open_store(postgres.url(database, name, "geheim/s"))
    assert [c.slug for c in store.cases.all()] == ["nortia"]
    with pytest.raises(InputError, match="this role may not do that"):
        store.cases.add(Case(id="x", slug="x", title="X", created_at=NOW, created_by="Lee"))
    store.close()


def test_a_database_that_can_only_be_read(postgres, role):
    _, database = role
    with_nortia(postgres.url(database)).close()
    postgres.do(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    store = open_store(postgres.url(database))
    with pytest.raises(InputError, match="can only be read"):
        store.cases.add(Case(id="x", slug="x", title="X", created_at=NOW, created_by="Lee"))
    store.close()


def test_a_database_that_does_not_keep_utf8(postgres, role):
    name = f"ascii_{role[1]}"
    postgres.do(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
    assert "keeps its text as SQL_ASCII" in failure(postgres.url(name))
    postgres.drop(name)


def test_a_server_that_is_too_old():
    class Old:
        class dialect:
            name, server_version_info = "postgresql", (14, 9)

    with pytest.raises(InputError, match="is PostgreSQL 14; Flipline needs 15 or newer"):
        must_suit(Old)


def test_without_the_driver_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install -r requirements-postgres.txt" in failure(f"postgresql://u:{SECRET}@host/x")


def test_an_at_sign_in_a_password_is_asked_to_be_written_otherwise():
    assert "Write an @ of the password as %40" in failure("postgresql://u:ge@geheim@host/x")


def test_a_password_is_not_shown_wherever_it_stands():
    assert shown("postgres://u:geheim@h/x?password=geheim&sslmode=require") == (
        "postgresql+psycopg://u:***@h/x?sslmode=require"
    )


def test_a_connection_that_the_server_ends_is_a_sentence_and_the_next_call_works(postgres, role):
    store = with_nortia(postgres.url(role[1]))
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{role[1]}'"
    with pytest.raises(InputError, match="cannot be reached"), store.transaction():
        store.cases.all()
        postgres.do(kill)
        store.cases.all()
    postgres.do(kill)
    assert [c.slug for c in store.cases.all()] == ["nortia"]
    store.close()


def test_a_writer_that_others_keep_waiting_hears_so(store, place, monkeypatch):
    quick = {"sqlite": SQLITE._replace(on_connect=("PRAGMA busy_timeout = 50",)),
             "postgresql": POSTGRESQL._replace(on_connect=("SET lock_timeout = 50",))}[place.name]  # fmt: skip
    monkeypatch.setitem(DIALECTS, place.name, quick)
    impatient = open_store(place.url)
    heard = []

    def write():
        try:
            impatient.cases.add(Case(id="x", slug="x", title="X", created_at=NOW, created_by="Lee"))
        except ConflictError as e:
            heard.append(str(e))

    with store.transaction():
        store.cases.all()  # the lock is taken with the first statement
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert heard == ["database: another process has been writing for 10 s. Try again in a moment."]
    impatient.close()


def test_text_that_postgresql_cannot_keep(postgres, role):
    store = with_nortia(postgres.url(role[1]))
    with pytest.raises(InputError, match="holds what the database cannot keep"):
        store.cases.add(Case(id="x", slug="x", title="X", created_at=NOW, created_by="Lee\0"))
    store.close()


def test_a_full_disk_is_said_although_leaving_the_savepoint_failed_after_it():
    full = OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
    gone = OperationalError("ROLLBACK TO", {}, sqlite3.OperationalError("no such savepoint: sa_savepoint_1"))
    with pytest.raises(InputError, match=r"takes no more \(database or disk is full\)"), translated("sqlite:///f.db"):
        try:
            raise full
        except OperationalError:  # SQLite has undone the whole transaction, with all savepoints of it
            raise gone  # noqa: B904 - as SQLAlchemy raises it: the first is its context, not its cause


def test_a_disk_that_gives_nothing_is_no_matter_of_the_path():
    broken = OperationalError("PRAGMA", {}, sqlite3.OperationalError("disk I/O error"))
    with pytest.raises(InputError, match="Make room on its disk, and see that it is sound"), translated("f.db"):
        raise broken
