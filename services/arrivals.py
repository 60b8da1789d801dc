"""What arrives from outside is stored and judged in one step: bundles, other tools' results, tables, observed usage.

Of several bundles each comes in whole or not at all: one that is broken is named and keeps no other out, and a drop
that was interrupted is dropped again, since what is there already is known by its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import NamedTuple

from db.runs import TakenIn
from db.verdicts import Cause
from decisions.flips import FlipVerdict
from planner.conditions import Evidence
from planner.errors import BundleError, FliplineError
from services.dropped import Broken, Dropped, File, by_its_name, in_place, laid_out
from services.evidence import take_in
from services.filled import Filled, Machine, fill_in
from services.foreign import Said, bundle_of
from services.rejudging import rejudge
from services.usage import Usage, observe
from services.verdicts import asked_conditions, case_state
from services.workspace import Workspace

Report = Callable[[int, int, str], None]  # bundles done, bundles in all, the name of the next one


class Arrived(NamedTuple):
    """Runs or figures that were stored, the flip conditions that fired because of them, bundles that were refused."""

    taken: tuple[TakenIn, ...]
    evidence: tuple[Evidence, ...]
    fired: tuple[FlipVerdict, ...]
    broken: tuple[Broken, ...] = ()

    @property
    def new(self) -> int:
        """Runs that were not there before."""
        return sum(t.new for t in self.taken)


def _silent(done: int, total: int, name: str) -> None:
    """Nobody watches."""


def bring_in(ws: Workspace, case: str, path: Path, author: str, report: Report = _silent) -> Arrived:
    """Take in every bundle of a folder or .zip and judge the case again.

    Raises the error of the first broken bundle when none could be taken in, BundleError when there is none.
    """
    return _bundles(ws, case, author, in_place(path), str(path), report)


def bring_in_files(ws: Workspace, case: str, files: Sequence[File], author: str, report: Report = _silent) -> Arrived:
    """The same for what was dropped on a page: archives, or the files of a folder by their relative names."""
    name = files[0][0] if len(files) == 1 else "the drop"
    return _bundles(ws, case, author, laid_out(files), name, report)


def bring_in_foreign(ws: Workspace, case: str, name: str, content: bytes, said: Said, author: str) -> Arrived:
    """Make a bundle of another tool's result and take it in; raises InputError for a bad file."""
    stored = case_state(ws, case).stored_plan
    with bundle_of(name, content, said, stored.body if stored else None) as folder:
        return bring_in(ws, case, folder, author)


def _bundles(
    ws: Workspace, case: str, author: str, drop: AbstractContextManager[Dropped], name: str, report: Report
) -> Arrived:
    state = case_state(ws, case)
    asked = asked_conditions(state.plan, state.adrs)
    levels = state.plan.service_levels if state.plan else ()
    with drop as (found, unopened):
        taken: list[TakenIn] = []
        broken = list(unopened)
        try:
            for i, bundle in enumerate(found):
                report(i, len(found), bundle.name)
                try:
                    taken.append(take_in(ws, state.case.id, bundle.folder, author, asked, levels))
                except FliplineError as e:
                    broken.append(Broken(bundle.name, by_its_name(bundle, e)))
        finally:  # also when a click ends the page's run between two bundles
            fired = rejudge(ws, state.case.id, _a_run(taken)) if taken else ()
    if broken and not taken:
        raise broken[0].error
    if not taken:
        raise BundleError("holds no bundle.", where=name, fix="Choose the folder that bench wrote to, or its .zip.")
    report(len(found), len(found), "")
    return Arrived(tuple(taken), (), fired, tuple(broken))


def _a_run(taken: Sequence[TakenIn]) -> Cause:
    return Cause(kind="run", says="runs came in", runs=tuple(t.run.sha256 for t in taken if t.new))


def bring_in_usage(ws: Workspace, case: str, usage: Sequence[Usage], *, by: str, source: str) -> Arrived:
    """Store observed demand and judge the case again, all or nothing."""
    case_id = ws.store.cases.get(case).id
    with ws.store.transaction():
        evidence = observe(ws, case_id, usage, by=by, source=source)
        because = Cause(kind="usage", says=f"observed usage came in from {source} by {by}")
        return Arrived((), evidence, rejudge(ws, case_id, because))


def bring_in_table(
    ws: Workspace, case: str, rows: Sequence[Filled], *, by: str, source: str, measured_at: date,
    raw: File | None = None, machine: Machine | None = None,
) -> Arrived:  # fmt: skip
    """Store figures filled in by hand with the file they come from, and judge the case again, all or nothing.

    With `machine` the runs are said to have kept to the plan's contract, there. Raises InputError with the row.
    """
    state = case_state(ws, case)
    with ws.store.transaction():
        evidence = fill_in(
            ws, state.case.id, rows, by=by, source=source, measured_at=measured_at, plan=state.plan, raw=raw,
            machine=machine,
        )  # fmt: skip
        because = Cause(kind="figures", says=f"figures were entered from {source} by {by}")
        return Arrived((), evidence, rejudge(ws, state.case.id, because))
