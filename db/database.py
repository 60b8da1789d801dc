"""One database: how it is opened, and what a transaction is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, OperationalError
from sqlalchemy.pool import StaticPool
from sqlmodel import Session

from db.migrations import migrate
from planner.errors import ConflictError, FliplineError, InputError

BUSY_TIMEOUT_MS = 10_000
_IN_FORCE = (f"busy_timeout = {BUSY_TIMEOUT_MS}", "journal_mode = WAL", "foreign_keys = ON", "recursive_triggers = ON")


class _Here(threading.local):
    """What belongs to the thread: its open transaction, and what else is to be undone with it."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.undo: list[Callable[[], None]] = []


class Database:
    """Transactions over one SQLite file: `read()` and `write()` give a session, `write()` joins one that is open.

    A joined write is a savepoint: when it fails and the caller goes on, only its own rows are undone.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(url)
        self._writer = self._engine.execution_options(immediate=True)
        self._here = _Here()
        with translated(url), self._writer.begin() as connection:
            migrate(connection)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one consistent state."""
        outer = self._here.session
        if outer is not None:
            yield outer
            return
        with translated(self.url), Session(self._engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """All or nothing: committed when the block ends, undone when it raises.

        Raises ConflictError when a row stands in the way or another writer holds the database for too long,
        InputError when something is named that is not there.
        """
        outer = self._here.session
        if outer is not None:
            with translated(self.url), outer.begin_nested(), self._undone_together():
                yield outer
            return
        with translated(self.url), Session(self._writer, expire_on_commit=False) as session:
            self._here.session = session
            try:
                with self._undone_together():
                    yield session
                    session.commit()
            finally:
                self._here.session = None
                self._here.undo.clear()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a write open: what it reads now may still be undone."""
        return self._here.session is not None

    def when_undone(self, action: Callable[[], None]) -> None:
        """Have `action` called if the open transaction is undone: for what lies outside the database, such as files.

        It runs while the write lock is still held, so nobody else can have come to rely on what it removes.
        """
        if self._here.session is not None:
            self._here.undo.append(action)

    @contextmanager
    def _undone_together(self) -> Iterator[None]:
        before = len(self._here.undo)
        try:
            yield
        except BaseException:
            while len(self._here.undo) > before:
                self._here.undo.pop()()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the database as ours, with the way out."""
    try:
        yield
    except FliplineError:
        raise
    except IntegrityError as e:
        fault = str(e.orig)
        if "FOREIGN KEY" in fault:
            raise InputError("names something that is not stored here.", where="database",
                             fix="Store the case, run or ADR first.") from e  # fmt: skip
        raise ConflictError(f"a stored row stands in the way ({fault}); nothing was stored.", where="database",
                            fix="Reload and look at what is there.") from e  # fmt: skip
    except OperationalError as e:
        if "locked" in str(e.orig) or "busy" in str(e.orig):
            raise ConflictError(f"another process has been writing for {BUSY_TIMEOUT_MS // 1000} s.", where="database",
                                fix="Try again in a moment.") from e  # fmt: skip
        raise InputError(f"cannot be used: {e.orig}.", where=where, fix="Check the path and its permissions.") from e
    except DatabaseError as e:
        raise InputError(f"is not a Flipline database: {e.orig}.", where=where, fix="Choose another file.") from e


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError("is not a database URL.", where=url, fix="Write sqlite:///path/to/flipline.db.") from None
    if parsed.get_backend_name() != "sqlite":
        raise InputError(f"{parsed.get_backend_name()} is not supported.", where="database URL",
                         fix="Write sqlite:///path/to/flipline.db.")  # fmt: skip
    options: dict[str, Any] = {}
    if parsed.database in (None, "", ":memory:"):
        options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    else:
        try:
            Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise InputError(
                f"cannot be made: {e.strerror}.", where=url, fix="Choose a folder you may write to."
            ) from e
    engine = create_engine(parsed, **options)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late for IMMEDIATE and for DDL
    for pragma in _IN_FORCE:
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Any) -> None:
    # a writer takes the lock at once: two that have read the same head would otherwise fail in the middle
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def to_text(at: datetime) -> str:
    """A moment as ISO 8601 text in UTC; raises InputError when it has no time zone."""
    if at.tzinfo is None:
        raise InputError(f"{at.isoformat()} has no time zone.", where="time", fix="Give it in UTC.")
    return at.astimezone(UTC).isoformat()


def to_time(text: str) -> datetime:
    """A moment from its stored text."""
    return datetime.fromisoformat(text)
