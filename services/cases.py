"""Cases: begin one, save its requirements, and what a change of them leaves behind."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import ValidationError

from db.cases import Case, RequirementsVersion
from db.ids import new_id
from planner.calibration import Calibration
from planner.capacity import Sizing, size
from planner.errors import FliplineError, InputError
from planner.faults import first_fault
from planner.requirements import Hardware, ModelPlan, Requirements
from services import remembered
from services.calibrations import calibration, setting_of
from services.scores import case_score
from services.units import unit_of
from services.workspace import Workspace, now


def requirements_from(fields: dict[str, object]) -> Requirements:
    """Build requirements from raw values; raises InputError with the first fault in one sentence."""
    try:
        return Requirements.model_validate(fields)
    except ValidationError as e:
        raise InputError(first_fault(e), where="requirements") from None


def begin_case(ws: Workspace, title: str, requirements: Requirements, author: str, slug: str = "") -> Case:
    """Begin a case with its first requirements, both or neither.

    Raises ConflictError when the name is taken, InputError for an empty title.
    """
    if not title.strip():
        raise InputError("a case needs a title.", where="case", fix="Write what is decided, in a few words.")
    at = now()
    name = slug or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or new_id(at).lower()
    case = Case(id=new_id(at), slug=name, title=title.strip(), created_at=at, created_by=author)
    _check_names(ws, requirements)
    with ws.store.transaction():
        ws.store.cases.add(case)
        ws.store.cases.save_requirements(case.id, requirements, at=at, author=author)
    return case


def save_requirements(
    ws: Workspace, case: str, requirements: Requirements, author: str, after: int
) -> RequirementsVersion:
    """Store a new version; raises ConflictError when somebody saved after version `after` was opened."""
    _check_names(ws, requirements)
    return ws.store.cases.save_requirements(case, requirements, at=now(), author=author, after=after)


def _check_names(ws: Workspace, r: Requirements) -> None:
    """Unknown models, GPUs and formats are caught here, before anything is stored or started."""
    for plan in r.model_plans:
        size(r, plan, r.hardware[0], ws.catalog)
    for hardware in r.hardware:
        ws.catalog.gpu(hardware.gpu)


class Sized(NamedTuple):
    """The sizing of one model plan, or the sentence that says why there is none."""

    plan: ModelPlan
    sizing: Sizing | None
    problem: str = ""


def sizings(ws: Workspace, r: Requirements, hardware_index: int = 0) -> tuple[Sized, ...]:
    """Every model plan on one of the machines, the favourite first, by what the team measured where it did."""
    ordered = sorted(r.model_plans, key=lambda p: not p.favourite)
    known = calibration(ws)
    return tuple(_sized(ws, r, plan, r.hardware[hardware_index], known) for plan in ordered)


def _sized(ws: Workspace, r: Requirements, plan: ModelPlan, hardware: Hardware, known: Calibration) -> Sized:
    try:
        return Sized(plan, _calibrated(ws, r, plan, hardware, known))
    except FliplineError as e:
        return Sized(plan, None, str(e))


def favourite_sizing(ws: Workspace, r: Requirements) -> Sizing:
    """The sizing that the plan rests on: favourite model plan on the first machine."""
    return _calibrated(ws, r, r.favourite_plan, r.hardware[0], calibration(ws))


def load_sizing(ws: Workspace, r: Requirements, *, by_team: bool) -> Sizing:
    """The favourite for requests as its load points send them: input plus output tokens, not the longest context.

    `by_team` lets the team's own ratios speak; what stands beside a verdict must not come from the very runs it judges.
    """
    asked = r.model_copy(update={"context_tokens": r.input_tokens + r.output_tokens})
    if by_team:
        return favourite_sizing(ws, asked)
    plan, hardware = asked.favourite_plan, asked.hardware[0]
    return remembered.size(asked, plan, hardware, ws.catalog, unit_of(ws.catalog, asked, plan, hardware))


def _calibrated(ws: Workspace, r: Requirements, plan: ModelPlan, hardware: Hardware, known: Calibration) -> Sizing:
    """A sizing by the ratios of the favourite engine, since a ratio belongs to an engine and a sizing names none."""
    favourite, unit = case_score(ws, r).favourite, unit_of(ws.catalog, r, plan, hardware)
    setting = setting_of(ws.catalog, r, plan, hardware, favourite, unit.tensor_parallel) if favourite else None
    return remembered.size(r, plan, hardware, ws.catalog, unit, known.for_(setting) if setting else ())
