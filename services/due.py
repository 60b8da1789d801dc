"""What somebody promised to look at, and when: reviews of decisions, re-checks of their flip conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Literal, NamedTuple

from decisions.record import Adr, Status
from services.workspace import Workspace, now

SOON_DAYS = 14


class Due(NamedTuple):
    """One promise: the day, what is looked at, of which decision, by whom. A review has no condition."""

    on: date
    what: Literal["review", "re-check"]
    adr: Adr
    condition: str = ""
    who: str = ""
    words: str = ""
    days_left: int = 0

    @property
    def overdue(self) -> bool:
        """The day is here or past."""
        return self.days_left <= 0


def due(ws: Workspace, case: str | None = None, within_days: int = SOON_DAYS) -> tuple[Due, ...]:
    """Everything that is due by now or within some days, the most urgent first, of one case or of all."""
    of_case = ws.store.cases.get(case).id if case else None
    return due_of(ws.store.adrs.all(case=of_case), now().date(), within_days)


def due_of(adrs: Iterable[Adr], today: date, within_days: int = SOON_DAYS) -> tuple[Due, ...]:
    """The same of given decisions, on a given day."""
    last = today + timedelta(days=within_days)
    found = [d for adr in adrs for d in _promises(adr, today) if d.on <= last]
    return tuple(sorted(found, key=lambda d: (d.on, d.adr.name, d.condition)))


def _promises(adr: Adr, today: date) -> Iterator[Due]:
    if adr.status not in (Status.PROPOSED, Status.ACCEPTED):
        return
    if adr.review_on:
        who = adr.accepted_by or ", ".join(adr.people.decided)
        yield Due(adr.review_on, "review", adr, who=who, words=adr.title, days_left=(adr.review_on - today).days)
    if adr.status is not Status.ACCEPTED:
        return
    for flip in adr.active_conditions:
        if flip.recheck_on:
            left = (flip.recheck_on - today).days
            yield Due(flip.recheck_on, "re-check", adr, flip.id, flip.owner, flip.in_words(), left)
