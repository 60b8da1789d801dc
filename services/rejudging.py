"""Judge a case again and keep what changed: when evidence arrives, a catalogue fact changes, or a date passes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import NamedTuple

from db.runs import Run
from db.verdicts import Cause, Judged
from decisions.flips import FlipVerdict, fired_edit, new_events
from decisions.record import Adr, Status
from planner.catalog import Catalog
from planner.conditions import Evidence, Kind
from planner.errors import ConflictError
from planner.known import Known
from planner.metrics import quantity
from services.recounts import Told
from services.verdicts import CaseState, case_state, judge_adr, judge_hypotheses
from services.webhook import Announcement, announce, send_waiting
from services.workspace import Workspace, now

A_DAY_PASSED = Cause(kind="date", says="days passed")
EXPIRED = Cause(kind="date", says="what it rested on grew older than allowed")
FORGOTTEN = Cause(kind="unknown", says="what it asks for can no longer be measured")
RECHECK_PASSED = Cause(kind="date", says="the day of its re-check passed")
_OF_STATE = {"expired": EXPIRED, "unmeasurable": FORGOTTEN}  # where nothing else happened


class Changed(NamedTuple):
    """What a judgement changed: rows of the history, and the flip conditions that fired."""

    rows: tuple[Judged, ...]
    fired: tuple[FlipVerdict, ...]


def rejudge(ws: Workspace, name: str, because: Cause = A_DAY_PASSED) -> tuple[FlipVerdict, ...]:
    """Judge a case again; returns what fired. `because` is what happened, where no new figure explains a change."""
    return judge_again(ws, name, because).fired


def judge_again(ws: Workspace, name: str, because: Cause = A_DAY_PASSED, told: Told | None = None) -> Changed:
    """The same with every change: history is kept, newly fired conditions become events, and the webhook hears of them.

    Events are written in the transaction that reads what stood before, so that two who judge at once write one.
    """
    case = ws.store.cases.get(name).id
    seen = _rests_on(ws, case)
    state = case_state(ws, case, told)  # read before the lock is taken: counting bundles again can take long
    with ws.store.transaction():
        if _rests_on(ws, case) != seen:
            state = case_state(ws, case)
        at = now()
        before = ws.store.verdicts.latest(case)
        why = _Why(state.evidence, {r.sha256[:12]: r for r in state.runs}, because)
        rows = [why.stated(before.get((None, row.condition)), row) for row in _of_hypotheses(state, at)]
        fired: list[tuple[Adr, FlipVerdict]] = []
        for adr in ws.store.adrs.all(case=case, status=Status.ACCEPTED):
            verdicts = judge_adr(state, adr)
            last = {condition: j.state for (of, condition), j in before.items() if of == adr.id}
            new = new_events(last, verdicts)
            for v in new:
                if not any(f.condition == v.condition for f in adr.fires):  # one by hand is in the log already
                    named = v.model_copy(update={"runs": why.bundles(v.used)})
                    ws.store.adrs.append(adr.id, fired_edit(named, at=at))
            fired += [(adr, v) for v in new]
            rows += [why.stated(before.get((adr.id, row.condition)), row) for row in _of_flips(adr, verdicts, at)]
        changed = ws.store.verdicts.record(case, rows)
        causes = {(j.adr, j.condition): j.cause for j in changed}
        announce(ws, [
            Announcement(state.case, adr, adr.condition(v.condition), v, causes[adr.id, v.condition].runs)
            for adr, v in fired
        ])  # fmt: skip
    return Changed(changed, tuple(v for _, v in fired))


def _rests_on(ws: Workspace, case: str) -> tuple[object, ...]:
    """What a judgement of a case is made from and another writer may change meanwhile."""
    store = ws.store
    return (
        store.evidence.revision(case), store.cases.current_requirements(case), store.plans.of_case(case)[-1:],
        store.deployments.of_case(case), store.adrs.all(case=case),
    )  # fmt: skip


def _of_hypotheses(state: CaseState, at: datetime) -> Iterable[Judged]:
    for h in judge_hypotheses(state):
        v = h.verdict
        yield Judged(condition=h.hypothesis.id, at=at, state=v.state.value, value=v.value, distance=v.distance,
                     sentence=v.sentence, evidence=v.used)  # fmt: skip


def _of_flips(adr: Adr, verdicts: Iterable[FlipVerdict], at: datetime) -> Iterable[Judged]:
    for v in verdicts:
        yield Judged(condition=v.condition, adr=adr.id, at=at, state=v.state.value, value=v.value, distance=v.distance,
                     sentence=v.sentence, evidence=v.used, overdue=v.overdue)  # fmt: skip


class _Why(NamedTuple):
    """What a change can be laid to: figures, runs by the source that their figures name, what happened."""

    pieces: Known
    runs: Mapping[str, Run]
    because: Cause

    def stated(self, before: Judged | None, row: Judged) -> Judged:
        """The row with what changed it: figures that it did not rest on before, else a date, else what happened."""
        return row.model_copy(update={"cause": self._cause(before, row)})

    def bundles(self, used: Iterable[str]) -> tuple[str, ...]:
        """SHA-256 of the bundles that figures came from; nothing for what no run gave."""
        sources = dict.fromkeys(e.source for e in self.pieces.by_id(used).values())
        return tuple(self.runs[s].sha256 for s in sources if s in self.runs)

    def _cause(self, before: Judged | None, row: Judged) -> Cause:
        known = before.evidence if before else ()
        new = list(self.pieces.by_id(i for i in row.evidence if i not in known).values())
        if new and (before or self.because.kind != "decision"):
            return self._of_figures(new)
        if row.overdue and before and not before.overdue:
            return RECHECK_PASSED
        of_state = _OF_STATE.get(row.state) if self.because == A_DAY_PASSED else None
        return of_state or self.because

    def _of_figures(self, new: list[Evidence]) -> Cause:
        found = self.bundles(e.id for e in new)
        if found:
            says = "a run came in" if len(found) == 1 else f"{len(found)} runs came in"
            return Cause(kind="run", says=says, runs=found)
        newest = max(new, key=lambda e: (e.at, e.id))
        by = f" by {newest.by}" if newest.by else ""
        if newest.kind is Kind.DOCUMENTED:
            fact = f"{newest.metric} of {newest.candidate} is {quantity(newest.value, newest.unit)}"
            return Cause(kind="catalogue", says=f"the catalogue says: {fact}")
        if self.because.kind in ("usage", "figures"):
            return self.because
        if newest.kind is Kind.OBSERVED:
            return Cause(kind="usage", says=f"observed usage came in from {newest.source}{by}")
        return Cause(kind="figures", says=f"figures were {newest.kind.value} from {newest.source}{by}")


_judged_last: dict[tuple[str, str], tuple[date, Catalog]] = {}
_judging: dict[tuple[str, str], threading.Lock] = {}


def judge_if_due(ws: Workspace, case: str, told: Told | None = None) -> None:
    """Judge a case at the first visit of a process, and again once a day or when the catalogue was read anew.

    What the webhook did not take yet is tried again then. Another writer may hold the database: then the next visit
    does it, and this one goes on.
    """
    key, today = (str(ws.home), case), now().date()
    with _judging.setdefault(key, threading.Lock()):  # nobody waits for another case, whose counting can take long
        day, catalog = _judged_last.get(key, (None, None))
        if day == today and catalog is ws.catalog:
            return
        try:
            judge_again(ws, case, told=told)
        except ConflictError:
            return
        _judged_last[key] = (today, ws.catalog)
    send_waiting(ws)
