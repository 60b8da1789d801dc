"""`cli.py db`: what the database is, whether it is whole, and moving to another one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from services.database import check_database, move_database
from services.workspace import URL_VARIABLE
from ui.terminal import Argument, as_json, say, table

MOVE_EXAMPLE = "db move --to postgresql+psycopg://flipline@db.example.org/flipline"
MOVE_ARGUMENTS = (
    Argument("--to", {"required": True, "metavar": "URL", "help": "an empty database; its password may stand in "
                      "PGPASSWORD or ~/.pgpass instead"}),
    Argument("--from", {"dest": "source", "metavar": "URL", "help": "the one to copy (default: this workspace's)"}),
)  # fmt: skip
CHECK_ARGUMENTS = (
    Argument("--url", {"metavar": "URL", "help": "another database than this workspace's"}),
    Argument("--json", {"action": "store_true", "help": "print JSON"}),
)


def move(args: argparse.Namespace) -> bool:
    """Move, and say what is where now."""
    moved = move_database(args.home, args.to, args.source)
    _print(*moved.content)
    say(f"Every row and every chain arrived as it was sent, from {moved.source} to {moved.target}.")
    say(f"Set {URL_VARIABLE} to the new URL wherever Flipline runs; the old database stays and is not read any more.")
    say(f"Bundles stay in {moved.runs}: whoever opens the database needs that folder too.")
    return True


def check(args: argparse.Namespace) -> bool:
    """Say what the database is and holds, and whether its log is whole."""
    found = check_database(args.home, args.url)
    d = found.description
    if args.json:
        as_json({"url": d.url, "backend": d.backend, "schema": d.schema, **d.content._asdict(),
                 "broken": [str(b) for b in found.broken]})  # fmt: skip
        return not found.broken
    say(f"{d.backend} at {d.url}, schema {d.schema}")
    _print(*d.content)
    for b in found.broken:
        say(f"BROKEN {b}")
    say(f"{len(found.broken)} broken." if found.broken else "Every chain is whole.")
    return not found.broken


def _print(rows: Mapping[str, int], heads: Mapping[str, str]) -> None:
    table("Rows", ("table", "rows"), list(rows.items()))
    for id, head in heads.items():
        say(f"{head}  {id}")


DATABASE_COMMANDS = (
    ("check", check, "what the database is and holds, and whether its log is whole", "db check", CHECK_ARGUMENTS),
    ("move", move, "copy everything into an empty database, verified row by row and by the chains", MOVE_EXAMPLE,
     MOVE_ARGUMENTS),
)  # fmt: skip
