"""What the use cases are tried on: the Nortia case as shipped, an accepted decision, days of usage, small bundles."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from bundle.folder import open_bundle, pack, seal
from decisions.record import Adr, People
from planner.condition_line import parse_condition
from planner.conditions import Kind
from planner.contract import Contract
from planner.loads import LoadPoint
from planner.poc import Hypothesis, Launch, Plan, PlanCandidate, Stage
from services.decisions import accept, begin_draft, propose_draft, save_draft
from services.plans import save_plan
from services.usage import Usage
from services.workspace import Workspace, now
from tests.bundle.made import POINT, bundle, request

CASE = "nortia"
FIRST_DAY = (now() - timedelta(days=60)).date()  # recent: what users did long ago says nothing about today


def small_plan(*points: LoadPoint, case: str = CASE) -> Plan:
    """One candidate, attached, at the given points."""
    return Plan(
        case=case, title="small", shared_contract={"model": "tiny"},
        candidates=(PlanCandidate(id="vllm", role="favourite", engine="vllm", model_name="tiny", launch=Launch()),),
        load_points=points, stages=(Stage(name="A", points=tuple(p.name for p in points)),),
    )  # fmt: skip


def asking(*lines: str, levels: tuple[str, ...] = (), version: str = "") -> Plan:
    """A small plan whose hypotheses H1, H2 ... ask one line each; `version` is the engine's that is asked for."""
    plan = small_plan(POINT)
    asked = {"engine": "vllm", "engine_version": version} if version else {}
    return plan.model_copy(update={
        "title": f"small {version}",
        "candidates": tuple(c.model_copy(update={"contract": asked}) for c in plan.candidates),
        "hypotheses": tuple(
            Hypothesis(id=f"H{i}", statement="s", conditions=(parse_condition(x),), method="m", if_rejected="r")
            for i, x in enumerate(lines, 1)
        ),
        "service_levels": tuple(parse_condition(x) for x in levels),
    })  # fmt: skip


def measured(folder: Path, *, n: int = 130, asked: str = "", reported: str = "", **more: Any) -> Path:
    """A bundle as of a real server, an hour old: `n` requests whose first token comes after 200 ms.

    `asked` and `reported` are the engine's version in its contract.
    """
    contract = Contract(
        shared={"model": "tiny"}, candidate={"engine": "vllm", "engine_version": asked},
        observed={"engine_version_reported": reported},
    )  # fmt: skip
    sent = {"records": [request(i, i * 0.35) for i in range(n)], "kind": Kind.MEASURED, "contract": contract}
    bundle(folder, **sent | more)
    ended = (now() - timedelta(hours=1)).isoformat()
    seal(folder, open_bundle(folder).model_copy(update={"finished_at": ended}))
    return folder


def with_plan(ws: Workspace, plan: Plan) -> str:
    """The case's plan from now on; returns the id of the case."""
    case = ws.store.cases.get(CASE).id
    save_plan(ws, case, plan, "Lee")
    return case


def accepted(ws: Workspace, by: str = "Sato") -> Adr:
    """Nortia's shipped draft, with those who decide named, proposed and accepted."""
    shipped = next(a for a in ws.store.adrs.all() if a.status == "draft")
    return decide(ws, shipped.id, by)


def decide(ws: Workspace, adr_id: str, by: str = "Sato", without: tuple[str, ...] = ()) -> Adr:
    """Name who decides, leave conditions out, propose and accept."""
    draft = ws.store.adrs.draft(adr_id)
    kept = tuple(c for c in draft.adr.conditions if c.id not in without)
    ready = draft.adr.model_copy(update={"people": People(decided=(by,)), "conditions": kept})
    saved = save_draft(ws, ready, draft.version, by)
    propose_draft(ws, adr_id, saved.version, "Tanaka")
    return accept(ws, adr_id, by)


def superseding(ws: Workspace, old: Adr) -> str:
    return begin_draft(ws, old.case, "Tanaka", supersedes=old.id).adr.id


def days(n: int, peak: float, *, missing: frozenset[int] = frozenset()) -> tuple[Usage, ...]:
    """`n` days of monitoring, each with a peak of 3 in flight but the tenth, which reaches `peak`."""
    return tuple(
        Usage(FIRST_DAY + timedelta(days=i), peak if i == 10 else min(3.0, peak), 300.0)
        for i in range(n)
        if i not in missing
    )


def zipped(folders: list[Path], archive: Path) -> bytes:
    pack(folders, archive)
    return archive.read_bytes()
