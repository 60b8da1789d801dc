"""The rows. The schema itself is made by db/migrations.py; a test holds the two together.

Times are ISO 8601 text in UTC; bodies are the exact bytes or text that was hashed.
"""

from __future__ import annotations

from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


# A registry of our own: Streamlit re-imports this module when it is edited, and the shared one refuses to see a
# table twice (fastapi/sqlmodel#350).
class Base(SQLModel, registry=registry()):
    """What all rows share."""


class CaseRow(Base, table=True):
    """One question that a team decides."""

    __tablename__ = "case_file"
    id: str = Field(primary_key=True)
    slug: str
    title: str
    created_at: str
    created_by: str


class RequirementsRow(Base, table=True):
    """One version of a case's requirements; append-only."""

    __tablename__ = "requirements_version"
    case_id: str = Field(primary_key=True)
    n: int = Field(primary_key=True)
    body: bytes
    sha256: str
    supersedes: str | None
    author: str
    at: str


class PlanRow(Base, table=True):
    """A plan file; sha256 is the plan's identity, body_sha256 that of its bytes."""

    __tablename__ = "plan"
    sha256: str = Field(primary_key=True)
    case_id: str
    title: str
    body: bytes
    body_sha256: str
    author: str
    at: str


class RunRow(Base, table=True):
    """A bundle that was taken in."""

    __tablename__ = "run"
    sha256: str = Field(primary_key=True)
    id: str
    case_id: str
    plan_sha256: str
    candidate: str
    stage: str
    start: int
    kind: str
    status: str
    created_at: str
    findings: str
    manifest: bytes
    path: str
    imported_at: str
    imported_by: str


class ContractRow(Base, table=True):
    """A measurement contract by the hash of its material fields."""

    __tablename__ = "contract"
    hash: str = Field(primary_key=True)
    body: str


class EvidenceRow(Base, table=True):
    """One figure: its body, and columns to find it by."""

    __tablename__ = "evidence"
    id: str = Field(primary_key=True)
    case_id: str
    run_sha256: str | None
    metric: str
    statistic: str
    candidate: str | None
    load_point: str | None
    kind: str
    at: str
    body: str
    sha256: str


class EvidenceRevisionRow(Base, table=True):
    """How often the figures of a case changed; triggers count."""

    __tablename__ = "evidence_revision"
    case_id: str = Field(primary_key=True)
    n: int


class RecountRow(Base, table=True):
    """What a bundle gave for thresholds and service levels that were asked after it was taken in; it can be rebuilt."""

    __tablename__ = "recount"
    run_sha256: str = Field(primary_key=True)
    question: str = Field(primary_key=True)
    body: str


class AdrRow(Base, table=True):
    """That an ADR exists, and for which case."""

    __tablename__ = "adr"
    id: str = Field(primary_key=True)
    case_id: str
    created_at: str
    created_by: str


class DraftRow(Base, table=True):
    """The text of an ADR until it is proposed; `version` is the optimistic lock."""

    __tablename__ = "adr_draft"
    adr_id: str = Field(primary_key=True)
    version: int
    body: str
    updated_at: str
    updated_by: str


class EditRow(Base, table=True):
    """One link of an ADR's hash chain; append-only."""

    __tablename__ = "adr_edit"
    adr_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    number: int | None
    body: str
    prev: str
    hash: str


class SnapshotRow(Base, table=True):
    """Exact bytes that something was decided on; append-only."""

    __tablename__ = "snapshot"
    sha256: str = Field(primary_key=True)
    kind: str
    body: bytes


class DeploymentRow(Base, table=True):
    """What ran in production since when; append-only."""

    __tablename__ = "deployment"
    id: int | None = Field(default=None, primary_key=True)
    case_id: str
    since: str
    body: str


class VerdictRow(Base, table=True):
    """How a condition stood when it last changed; append-only. adr_id is NULL for a hypothesis."""

    __tablename__ = "verdict_history"
    id: int | None = Field(default=None, primary_key=True)
    case_id: str
    adr_id: str | None
    condition: str
    at: str
    state: str
    value: float | None
    distance: float | None
    sentence: str
    evidence: str
    cause: str = ""
    overdue: int = 0


class CalibrationChoiceRow(Base, table=True):
    """That a figure was taken out of the calibration, or back in; append-only."""

    __tablename__ = "calibration_choice"
    id: int | None = Field(default=None, primary_key=True)
    evidence_id: str
    used: bool
    reason: str
    author: str
    at: str


class JobRow(Base, table=True):
    """A bench process that a page started."""

    __tablename__ = "job"
    id: str = Field(primary_key=True)
    case_id: str
    plan_sha256: str
    out_dir: str
    pid: int | None
    state: str
    message: str
    created_at: str
    created_by: str
    updated_at: str
