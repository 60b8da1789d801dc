"""Every store test runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from db.store import Store, open_store
from tests.db.made import with_nortia
from tests.db.places import OnPostgreSQL, OnSQLite, Place
from tests.postgres import Server


@pytest.fixture(scope="session")
def filled(postgres: Server) -> Iterator[str]:
    """A database that holds the schema and the Nortia case."""
    name = postgres.make()
    with_nortia(postgres.url(name)).close()
    yield name
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place for a database that nobody has opened yet."""
    if request.param == "sqlite":
        yield OnSQLite(tmp_path / "flipline.db")
        return
    running: Server = request.getfixturevalue("postgres")
    name = running.make()
    yield OnPostgreSQL(running, name)
    running.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where `store` is kept: its URL, and the way in past the store."""
    if request.param == "sqlite":
        with_nortia(f"sqlite:///{tmp_path}/flipline.db").close()
        yield OnSQLite(tmp_path / "flipline.db")
        return
    running: Server = request.getfixturevalue("postgres")
    # one for all, put back after each: making one by copying takes longer than most tests
    here = OnPostgreSQL(running, request.getfixturevalue("filled"))
    yield here
    here.put_back()


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    store = open_store(place.url)
    yield store
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "flipline.db"
