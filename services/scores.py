"""The score of a case's engines on one model plan and machine, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from planner.errors import FliplineError, InputError, UnknownName
from planner.faults import first_fault
from planner.proposals import Proposal, propose
from planner.requirements import Requirements
from planner.scoring import Score, score
from planner.what_if_engine import (
    Enough,
    Outcome,
    Room,
    Strip,
    by_shared_prefix,
    by_users,
    enough,
    outcomes,
)
from planner.yaml_files import LARGEST_FILE_BYTES, at_line, line_of, parse_guarded
from services import remembered
from services.units import unit_of
from services.workspace import Workspace

COMPARE = "Compare with catalog/cases/nortia.yaml."


def requirements_file(name: str, text: str) -> Requirements:
    """Requirements from YAML: a case file with the section `requirements`, or that section alone.

    Raises InputError with the file, and the fields that are missing or the line of the first that is wrong.
    """
    if len(text) > LARGEST_FILE_BYTES:
        raise InputError(f"has {len(text):,} characters; requirements need a few hundred.", where=name, fix=COMPARE)
    data = parse_guarded(text, name)
    fields = data.get("requirements", data) if isinstance(data, dict) else None
    if not isinstance(fields, dict):
        raise InputError("holds no requirements.", where=name, fix=COMPARE)
    try:
        return Requirements.model_validate(fields)
    except ValidationError as e:
        missing = [".".join(map(str, f["loc"])) for f in e.errors() if f["type"] == "missing"]
        if missing:
            raise InputError(f"{', '.join(missing)} missing.", where=name, fix=COMPARE) from None
        place = (*(("requirements",) if fields is not data else ()), *e.errors()[0]["loc"])
        raise InputError(first_fault(e), where=at_line(name, line_of(text, place)), fix=COMPARE) from None


def on_candidate(r: Requirements, model_plan: str | None = None, gpu: str | None = None) -> Requirements:
    """The requirements with this model plan as the favourite and this machine first; None keeps what stands there.

    What is scored is an engine on a model plan and a machine, and the score looks at the favourite on the first. Raises
    UnknownName.
    """
    plans, machines = {p.id: p for p in r.model_plans}, {h.gpu: h for h in reversed(r.hardware)}
    if model_plan is not None and model_plan not in plans:
        raise UnknownName.from_known("model plan", model_plan, plans, where="requirements")
    if gpu is not None and gpu not in machines:
        raise UnknownName.from_known("machine", gpu, machines, where="requirements")
    first = machines[gpu or r.hardware[0].gpu]
    favourite = model_plan or r.favourite_plan.id
    return r.model_copy(update={
        "model_plans": tuple(p.model_copy(update={"favourite": p.id == favourite}) for p in r.model_plans),
        "hardware": (first, *(h for h in r.hardware if h is not first)),
    })  # fmt: skip


def case_score(ws: Workspace, r: Requirements, adjust: Mapping[str, float] | None = None) -> Score:
    """Score every engine on the favourite model plan and the first machine; `adjust` replaces points of criteria."""
    if not adjust:
        return remembered.score(r, ws.catalog)
    gpu = ws.catalog.gpu(r.hardware[0].gpu)
    return score(r, ws.catalog.engines, compute_capability=gpu.compute_capability, adjust=adjust)


class WhatIf(NamedTuple):
    """What other requirements would do: along the peak and the shared prefix, change by change, and who is enough."""

    users: Strip
    shared_prefix: Strip
    outcomes: tuple[Outcome, ...]
    enough: tuple[Enough, ...]


def case_what_if(ws: Workspace, r: Requirements, scored: Score, adjust: Mapping[str, float] | None = None) -> WhatIf:
    """What-if on the requirements of a case; `scored` is its score under the same `adjust`."""
    gpu = ws.catalog.gpu(r.hardware[0].gpu)
    return WhatIf(
        users=by_users(r, scored, adjust),
        shared_prefix=by_shared_prefix(r, scored, adjust),
        outcomes=outcomes(r, ws.catalog.engines, scored, gpu.compute_capability, adjust),
        enough=enough(r, scored, _rooms(ws, r, scored)),
    )


def case_proposals(r: Requirements, scored: Score) -> tuple[Proposal, ...]:
    """Hypotheses that unknown gates, open requirements and thin evidence ask for."""
    return propose(r, scored)


def _rooms(ws: Workspace, r: Requirements, scored: Score) -> dict[str, Room]:
    """Users that one unit holds per engine, in the form that it would load; an engine of unknown speed is left out."""
    found: dict[tuple[str, str], Room | None] = {}
    rooms = {}
    for c in scored.ranking:
        if c.form is None:
            continue
        form = (c.form.weight_format, c.form.quantization)
        if form not in found:
            found[form] = _room(ws, r, *form)
        if room := found[form]:
            rooms[c.engine] = room
    return rooms


def _room(ws: Workspace, r: Requirements, weight_format: str, quantization: str) -> Room | None:
    plan = r.favourite_plan.model_copy(update={"weight_format": weight_format, "quantization": quantization})
    try:
        unit = unit_of(ws.catalog, r, plan, r.hardware[0])
        sizing = remembered.size(r, plan, r.hardware[0], ws.catalog, unit)
    except FliplineError:
        return None
    if sizing.inputs is None:
        return None if sizing.requests_that_fit else Room(0, 0)
    return Room(by_memory=sizing.requests_that_fit, by_speed=sizing.launch.max_num_seqs_expected or 0)
