"""The terminal entry: size, score, plan, launch, take-in, enter, verdicts, usage, adr ... The same calls as the pages.

Exit codes: 0 all well, 1 something fails or is broken, 2 the input was wrong (one sentence on stderr), 130 interrupted.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.errors import FliplineError
from services.catalog_check import check_catalog
from services.shipped import install_shipped
from services.workspace import home_folder, now, open_workspace
from ui import commands_case, commands_log, commands_results
from ui.adr_terminal import CHECK_ARGUMENTS, CHECK_EXAMPLE, check_and_print
from ui.command import BAD_INPUT, FAILS, OK
from ui.database_terminal import DATABASE_COMMANDS
from ui.terminal import Argument, say

INTERRUPTED = 130


def catalog_check(args: argparse.Namespace) -> bool:
    """Whether the catalogue with this workspace's own entries is whole, and which engines' facts are stale."""
    found = check_catalog(home_folder(args.home), now().date())
    for line in found.lines():
        say(line)
    return not found.broken


COMMANDS = (*commands_case.COMMANDS, *commands_results.COMMANDS, *commands_log.COMMANDS)
GROUPS = {"adr": "list, search, check, verify, export, import and replay decisions",
          "catalog": "check the facts and own entries",
          "db": "check the database, or move to another", "diff": "any two versions of a decision or its grounds",
          "model": "own models of the catalogue"}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """All commands with their help and an example each."""
    top = argparse.ArgumentParser(
        prog="cli.py", description="Flipline in the terminal: the same calls as the pages.",
        epilog="Exit codes: 0 all well, 1 something fails or is broken, 2 the input was wrong, 130 interrupted.",
    )  # fmt: skip
    top.add_argument("--home", type=Path, metavar="DIR", help="the workspace (default: FLIPLINE_HOME, else var/)")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    groups = {
        name: commands.add_parser(name, help=words, description=words).add_subparsers(required=True, metavar="COMMAND")
        for name, words in GROUPS.items()
    }
    for c in COMMANDS:
        group, _, word = c.words.rpartition(" ")
        _add(groups[group] if group else commands, word, c.help, c.example, c.arguments).set_defaults(run=c.run)
    check = _add(groups["catalog"], "check", "whether facts and own entries can be read, and how old", "catalog check")
    check.set_defaults(run=None, of_home=catalog_check)
    _add(groups["adr"], "check", "lint decisions, and judge exported ones against bundles without a database",
         CHECK_EXAMPLE, CHECK_ARGUMENTS).set_defaults(run=None, of_home=check_and_print)  # fmt: skip
    for word, run, what, example, arguments in DATABASE_COMMANDS:
        _add(groups["db"], word, what, example, arguments).set_defaults(run=None, of_home=run)
    return top


def _add(to: Any, word: str, what: str, example: str, arguments: tuple[Argument, ...] = ()) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = to.add_parser(
        word, help=what, description=f"{what[:1].upper()}{what[1:]}.", epilog=f"Example: python cli.py {example}"
    )
    for argument in arguments:
        own_type = {"type": number} if argument.options.get("type") is float else {}
        added.add_argument(argument.name, **{**argument.options, **own_type})
    return added


def number(text: str) -> float:
    """A number as argparse takes it; NaN and infinity, which Python reads too, are none."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number that can be")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = parser().parse_args(argv)
    try:
        code = _run(args)
        print(end="", flush=True)  # here, where it is told: at the interpreter's end nobody could
        return code
    except FliplineError as e:
        print(e, file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # who read along has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILS
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        print(f"{where}cannot be read or written: {e.strerror or e}. Check the path, its rights and the room there.",
              file=sys.stderr)  # fmt: skip
        return BAD_INPUT
    except KeyboardInterrupt:
        print("Interrupted; what was not finished is not stored.", file=sys.stderr)
        return INTERRUPTED


def _run(args: argparse.Namespace) -> int:
    if args.run is None:
        return OK if args.of_home(args) else FAILS
    ws = open_workspace(args.home)
    try:
        install_shipped(ws)
        code: int = args.run(ws, args)
        return code
    finally:
        ws.store.close()


if __name__ == "__main__":
    sys.exit(main())
