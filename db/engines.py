"""From a URL to an engine; a URL as it may be printed, without its password."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import StaticPool

from db.dialects import DIALECTS, OLDEST_POSTGRESQL, POSTGRESQL, SQLITE, Dialect
from planner.errors import InputError

CONNECT_TIMEOUT_S = 10
IN_MEMORY = (None, "", ":memory:")  # what a SQLite URL has for a file
_WRITE = "Write sqlite:///path/to/flipline.db or postgresql+psycopg://user:password@host/database."
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_SECRETS = ("password", "sslpassword", "passfile")


def parsed(url: str) -> URL:
    """The parts of a database URL.

    Raises InputError, never quoting what may hold a password.
    """
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError("is not a database URL.", where="database URL", fix=_WRITE) from None
    found = found.set(drivername=_DRIVERS.get(found.drivername, found.drivername))
    if "@" in (found.host or ""):
        raise InputError("has more than one @.", where="database URL", fix="Write an @ of the password as %40.")
    if found.get_backend_name() not in DIALECTS:
        raise InputError(f"{found.get_backend_name()} is not supported.", where="database URL", fix=_WRITE)
    return found


def shown(url: str) -> str:
    """The URL with *** for the password, to be printed."""
    found = parsed(url)
    return found.difference_update_query(_SECRETS).render_as_string(hide_password=True)


def file_of(url: str) -> str | None:
    """The file that a SQLite URL names, "" for a database in memory; None for another kind of database."""
    found = parsed(url)
    if found.get_backend_name() != SQLITE.name:
        return None
    return "" if found.database in IN_MEMORY else str(found.database)


def engine_of(url: str) -> Engine:
    """An engine whose transactions take the write lock at once when they are to write (execution option `writes`).

    Raises InputError for a URL of another database, a folder that cannot be made, a driver that is not installed.
    """
    target = parsed(url)
    dialect = DIALECTS[target.get_backend_name()]
    try:
        engine = create_engine(target, **_options(target))
    except ModuleNotFoundError:
        raise InputError("needs the package psycopg, which is not installed.", where=shown(url),
                         fix="Run pip install -r requirements-postgres.txt.") from None  # fmt: skip
    # many rows go in as one statement: one journey, and the counter of changes is raised once
    engine.dialect.use_insertmanyvalues_wo_returning = dialect is POSTGRESQL
    _listen(engine, dialect)
    return engine


def must_suit(connection: Connection) -> None:
    """Raises InputError for a PostgreSQL that is too old, or one that does not keep text as UTF-8."""
    if connection.dialect.name != POSTGRESQL.name:
        return
    version = (connection.dialect.server_version_info or (0,))[0]
    if version < OLDEST_POSTGRESQL:
        raise InputError(f"is PostgreSQL {version}; Flipline needs {OLDEST_POSTGRESQL} or newer.", where="database",
                         fix="Choose a newer server.")  # fmt: skip
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        raise InputError(f"keeps its text as {encoding}.", where="database",
                         fix="Make a database with ENCODING 'UTF8'.")  # fmt: skip


def _options(target: URL) -> dict[str, Any]:
    if target.get_backend_name() == POSTGRESQL.name:
        # the pool asks first, so that a server which was started anew meanwhile gives no error
        return {
            "pool_pre_ping": True,
            "connect_args": {
                "connect_timeout": CONNECT_TIMEOUT_S, "application_name": "flipline", "client_encoding": "utf8",
            },
        }  # fmt: skip
    if target.database in IN_MEMORY:
        return {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    try:
        Path(str(target.database)).parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"cannot be made: {e.strerror}.", where=str(target.database),
                         fix="Choose a folder you may write to.") from e  # fmt: skip
    return {}


def _listen(engine: Engine, dialect: Dialect) -> None:
    def on_connect(connection: Any, _record: Any) -> None:
        if dialect is POSTGRESQL:
            connection.autocommit = True  # or what is set here ends with the first transaction
        else:
            connection.isolation_level = None  # the driver's own BEGIN comes too late for IMMEDIATE and for DDL
            # a byte that was changed in the file may be no UTF-8 any more; verify is to name its row, not to fail
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        cursor = connection.cursor()
        for statement in dialect.on_connect:
            cursor.execute(statement)
        cursor.close()
        if dialect is POSTGRESQL:
            connection.autocommit = False

    def on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql(dialect.begin_write if writes else dialect.begin_read)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
