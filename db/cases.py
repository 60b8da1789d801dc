"""Cases and the versions of their requirements."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlmodel import col, select

from db.database import Database, to_text, to_time
from db.tables import CaseRow, RequirementsRow
from planner.errors import ConflictError, UnknownName
from planner.frozen import Frozen, canonical_json
from planner.requirements import Requirements


class Case(Frozen):
    """One question that a team decides."""

    id: str = Field(min_length=1)
    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    title: str = Field(min_length=1, max_length=200)
    created_at: datetime
    created_by: str


class RequirementsVersion(Frozen):
    """One version of a case's requirements; sha256 is that of `body`, the exact stored bytes."""

    case: str
    n: int
    body: bytes
    sha256: str
    supersedes: str | None
    author: str
    at: datetime

    def requirements(self) -> Requirements:
        """The requirements that the bytes say."""
        return Requirements.model_validate_json(self.body)


class CaseStore:
    """Cases by id or slug; requirements that are only added to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, case: Case) -> Case:
        """Store a case; raises ConflictError when its id or slug is taken."""
        with self._database.write() as session:
            taken = session.exec(select(CaseRow).where(CaseRow.slug == case.slug)).first()
            if taken:
                raise ConflictError(f"a case {case.slug!r} exists already.", where="case", fix="Choose another name.")
            row = CaseRow(id=case.id, slug=case.slug, title=case.title, created_at=to_text(case.created_at),
                          created_by=case.created_by)  # fmt: skip
            session.add(row)
        return case

    def all(self) -> tuple[Case, ...]:
        """All cases, oldest first."""
        with self._database.read() as session:
            rows = session.exec(select(CaseRow).order_by(col(CaseRow.created_at), col(CaseRow.id)))
            return tuple(_case(r) for r in rows)

    def get(self, name: str) -> Case:
        """The case of that id or slug; raises UnknownName."""
        found = {c.id: c for c in self.all()}
        slugs = {c.slug: c for c in found.values()}
        case = found.get(name) or slugs.get(name)
        if case is None:
            raise UnknownName.from_known("case", name, slugs)
        return case

    def save_requirements(
        self, case: str, requirements: Requirements, *, at: datetime, author: str, after: int | None = None
    ) -> RequirementsVersion:
        """Store a new version; equal requirements give the version that stands.

        `after` is the version that the author started from (0: none). Raises ConflictError when a newer one is there.
        """
        body = canonical_json(requirements.model_dump(mode="json")).encode()
        with self._database.write() as session:
            last = self.current_requirements(case)
            if last and after is not None and last.n != after:
                raise ConflictError(
                    f"{last.author} saved version {last.n} on {last.at:%Y-%m-%d at %H:%M} UTC, after you opened it.",
                    where="requirements", fix="Reload, look at the difference, and save again.",
                )  # fmt: skip
            if last and last.body == body:
                return last
            version = RequirementsVersion(
                case=case, n=last.n + 1 if last else 1, body=body, sha256=hashlib.sha256(body).hexdigest(),
                supersedes=last.sha256 if last else None, author=author, at=at,
            )  # fmt: skip
            session.add(RequirementsRow(**_fields(version)))
        return version

    def current_requirements(self, case: str) -> RequirementsVersion | None:
        """The newest version, or None."""
        versions = self.requirements(case)
        return versions[-1] if versions else None

    def requirements(self, case: str) -> tuple[RequirementsVersion, ...]:
        """All versions, oldest first."""
        with self._database.read() as session:
            query = select(RequirementsRow).where(RequirementsRow.case_id == case).order_by(col(RequirementsRow.n))
            return tuple(
                RequirementsVersion(
                    case=r.case_id, n=r.n, body=r.body, sha256=r.sha256, supersedes=r.supersedes, author=r.author,
                    at=to_time(r.at),
                )
                for r in session.exec(query)
            )  # fmt: skip


def _fields(version: RequirementsVersion) -> dict[str, Any]:
    return {**version.model_dump(exclude={"case", "at"}), "case_id": version.case, "at": to_text(version.at)}


def _case(row: CaseRow) -> Case:
    return Case(id=row.id, slug=row.slug, title=row.title, created_at=to_time(row.created_at),
                created_by=row.created_by)  # fmt: skip
