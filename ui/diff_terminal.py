"""Two versions of a decision, of requirements, of a score or a plan in the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from planner.differences import Difference, folded
from planner.errors import InputError
from services.adr_search import find_adr
from services.diffs import (
    Diff,
    Version,
    adr_against,
    adr_diff,
    adr_versions,
    newest_two,
    plan_diff,
    plan_versions,
    requirements_diff,
    requirements_versions,
    score_diff,
    score_versions,
)
from services.workspace import Workspace
from ui.terminal import Argument, as_json, say, table

VERSIONS = (
    Argument("before", {"nargs": "?", "metavar": "BEFORE", "help": "a version (default: the last but one)"}),
    Argument("after", {"nargs": "?", "metavar": "AFTER", "help": "a version (default: the last)"}),
)
DIFF_ADR = (
    Argument("adr", {"metavar": "ADR", "help": "its number or id"}),
    *VERSIONS,
    Argument("--against", {"metavar": "ADR", "help": "compare with this one, such as the one that it supersedes"}),
)
_MARKS = {"same": "{}", "out": "[-{}-]", "in": "{{+{}+}}"}  # as git's word diff writes them


def adr_asked(ws: Workspace, args: argparse.Namespace) -> Diff:
    """Two edits of one ADR, or an ADR against another one; raises UnknownName, InputError."""
    adr = find_adr(ws, args.adr)
    if args.against:
        if args.before:
            raise InputError("--against does not go with versions: both are compared as they stand.", where="diff adr",
                             fix="Leave out one of them.")  # fmt: skip
        return adr_against(ws, adr.id, find_adr(ws, args.against).id)
    return _asked(adr_versions(ws, adr.id), args, lambda a, b: adr_diff(ws, adr.id, a, b))


def requirements_asked(ws: Workspace, args: argparse.Namespace) -> Diff:
    """Two versions of a case's requirements; raises UnknownName, InputError."""
    versions = requirements_versions(ws, args.case)
    return _asked(versions, args, lambda a, b: requirements_diff(ws, args.case, a, b))


def score_asked(ws: Workspace, args: argparse.Namespace) -> Diff:
    """Two scores of a case; raises UnknownName, InputError."""
    return _asked(score_versions(ws, args.case), args, lambda a, b: score_diff(ws, args.case, a, b))


def plan_asked(ws: Workspace, args: argparse.Namespace) -> Diff:
    """Two stored plans of a case; raises UnknownName, InputError."""
    return _asked(plan_versions(ws, args.case), args, lambda a, b: plan_diff(ws, args.case, a, b))


def print_diff(diff: Diff, *, json: bool) -> None:
    """The fields that differ and what follows from them."""
    if json:
        as_json(diff_json(diff))
        return
    say(f"{diff.before.in_words} → {diff.after.in_words}")
    for sentence in diff.follows:
        say(sentence)
    if diff.rows:
        table("Differences", ("field", "before", "after"), [(r.where, *_sides(r)) for r in diff.rows])
    else:
        say("They do not differ.")


def diff_json(diff: Diff) -> dict[str, Any]:
    """A difference as plain values."""
    return {
        "before": diff.before._asdict(), "after": diff.after._asdict(), "follows": list(diff.follows),
        "differences": [{"path": list(r.path), "before": r.before, "after": r.after} for r in diff.rows],
    }  # fmt: skip


def _sides(row: Difference) -> tuple[str, str]:
    """Both texts; long ones as the change inside them."""
    if row.before and row.after and max(len(row.before), len(row.after)) > 80:
        return "→", "".join(_MARKS[p.side].format(p.text) for p in folded(row.pieces, 40))
    return row.before or "–", row.after or "–"


def _asked(versions: Sequence[Version], args: argparse.Namespace, compare: Callable[[str, str], Diff]) -> Diff:
    """The versions that were named, or the newest two; raises InputError where there is only one."""
    if args.before is None:
        chosen = newest_two(versions)
        if chosen is None:
            raise InputError("there is only one version, so nothing to compare it with.", where="diff")
        return compare(*chosen)
    if args.after is None:
        return compare(args.before, versions[-1].key)
    return compare(args.before, args.after)
