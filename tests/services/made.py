"""What the use cases are tried on: the Nortia case as shipped, an accepted decision, days of usage, small bundles."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from bundle.folder import pack
from decisions.record import Adr, People
from planner.conditions import LoadPoint
from planner.poc import Launch, Plan, PlanCandidate, Stage
from services.decisions import accept, begin_draft, propose_draft, save_draft
from services.plans import save_plan
from services.shipped import CASES, install
from services.usage import Usage
from services.workspace import Workspace

CASE = "nortia"
FIRST_DAY = date(2026, 9, 1)


def nortia(ws: Workspace) -> None:
    install(ws, CASES / "nortia.yaml")


def small_plan(*points: LoadPoint, case: str = CASE) -> Plan:
    """One candidate, attached, at the given points."""
    return Plan(
        case=case, title="small", shared_contract={"model": "tiny"},
        candidates=(PlanCandidate(id="vllm", role="favourite", engine="vllm", model_name="tiny", launch=Launch()),),
        load_points=points, stages=(Stage(name="A", points=tuple(p.name for p in points)),),
    )  # fmt: skip


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
