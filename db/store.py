"""The whole store: one database, one store per aggregate, one transaction over several of them on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from db.adrs import AdrStore
from db.calibrations import CalibrationStore
from db.cases import CaseStore
from db.database import Database
from db.deployments import DeploymentStore
from db.evidence import EvidenceStore
from db.jobs import JobStore
from db.plans import PlanStore
from db.recounts import RecountStore
from db.runs import RunStore
from db.snapshots import SnapshotStore
from db.verdicts import VerdictStore


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

    def when_undone(self, action: Callable[[], None]) -> None:
        """Have `action` called if the open transaction is undone; it removes what was put beside the database."""
        self._database.when_undone(action)

    def when_stored(self, action: Callable[[], None]) -> None:
        """Have `action` called once what is being stored is stored; not if the open transaction is undone."""
        self._database.when_stored(action)

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


def open_store(url: str) -> Store:
    """Open `sqlite:///path` (made when it is not there) and bring its schema up to date.

    Raises InputError for a URL or file that is no database of ours, SchemaTooNew for one of a newer Flipline.
    """
    return Store(url)
