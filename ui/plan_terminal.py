"""A plan in the terminal: the file that bench runs, what it costs, the ready folder, and the request for GPU time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from planner.errors import InputError
from planner.plan_file import plan_to_yaml
from planner.plan_trim import Lost
from planner.poc import Plan
from planner.requirements import Requirements
from planner.units import format_duration
from services.gpu_kit import PROCESSORS, gpu_kit
from services.gpu_request import FORMS, Asking, as_html, as_markdown, gpu_request
from services.plan_costs import DEFAULT_MBIT_S, cost_of
from services.plan_files import shipped_beside
from services.plans import AS_DERIVED, choices_of, draft_plan
from services.ready_folder import ready_folder
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.terminal import Argument, say, table

PLAN_EXAMPLE = "plan --case nortia --budget 360 --folder nortia-poc"
PLAN_ARGUMENTS = (
    Argument("--out", {"type": Path, "metavar": "FILE", "help": "write it there (default: print it)"}),
    Argument("--draft", {"action": "store_true", "help": "a fresh draft although one is stored"}),
    Argument("--budget", {"type": float, "metavar": "MIN", "help": "a fresh draft, cut down to so many minutes"}),
    Argument("--cost", {"action": "store_true", "help": "minutes and tokens by candidate and load point instead"}),
    Argument("--folder", {"type": Path, "metavar": "DIR", "help": "the ready folder for the GPU box instead: plan, "
                          "start scripts, request, README"}),
    Argument("--kit", {"choices": PROCESSORS, "help": "with --folder: the instrument too, packed for that processor"}),
    Argument("--request", {"choices": list(FORMS), "help": "the one-page request for GPU time instead"}),
    Argument("--price-per-hour", {"type": float, "metavar": "N", "help": "what an hour of the machine costs"}),
    Argument("--mbit-s", {"type": float, "default": DEFAULT_MBIT_S, "metavar": "N",
                          "help": f"line for the downloads (default: {DEFAULT_MBIT_S:g})"}),
    Argument("--approver", {"default": "", "metavar": "NAME", "help": "who approves (default: left to sign)"}),
)  # fmt: skip


class Standing(NamedTuple):
    """The plan that is written: its file's bytes, where it comes from in words, and what a budget cost."""

    plan: Plan
    body: bytes
    what: str
    lost: tuple[Lost, ...] = ()


def write_plan(ws: Workspace, state: CaseState, r: Requirements, args: argparse.Namespace) -> None:
    """Print or write what is asked for. Raises InputError for a budget, a price or a place that will not do."""
    found = _standing(ws, state, r, args)
    for lost in found.lost:
        print(f"! the budget cost {lost.what} ({format_duration(lost.minutes * 60)}): {lost.why}", file=sys.stderr)
    if args.cost:
        _print_cost(ws, r, found)
        return
    asking = Asking(args.price_per_hour, args.mbit_s, approver=args.approver.strip())
    if args.folder:
        request = gpu_request(ws, r, found.plan, now().date(), asking)
        texts = {"request.md": as_markdown(request), "request.html": as_html(request)}
        kit = gpu_kit(args.kit, found.body, shipped_beside(found.plan)) if args.kit else None
        _write(args.folder, ready_folder(found.plan, found.body, texts, kit))
        say(f"{args.folder}: {found.what}.")
        return
    body = found.body
    if args.request:
        body = FORMS[args.request](gpu_request(ws, r, found.plan, now().date(), asking)).encode()
    if args.out:
        _write(args.out.parent, {args.out.name: body})
        say(f"{args.out}: {f'request for the {found.what}' if args.request else found.what}.")
    else:
        sys.stdout.write(body.decode())


def _standing(ws: Workspace, state: CaseState, r: Requirements, args: argparse.Namespace) -> Standing:
    """The stored plan while it fits the requirements, else a fresh draft; a budget asks for one."""
    stored = None if args.draft or args.budget is not None or state.plan_is_stale else state.stored_plan
    if stored:
        return Standing(stored.plan(), stored.body, f"stored plan {stored.sha256[:12]} of {stored.at:%Y-%m-%d}")
    choices = AS_DERIVED
    if args.budget is not None:
        choices = (choices_of(state.plan) if state.plan else AS_DERIVED)._replace(budget_min=args.budget)
    drafted = draft_plan(ws, state.case.slug, r, choices)
    time = format_duration(drafted.cost.minutes * 60)
    what = f"draft, not stored; about {time} of GPU time by the planning value"
    return Standing(drafted.plan, plan_to_yaml(drafted.plan).encode(), what, drafted.lost)


def _print_cost(ws: Workspace, r: Requirements, found: Standing) -> None:
    cost = cost_of(ws, r, found.plan)
    rows = [
        (p.candidate, p.stage, p.point, p.times, format_duration(p.seconds), format_duration(p.total_s),
         p.times * p.prompt_tokens, p.times * p.output_tokens, p.ends)
        for p in cost.points
    ]  # fmt: skip
    columns = ("candidate", "stage", "point", "runs", "each", "together", "prompt tokens", "answer tokens", "rests on")
    table("Time and tokens", columns, rows)
    say(f"{found.what}: {format_duration(cost.minutes * 60)}, of which {format_duration(cost.start_minutes * 60)} are "
        f"starts; {cost.prompt_tokens:,} prompt and {cost.output_tokens:,} answer tokens.")  # fmt: skip


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
            if name.endswith(".sh"):
                (folder / name).chmod(0o755)
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(folder), fix="Name another place.") from None
