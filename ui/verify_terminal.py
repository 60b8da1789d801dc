"""`cli.py adr verify`: the head of every chain and what is broken, by itself or against heads that were kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.errors import FliplineError
from services.heads import verified
from services.workspace import Workspace
from ui.terminal import Argument, as_json, say

VERIFY_EXAMPLE = "adr verify --heads heads.txt"
VERIFY_ARGUMENTS = (
    Argument("--heads", {"type": Path, "metavar": "FILE|DIR", "help": "heads that were kept elsewhere: what this "
                         "command printed, an exported log, or a folder of exported decisions"}),
    Argument("--nothing-after", {"action": "store_true", "help": "name what was added after those heads, too"}),
)  # fmt: skip


def verify_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Print the heads and every first broken link; whether all is whole."""
    broken = verified(ws.store, args.heads, nothing_after=args.nothing_after)
    heads = ws.store.adrs.heads()
    if args.json:
        as_json({"broken": [{**b._asdict(), "sentence": str(b)} for b in broken], "heads": heads})
        return not broken
    for b in broken:
        say(f"BROKEN {b}")
    names = _names(ws)
    for id, head in heads.items():
        say(f"{head}  {id}  {names.get(id, '')}".rstrip())
    say(f"{len(broken)} broken." if broken else "Every chain is whole.")
    return not broken


def _names(ws: Workspace) -> dict[str, str]:
    try:
        return {a.id: a.name for a in ws.store.adrs.all()}
    except FliplineError:
        return {}  # an altered text cannot be read as an ADR; its link is named above
