"""What the commands run, check and summary do. Apart from the parser: loading pyarrow takes half a second."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.doctor import examine
from bench.inputs import read_inputs
from bench.job import Checked, check_candidate
from bench.progress import note_refusal
from bench.runner import RunResult, check_plan, run_plan
from bundle.folder import find_bundles
from bundle.summary import summarise
from planner.conditions import Evidence
from planner.contract_check import refuse_contradictions
from planner.errors import BundleError, FliplineError, InputError
from planner.plan_file import plan_from_yaml
from planner.poc import Plan
from planner.printable import printable

OK, BAD_RESULT, CANCELLED = 0, 1, 130
PLAIN_WIDTH = 160  # of a table that goes to a file or a pipe


def read_plan(path: Path) -> Plan:
    """Read a plan file; raises InputError, also for load points that its contract rules out."""
    try:
        plan = plan_from_yaml(path.read_text(encoding="utf-8"), where=path.name)
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=str(path)) from None
    refuse_contradictions(plan, where=path.name)
    return plan


def run(options: argparse.Namespace) -> int:
    """Measure a plan."""
    bar = sys.stderr.isatty() and not options.json
    try:
        plan = read_plan(options.plan)
        result = asyncio.run(run_plan(plan, options.out, allow_command=options.allow_command, bar=bar,
                                      folder=options.plan.parent, shards=options.shards))  # fmt: skip
    except FliplineError as e:
        note_refusal(options.out, str(e))
        raise
    if options.json:
        told = result._asdict() | {"bundles": [str(b) for b in result.bundles]}
        print(json.dumps(told))
    else:
        _say_result(result)
    if result.state == "cancelled":
        return CANCELLED
    return BAD_RESULT if result.failed else OK


def _say_result(result: RunResult) -> None:
    for folder in result.bundles:
        print(f"{'FAILED' if folder.name in result.failed else 'ok':6} {folder}")
    for note in result.notes:
        print(printable(note))
    if result.state == "cancelled":
        print("Cancelled. The same command goes on from here.")


def check(options: argparse.Namespace) -> int:
    """Try every candidate of a plan with one request."""
    plan = read_plan(options.plan)
    check_plan(plan, allow_command=options.allow_command)
    inputs = read_inputs(plan, options.plan.parent)
    with tempfile.TemporaryDirectory() as folder:
        found = [asyncio.run(check_candidate(plan, c, Path(folder), inputs)) for c in plan.candidates]
    if options.json:
        print(json.dumps([c._asdict() for c in found]))
    else:
        for checked in found:
            _say_checked(checked)
    return BAD_RESULT if any(c.error for c in found) else OK


def _say_checked(checked: Checked) -> None:
    state = f"FAILED {checked.error}" if checked.error else "ok"
    print(printable(f"{checked.candidate}: {state}"))
    if not checked.error:
        kind = " (emulator: results are simulated)" if checked.simulated else ""
        capacity = checked.kv_capacity_tokens or "not stated"
        print(printable(f"  version {checked.version or 'not stated'}{kind}, KV capacity {capacity}"))
    for finding in checked.findings:
        print(printable(f"  {finding}"))


def doctor(options: argparse.Namespace) -> int:
    """Say what on this machine would spoil a measurement."""
    found = examine()
    spoiled = sum(c.state == "spoils" for c in found)
    if options.json:
        print(json.dumps([c._asdict() for c in found]))
        return BAD_RESULT if spoiled else OK
    for c in found:
        print(f"{c.state:6} {c.name}: {c.sentence}")
        if c.way_out:
            print(f"{'':7}{c.way_out}")
    print(f"{spoiled} of {len(found)} would spoil a measurement." if spoiled else "Nothing would spoil a measurement.")
    return BAD_RESULT if spoiled else OK


def summary(options: argparse.Namespace) -> int:
    """Print the evidence of bundles."""
    folders = find_bundles(options.folder) if options.folder.is_dir() else []
    if not folders:
        raise BundleError("holds no bundle.", where=str(options.folder), fix="Choose the folder given to --out.")
    evidence = [(folder.name, e) for folder in folders for e in summarise(folder)]
    if options.json:
        print(json.dumps([{"bundle": name, **e.model_dump(mode="json")} for name, e in evidence]))
        return OK
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    for folder in folders:
        console.print(_table(folder.name, [e for name, e in evidence if name == folder.name]))
    return OK


def _table(title: str, evidence: list[Evidence]) -> Table:
    table = Table("load point", "metric", "statistic", "value", "unit", "n", "kind", "spoiled by",
                  title=title, title_justify="left", box=box.SIMPLE_HEAD)  # fmt: skip
    for e in evidence:
        spoiled = escape(printable("; ".join(e.spoiled_by)))
        table.add_row(e.load_point or "", e.metric, e.statistic, f"{e.value:.4g}", e.unit,
                      "" if e.n is None else str(e.n), e.kind.value, spoiled)  # fmt: skip
    return table
