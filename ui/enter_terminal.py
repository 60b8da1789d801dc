"""`enter` in the terminal: figures out of a sheet, shown in base units, stored where nothing is refused."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.errors import InputError
from planner.metrics import METRICS
from services.arrivals import Arrived, bring_in_table
from services.filled import Machine, outdated
from services.pasted import Pasted, Stated, figures_of
from services.pasted_sheet import proposed, read_sheet_file
from services.pasted_words import Heading, meanings
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.terminal import Argument, day, read_bytes, say, table

ENTER_EXAMPLE = "enter --case nortia results.csv --by 'A. Operator' --from 'GPU box, sheet 2' --attach bench.log"
NO_CONTRACT = "They state no contract, so no two candidates compare on them (--as-planned states it)."
ENTER_ARGUMENTS = (
    Argument("file", {"type": Path, "metavar": "FILE", "help": "CSV, tab-separated text or a Markdown table"}),
    Argument("--by", {"required": True, "metavar": "NAME", "help": "who measured it"}),
    Argument("--from", {"required": True, "dest": "source", "metavar": "TEXT", "help": "log, sheet or message"}),
    Argument("--day", {"type": day, "metavar": "DAY", "help": "day of the run (default: today)"}),
    Argument("--attach", {"type": Path, "metavar": "FILE", "help": "the raw file, kept with the figures"}),
    Argument("--candidate", {"default": "", "metavar": "ID", "help": "whose figures, where the sheet names nobody"}),
    Argument("--in-flight", {"type": int, "metavar": "N", "help": "requests in flight, where the sheet has none"}),
    Argument("--rate", {"type": float, "metavar": "REQ/S", "help": "offered rate, where the sheet has none"}),
    Argument("--input", {"type": int, "metavar": "TOKENS", "help": "input length, where the sheet has none"}),
    Argument("--output", {"type": int, "metavar": "TOKENS", "help": "output length, where the sheet has none"}),
    Argument("--n", {"type": int, "metavar": "N", "help": "number of requests, where the sheet has none"}),
    Argument("--decimals", {"choices": ("point", "comma"), "help": "how the sheet writes 1.5 (default: cells tell)"}),
    Argument("--column", {"action": "append", "default": [], "metavar": "HEADING=MEANING[,UNIT]",
                          "help": "what a column holds, as in 'Latency=ttft_ms p95,s'"}),
    Argument("--as-planned", {"default": "", "metavar": "GPU",
                              "help": "the runs kept to the plan's contract, on this GPU (as nvidia-smi -L names it)"}),
    Argument("--gpus", {"type": int, "default": 1, "metavar": "N", "help": "how many of them (default: 1)"}),
    Argument("--leave-out", {"action": "store_true", "help": "store the other rows when some are refused"}),
    Argument("--dry-run", {"action": "store_true", "help": "only show what would be stored"}),
)  # fmt: skip


def enter_and_print(ws: Workspace, args: argparse.Namespace, state: CaseState) -> Arrived | None:
    """Show a sheet's figures and store them; None when nothing was stored because rows are refused, or on a dry run."""
    if state.plan is None:
        raise InputError(
            "has no plan yet.", where=state.case.title, fix="Make one first: a figure needs its load point."
        )
    sheet = read_sheet_file(args.file.name, read_bytes(args.file))
    columns = _by_hand(sheet.headings, proposed(sheet), args.column)
    stated = Stated(args.candidate, args.in_flight, args.rate, args.input, args.output, args.n)
    pasted = figures_of(sheet, columns, state.plan, stated, args.decimals)
    _print(pasted)
    if args.dry_run or (pasted.refused and not args.leave_out):
        say("Nothing is stored.")
        return None
    raw = (args.attach.name, read_bytes(args.attach)) if args.attach else None
    arrived = bring_in_table(ws, state.case.id, pasted.rows, by=args.by, source=args.source,
                             measured_at=args.day or now().date(), raw=raw,
                             machine=Machine(args.as_planned, args.gpus) if args.as_planned else None)  # fmt: skip
    say(f"Figures stored as entered by {args.by}: {len(pasted.rows)}.")
    if not args.as_planned:
        say(NO_CONTRACT)
        if names := outdated(state.evidence, pasted.rows, args.day or now().date()):
            say(f"! earlier figures of {', '.join(names)} did; the newest count, so their ratios are refused now.")
    return arrived


def _by_hand(headings: tuple[str, ...], read: tuple[Heading, ...], stated: list[str]) -> tuple[Heading, ...]:
    columns = list(read)
    for part in stated:
        text, _, meaning = part.partition("=")
        holds, _, unit = meaning.partition(",")
        if text not in headings:
            raise InputError(f"{text!r} is no heading.", where="--column", fix=f"Headings: {', '.join(headings)}.")
        if holds not in meanings():
            raise InputError(f"{holds!r} is nothing that a column holds.", where="--column",
                             fix=f"Use one of: {', '.join(meanings())}.")  # fmt: skip
        columns[headings.index(text)] = Heading(holds, unit)
    return tuple(columns)


def _print(pasted: Pasted) -> None:
    rows = [
        (f.row, f.candidate, f.load_point, f.start or "", f.repeat or "", METRICS[f.metric].name,
         f"{f.statistic} {f.spread}".strip(), f.value, METRICS[f.metric].unit, f.n or "")
        for f in pasted.rows
    ]  # fmt: skip
    table("Figures", ("row", "candidate", "load point", "start", "repeat", "figure", "statistic", "value", "unit", "n"),
          rows)  # fmt: skip
    for sentence in (*pasted.left_out, *pasted.findings):
        say(sentence)
    for sentence in pasted.refused:
        say(f"REFUSED {sentence}")
