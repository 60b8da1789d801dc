"""What arrives from outside is stored and judged in one step: bundles, other tools' results, tables, observed usage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from db.runs import TakenIn
from decisions.flips import FlipVerdict
from planner.conditions import Evidence
from planner.errors import BundleError
from services.evidence import take_in_all, take_in_zip
from services.filled import Filled, fill_in
from services.foreign import Said, bundle_of
from services.usage import Usage, observe
from services.verdicts import asked_conditions, case_state, rejudge
from services.workspace import Workspace


class Arrived(NamedTuple):
    """Runs or figures that were stored, and the flip conditions that fired because of them."""

    taken: tuple[TakenIn, ...]
    evidence: tuple[Evidence, ...]
    fired: tuple[FlipVerdict, ...]


def bring_in(ws: Workspace, case: str, path: Path, author: str) -> Arrived:
    """Take in every bundle of a folder or .zip and judge the case again, all or nothing.

    Raises BundleError when there is none, or one is incomplete or altered.
    """
    if path.is_dir():
        return _bundles(ws, case, author, folder=path)
    if not path.is_file():
        raise BundleError("is not there.", where=str(path), fix="Name the folder that bench wrote to, or its .zip.")
    return bring_in_zip(ws, case, path.name, path.read_bytes(), author)


def bring_in_zip(ws: Workspace, case: str, name: str, content: bytes, author: str) -> Arrived:
    """The same for the bytes of an uploaded .zip."""
    return _bundles(ws, case, author, name=name, content=content)


def bring_in_foreign(ws: Workspace, case: str, name: str, content: bytes, said: Said, author: str) -> Arrived:
    """Make a bundle of another tool's result and take it in, all or nothing; raises InputError for a bad file."""
    stored = case_state(ws, case).stored_plan
    with bundle_of(name, content, said, stored.body if stored else None) as folder:
        return _bundles(ws, case, author, folder=folder)


def _bundles(
    ws: Workspace, case: str, author: str, *, folder: Path | None = None, name: str = "", content: bytes = b""
) -> Arrived:
    state = case_state(ws, case)
    asked = asked_conditions(state.plan, state.adrs)
    levels = state.plan.service_levels if state.plan else ()
    with ws.store.transaction():
        if folder:
            taken = take_in_all(ws, state.case.id, folder, author, asked, levels)
        else:
            taken = take_in_zip(ws, state.case.id, name, content, author, asked, levels)
        return Arrived(taken, (), rejudge(ws, state.case.id))


def bring_in_usage(ws: Workspace, case: str, usage: Sequence[Usage], *, by: str, source: str) -> Arrived:
    """Store observed demand and judge the case again, all or nothing."""
    case_id = ws.store.cases.get(case).id
    with ws.store.transaction():
        evidence = observe(ws, case_id, usage, by=by, source=source)
        return Arrived((), evidence, rejudge(ws, case_id))


def bring_in_table(
    ws: Workspace, case: str, rows: Sequence[Filled], *, by: str, source: str, measured_at: date
) -> Arrived:
    """Store figures filled in by hand and judge the case again, all or nothing; raises InputError with the row."""
    state = case_state(ws, case)
    points = state.plan.points() if state.plan else {}
    with ws.store.transaction():
        evidence = fill_in(
            ws, state.case.id, rows, by=by, source=source, measured_at=measured_at, points=points,
            candidates=[c.id for c in state.plan.candidates] if state.plan else (),
        )  # fmt: skip
        return Arrived((), evidence, rejudge(ws, state.case.id))
