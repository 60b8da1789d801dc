"""The whole store: one database, one store per aggregate, one transaction over several of them on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from db.adrs import AdrStore
from db.calibrations import CalibrationStore
from db.cases import CaseStore
from db.database import Database
from db.deployments import DeploymentStore
from db.evidence import EvidenceStore
from db.jobs import JobStore
from db.migrations import MIGRATIONS
from db.moving import Content, copy, rows_of
from db.plans import PlanStore
from db.recounts import RecountStore
from db.runs import RunStore
from db.snapshots import SnapshotStore
from db.verdicts import VerdictStore
from planner.errors import NotAllowed

NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class Description(NamedTuple):
    """A database in words. `schema` is the name of its newest migration."""

    url: str
    backend: str
    schema: str
    content: Content


class Store:
    """Everything that is kept. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.cases = CaseStore(self._database)
        self.plans = PlanStore(self._database)
        self.evidence = EvidenceStore(self._database)
        self.runs = RunStore(self._database, self.evidence)
        self.recounts = RecountStore(self._database)
        self.snapshots = SnapshotStore(self._database)
        self.adrs = AdrStore(self._database, self.snapshots)
        self.deployments = DeploymentStore(self._database)
        self.verdicts = VerdictStore(self._database)
        self.calibrations = CalibrationStore(self._database)
        self.jobs = JobStore(self._database)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is stored inside the block is stored, or none of it."""
        with self._database.write():
            yield

    @property
    def in_transaction(self) -> bool:
        """This thread is inside `transaction`: what it reads may yet be undone."""
        return self._database.in_transaction

    def when_undone(self, action: Callable[[], None]) -> None:
        """Have `action` called if the open transaction is undone; it removes what was put beside the database."""
        self._database.when_undone(action)

    def when_stored(self, action: Callable[[], None]) -> None:
        """Have `action` called once what is being stored is stored; not if the open transaction is undone."""
        self._database.when_stored(action)

    @property
    def url(self) -> str:
        """Where everything is kept, without its password."""
        return self._database.url

    def description(self) -> Description:
        """Which database of which version keeps it, the newest migration, and what is in there."""
        with self._database.read() as session:
            connection = session.connection()
            version = ".".join(map(str, connection.dialect.server_version_info or ()))
            content = Content(rows_of(connection), self.adrs.heads())
        return Description(self.url, f"{NAMES[connection.dialect.name]} {version}", MIGRATIONS[-1].__name__, content)

    def copy_to(self, target: Store) -> Content:
        """Copy everything into an empty store, or nothing; what arrived was compared with what was sent.

        Raises NotAllowed when the target is not empty, this log is broken, or a job is running; ConflictError when a
        row did not arrive as it was sent.
        """
        with self._database.write():  # nobody saves meanwhile
            running = self.jobs.active()
            if running:
                raise NotAllowed(f"a job is still running: {running[0].id}.", where=self.url,
                                 fix="Wait for its end or cancel it: its results would go in here.")  # fmt: skip
            return copy(self._database, target._database, self.adrs.heads())

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


def open_store(url: str) -> Store:
    """Open a database and bring its schema up to date.

    `url` is sqlite:///path, whose file is made when it is not there, or postgresql+psycopg://user@host/database.

    Raises InputError for a URL or file that is no database of ours, SchemaTooNew for one of a newer Flipline.
    """
    return Store(url)
