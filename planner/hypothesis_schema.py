"""A hypothesis of a plan as it is stored, and what hypotheses may wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from planner.conditions import Condition
from planner.errors import UnknownName
from planner.frozen import Frozen

Stakes = Literal["ends the plan", "changes the plan", "changes a setting"]


class Hypothesis(Frozen):
    """What is tested, how, and what follows if it is rejected; several lines are all-of.

    `depends_on` are hypotheses that must hold before this one is worth a run. `origin` is the template that it came
    from, `author` who wrote or changed it; both are empty where the plan derived it alone.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9-]{1,20}$")
    statement: str
    conditions: tuple[Condition, ...] = Field(min_length=1)
    method: str
    if_rejected: str
    expectation: str = ""
    warning: str = ""
    depends_on: tuple[str, ...] = ()
    origin: str = ""
    stakes: Stakes | None = None
    author: str = ""


def fault_in_dependencies(hypotheses: Sequence[Hypothesis]) -> str:
    """What is wrong with the first dependency that leads nowhere or in a circle, else nothing."""
    waiting = {h.id: set(h.depends_on) for h in hypotheses}
    for h in hypotheses:
        for name in h.depends_on:
            if name not in waiting:
                where = f"hypothesis {h.id}: depends_on"
                return str(UnknownName.from_known("hypothesis", name, waiting, where=where))
    while free := {id for id, open_ones in waiting.items() if not open_ones}:
        waiting = {id: open_ones - free for id, open_ones in waiting.items() if id not in free}
    circle = ", ".join(sorted(waiting))
    return f"hypotheses {circle} wait for each other: take one out of depends_on." if waiting else ""
