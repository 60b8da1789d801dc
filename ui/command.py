"""What the commands of the terminal share: their form, their arguments, their exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from planner.errors import InputError
from planner.requirements import Requirements
from services.arrivals import Arrived
from services.verdicts import CaseState, case_state
from services.workspace import Workspace
from ui.terminal import Argument, say, you

OK, FAILS, BAD_INPUT = 0, 1, 2


def required(ws: Workspace, name: str) -> tuple[CaseState, Requirements]:
    """A case with its requirements; raises UnknownName, InputError."""
    state = case_state(ws, name)
    if state.requirements is None:
        raise InputError("has no requirements yet.", where=state.case.title, fix="Write them on the page first.")
    return state, state.requirements


def fired(arrived: Arrived) -> None:
    """Say which flip conditions fired because of it."""
    for f in arrived.fired:
        say(f"FIRED {f.condition}: {f.sentence}")


CASE = Argument("--case", {"required": True, "metavar": "SLUG", "help": "the case, as in nortia"})
ANY_CASE = Argument("--case", {"metavar": "SLUG", "help": "only this case"})
JSON = Argument("--json", {"action": "store_true", "help": "print JSON"})
BY = Argument("--by", {"default": you(), "metavar": "NAME", "help": "who brings it in (default: you)"})


class Command(NamedTuple):
    """One command: its words, what it does, an example, its arguments."""

    words: str
    run: Callable[[Workspace, argparse.Namespace], int]
    help: str
    example: str
    arguments: tuple[Argument, ...]
