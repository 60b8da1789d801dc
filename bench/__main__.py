"""The instrument's terminal entry: python -m bench run | check | emulate | summary.

Exit codes: 0 done, 1 done but a server failed, 2 the input is wrong, 130 cancelled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.admission import FAULTS, Settings
from bench.emulator import fault_of, serve
from bench.job import Checked, check_candidate
from bench.runner import RunResult, check_plan, run_plan
from bundle.folder import find_bundles
from bundle.summary import summarise
from planner.errors import BundleError, FliplineError, InputError
from planner.poc import Plan, plan_from_yaml

OK, BAD_RESULT, BAD_INPUT, CANCELLED = 0, 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except FliplineError as e:
        print(f"bench: {e}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return CANCELLED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure a server for a language model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "measure a plan and write one bundle per start",
                   "python -m bench run plan.yaml --out results")  # fmt: skip
    run.add_argument("plan", type=Path, help="plan file (YAML)")
    run.add_argument(
        "--out", type=Path, required=True, help="folder for bundles and progress.json; resumes what is there"
    )
    _may_name_commands(run)
    run.add_argument("--json", action="store_true", help="print the result as JSON")

    check = _command(commands, "check", _check, "start or attach to each server and try one request",
                     "python -m bench check plan.yaml")  # fmt: skip
    check.add_argument("plan", type=Path, help="plan file (YAML)")
    _may_name_commands(check)
    check.add_argument("--json", action="store_true", help="print the result as JSON")

    emulate = _command(commands, "emulate", _emulate, "serve an OpenAI-compatible API with known timing",
                       "python -m bench emulate --port 8000 --ttft-ms 100 --itl-ms 20 --slots 16")  # fmt: skip
    emulate.add_argument("--host", default="127.0.0.1")
    emulate.add_argument("--port", type=int, default=8000, help="0 lets the system choose")
    emulate.add_argument("--model", default="emulated", help="model name to answer to")
    emulate.add_argument("--ttft-ms", type=float, default=100.0, help="from admission to the first token")
    emulate.add_argument("--itl-ms", type=float, default=20.0, help="between tokens")
    emulate.add_argument("--slots", type=int, default=256, help="requests that run at once; the others wait")
    emulate.add_argument("--kv-tokens", type=int, default=1_000_000, help="KV cache in tokens")
    emulate.add_argument(
        "--fault",
        default="none",
        metavar="NAME[:AFTER]",
        help="a fault after so many good chat requests; " + "; ".join(f"{k}: {v}" for k, v in FAULTS.items()),
    )

    summary = _command(commands, "summary", _summary, "print the evidence in bundles",
                       "python -m bench summary results")  # fmt: skip
    summary.add_argument("folder", type=Path, help="a bundle, or a folder of bundles")
    summary.add_argument("--json", action="store_true", help="print the evidence as JSON")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    what: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.",
                                 epilog=f"Example: {example}")  # fmt: skip
    parser.set_defaults(command=run)
    return parser


def _may_name_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-command", action="store_true",
                        help="run commands of the plan that are not those of a known engine")  # fmt: skip


def read_plan(path: Path) -> Plan:
    """Read a plan file; raises InputError."""
    try:
        return plan_from_yaml(path.read_text(encoding="utf-8"), where=path.name)
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=str(path)) from None


def _run(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan)
    bar = sys.stderr.isatty() and not options.json
    result = asyncio.run(run_plan(plan, options.out, allow_command=options.allow_command, bar=bar))
    if options.json:
        print(json.dumps({"state": result.state, "bundles": [str(b) for b in result.bundles], "failed": result.failed}))
    else:
        _say_result(result)
    if result.state == "cancelled":
        return CANCELLED
    return BAD_RESULT if result.failed else OK


def _say_result(result: RunResult) -> None:
    for folder in result.bundles:
        print(f"{'FAILED' if folder.name in result.failed else 'ok':6} {folder}")
    if result.state == "cancelled":
        print("Cancelled. The same command goes on from here.")


def _check(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan)
    check_plan(plan, allow_command=options.allow_command)
    with tempfile.TemporaryDirectory() as folder:
        found = [asyncio.run(check_candidate(plan, c, Path(folder))) for c in plan.candidates]
    if options.json:
        print(json.dumps([c._asdict() for c in found]))
    else:
        for checked in found:
            _say_checked(checked)
    return BAD_RESULT if any(c.error for c in found) else OK


def _say_checked(checked: Checked) -> None:
    state = f"FAILED {checked.error}" if checked.error else "ok"
    print(f"{checked.candidate}: {state}")
    if not checked.error:
        kind = " (emulator: results are simulated)" if checked.simulated else ""
        capacity = checked.kv_capacity_tokens or "not stated"
        print(f"  version {checked.version or 'not stated'}{kind}, KV capacity {capacity}")
    for finding in checked.findings:
        print(f"  {finding}")


def _emulate(options: argparse.Namespace) -> int:
    fault, after = fault_of(options.fault)
    settings = Settings(model=options.model, ttft_ms=options.ttft_ms, itl_ms=options.itl_ms, slots=options.slots,
                        kv_tokens=options.kv_tokens, fault=fault, fault_after=after)  # fmt: skip
    try:
        return asyncio.run(serve(settings, options.host, options.port))
    except OSError as e:
        raise InputError(f"port {options.port} cannot be used: {e.strerror}.", fix="Choose another --port.") from None


def _summary(options: argparse.Namespace) -> int:
    folders = find_bundles(options.folder) if options.folder.is_dir() else []
    if not folders:
        raise BundleError("holds no bundle.", where=str(options.folder), fix="Choose the folder given to --out.")
    evidence = [(folder.name, e) for folder in folders for e in summarise(folder)]
    if options.json:
        print(json.dumps([{"bundle": name, **e.model_dump(mode="json")} for name, e in evidence]))
        return OK
    table = Table("bundle", "load point", "metric", "statistic", "value", "unit", "n", "kind", "spoiled by")
    for name, e in evidence:
        table.add_row(name, e.load_point or "", e.metric, e.statistic, f"{e.value:.4g}", e.unit,
                      "" if e.n is None else str(e.n), e.kind.value, "; ".join(e.spoiled_by))  # fmt: skip
    Console().print(table)
    return OK


if __name__ == "__main__":
    sys.exit(main())
