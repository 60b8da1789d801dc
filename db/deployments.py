"""What runs in production, and what ran before."""

from __future__ import annotations

from sqlmodel import col, select

from db.database import Database, to_text
from db.tables import DeploymentRow
from decisions.record import Deployment
from planner.frozen import canonical_json


class DeploymentStore:
    """Deployments of a case; only added to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, case: str, deployment: Deployment) -> None:
        """Record a deployment; raises InputError for an unknown case."""
        body = canonical_json(deployment.model_dump(mode="json"))
        with self._database.write() as session:
            session.add(DeploymentRow(case_id=case, since=to_text(deployment.since), body=body))

    def of_case(self, case: str) -> tuple[Deployment, ...]:
        """All deployments by the time since when they run; the last one is what runs now."""
        with self._database.read() as session:
            query = select(DeploymentRow).where(DeploymentRow.case_id == case)
            rows = session.exec(query.order_by(col(DeploymentRow.since), col(DeploymentRow.id)))
            return tuple(Deployment.model_validate_json(r.body) for r in rows)
