"""One database: how it is opened, and what a transaction is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlmodel import Session

from db.engines import engine_of, must_suit, shown
from db.faults import translated
from db.migrations import migrate
from planner.errors import InputError


class _Here(threading.local):
    """What belongs to the thread: its open transaction, and what else is to be undone with it."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.undo: list[Callable[[], None]] = []
        self.done: list[Callable[[], None]] = []


class Database:
    """Transactions over one SQLite file or PostgreSQL database, by `read()` and `write()`; each gives a session.

    A write joins one that is open in its thread, as a savepoint: when it fails and the caller goes on, only its own
    rows are undone.
    """

    def __init__(self, url: str) -> None:
        self.url = shown(url)
        self._engine = engine_of(url)
        self._writer = self._engine.execution_options(writes=True)
        self._here = _Here()
        try:
            with translated(self.url), self._writer.begin() as connection:
                must_suit(connection)
                migrate(connection)
        except BaseException:
            self._engine.dispose()
            raise

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
                stored, self._here.done = self._here.done, []
        for action in stored:
            action()

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

    def when_stored(self, action: Callable[[], None]) -> None:
        """Have `action` called once the open transaction is committed, at once where none is open; not if it is undone.

        It runs after the write lock was let go of, so it may take its time.
        """
        if self._here.session is not None:
            self._here.done.append(action)
        else:
            action()

    @contextmanager
    def _undone_together(self) -> Iterator[None]:
        before, waiting = len(self._here.undo), len(self._here.done)
        try:
            yield
        except BaseException:
            del self._here.done[waiting:]
            while len(self._here.undo) > before:
                self._here.undo.pop()()
            raise

    def close(self) -> None:
        """Let go of the file or the connections."""
        self._engine.dispose()


def to_text(at: datetime) -> str:
    """A moment as ISO 8601 text in UTC; raises InputError when it has no time zone or no UTC."""
    if at.tzinfo is None:
        raise InputError(f"{at.isoformat()} has no time zone.", where="time", fix="Give it in UTC.")
    try:
        return at.astimezone(UTC).isoformat()
    except OverflowError:  # the first and the last day of the calendar
        raise InputError(f"{at.isoformat()} has no UTC.", where="time", fix="Give the year of the event.") from None


def to_time(text: str) -> datetime:
    """A moment from its stored text."""
    return datetime.fromisoformat(text)
