"""The shipped cases: Nortia, ready to walk, and "two cores", measured on a real server."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from bundle.folder import unpack
from db.verdicts import Cause
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.loads import LoadPoint
from planner.metrics import METRICS
from planner.offered import with_offered
from services.cases import begin_case, requirements_from
from services.decisions import begin_draft
from services.evidence import take_in_all
from services.plans import draft_plan, save_plan, upload_plan
from services.rejudging import rejudge
from services.verdicts import asked_conditions, case_state
from services.workspace import ROOT, Workspace

CASES = ROOT / "catalog" / "cases"
AUTHOR = "Flipline"


def install_shipped(ws: Workspace) -> None:
    """Put the shipped cases into an empty store; a store that has any case is left alone."""
    if ws.store.cases.all():
        return
    with ws.store.transaction():
        if ws.store.cases.all():  # somebody else began at the same moment, and was faster
            return
        for path in sorted(CASES.glob("*.yaml")):
            install(ws, path)


def install(ws: Workspace, path: Path) -> None:
    """Install one case file: requirements, plan, imported figures, bundles beside it, and a draft ADR."""
    data: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    r = requirements_from(data["requirements"])
    case = begin_case(ws, data["title"], r, AUTHOR, slug=data["slug"])
    folder = path.with_suffix("")
    plan_file = folder / "plan.yaml"
    if plan_file.is_file():
        upload_plan(ws, case.id, plan_file.name, plan_file.read_text(encoding="utf-8"), AUTHOR)
    else:
        offered = [LoadPoint.model_validate(p) for p in data.get("offered", [])]
        save_plan(ws, case.id, with_offered(draft_plan(ws, case.slug, r).plan, offered), AUTHOR)
    points = ws.store.plans.of_case(case.id)[-1].plan().points()
    contracts = {name: Contract.model_validate(parts) for name, parts in data.get("contracts", {}).items()}
    ws.store.evidence.add(
        case.id,
        [_imported(data["slug"], i, row, contracts, points) for i, row in enumerate(imported_rows(data), 1)],
        {c.full_hash(): c for c in contracts.values()},
    )
    archive = folder / "bundles.zip"
    if archive.is_file():
        state = case_state(ws, case.id)
        levels = state.plan.service_levels if state.plan else ()
        with tempfile.TemporaryDirectory() as scratch:
            unpack(archive, Path(scratch))
            take_in_all(ws, case.id, Path(scratch), AUTHOR, asked_conditions(state.plan, ()), levels)
    rejudge(ws, case.id, Cause(kind="plan", says="the case was begun"))
    begin_draft(ws, case.id, AUTHOR)


def imported_rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures of a case file, each with what its group states for all of them."""
    return [{**group, **figure} for group in data.get("imported", []) for figure in group["figures"]]


def _imported(
    slug: str, i: int, row: dict[str, Any], contracts: Mapping[str, Contract], points: Mapping[str, LoadPoint]
) -> Evidence:  # fmt: skip
    """One figure of a case file; where the source tells its starts apart, each is a source of its own.

    One that `stands_in` was taken at another load than that of its load point, and states none.
    """
    contract = contracts.get(row["candidate"])
    point = None if row.get("stands_in") else points.get(row.get("load_point", ""))
    return Evidence(
        id=f"imported/{slug}/{i}",
        metric=row["metric"],
        statistic=row["statistic"],
        value=row["value"],
        interval=row.get("interval"),
        unit=METRICS[row["metric"]].unit,
        kind=Kind.IMPORTED,
        source=f"{row['source']}, start {row['start']}" if "start" in row else row["source"],
        at=datetime.fromisoformat(row["at"]),
        candidate=row["candidate"],
        load_point=row.get("load_point"),
        load_hash=point.load_hash() if point else None,
        n=row.get("n"),
        by=AUTHOR,
        note=row["note"],
        contract=contract.full_hash() if contract else None,
    )
