"""A request log in the terminal: what it says, what it proposes, and the trace to replay."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from planner.errors import InputError
from planner.faults import first_fault
from planner.requirements import Requirements
from planner.traffic import TrafficSummary, summarise
from planner.traffic_in_flight import LatencyModel
from planner.traffic_proposal import propose
from planner.traffic_replay import Cut, replay, trace_csv, trace_point
from services.traffic import latency_of
from services.traffic_layouts import ROLES, Layout, Role, Unit, by_hand
from services.traffic_log import Log, columns_of, read_log
from ui.terminal import Argument, as_json, say, table
from ui.text import t
from ui.traffic_figures import LENGTH_COLUMNS, figures, length_rows

TRAFFIC_EXAMPLE = "traffic gateway.csv --case nortia --replay traffic.csv --minutes 10"
TRAFFIC_ARGUMENTS = (
    Argument("file", {"type": Path, "metavar": "FILE", "help": "CSV, JSON lines, or ShareGPT's JSON"}),
    Argument("--case", {"metavar": "SLUG", "help": "compare with the requirements of this case"}),
    Argument("--columns", {"metavar": "ROLE=NAME,...", "help": f"by hand; roles: {', '.join(ROLES)}"}),
    Argument("--unit", {"choices": get_args(Unit), "default": "auto", "help": "of a clock in numbers"}),
    Argument("--leave-out", {"action": "store_true", "help": "take the log without its broken rows"}),
    Argument("--first-s", {"type": float, "metavar": "S", "help": "assumed time to the first token"}),
    Argument("--tok-s", {"type": float, "metavar": "TOK/S", "help": "assumed speed after it"}),
    Argument("--replay", {"type": Path, "metavar": "FILE", "help": "write the scrubbed trace there"}),
    Argument("--minutes", {"type": float, "metavar": "MIN", "help": "replay the busiest window of this length"}),
    Argument("--rate-scale", {"type": float, "default": 1.0, "metavar": "X", "help": "play it so many times as fast"}),
    Argument("--requests", {"type": int, "metavar": "N", "help": "draw so many when there are more"}),
    Argument("--rate", {"type": float, "metavar": "REQ/S", "help": "for a log without times"}),
    Argument("--seed", {"type": int, "default": 1, "metavar": "N", "help": "of the draw (default: 1)"}),
)


def read_and_print(args: argparse.Namespace, r: Requirements | None) -> None:
    """Read the log that the arguments name and print or write what they ask for; raises InputError."""
    path: Path = args.file
    try:
        content = path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path), fix="Check the path.") from None
    log = read_log(path.name, content, _layout(args, content), leave_out=args.leave_out)
    latency = _latency(args, r)
    s = summarise(log.requests, latency)
    point = _write_replay(args, log) if args.replay else None
    proposed = propose(r, s) if r else ()
    if args.json:
        as_json({
            "name": log.name, "sha256": log.sha256, "layout": log.layout, "findings": log.findings,
            "left_out": log.left_out, "estimated": log.estimated, "summary": s.model_dump(mode="json"),
            "assumed_latency": latency.model_dump() if latency else None,
            "proposed": [p._asdict() for p in proposed], "load_point": point,
        })  # fmt: skip
        return
    _print(log, s)
    if r:
        table(t("By the log, against the requirements"), ("field", "now", "by the log", "why"), proposed)
    if point:
        say(t("{file}: {n} requests; its load point: {point}", file=args.replay, n=point["requests"], point=point))


def _print(log: Log, s: TrafficSummary) -> None:
    say(f"{log.name}: {t(log.layout)}, sha256 {log.sha256}")
    for sentence in (*log.findings, *log.left_out):
        say(f"  ! {sentence}")
    table(t("Lengths in tokens"), ("", *LENGTH_COLUMNS), length_rows(s))
    table(t("What the log says"), ("figure", "value", "meaning"), figures(s))


def _layout(args: argparse.Namespace, content: bytes) -> Layout | None:
    if not args.columns:
        return None
    named: dict[Role, str] = {}
    for part in args.columns.split(","):
        role, _, name = part.partition("=")
        named[role.strip()] = name.strip()  # type: ignore[index]  # by_hand says which roles there are
    return by_hand(named, args.unit, columns_of(args.file.name, content))


def _latency(args: argparse.Namespace, r: Requirements | None) -> LatencyModel | None:
    if args.tok_s is not None:
        try:
            return LatencyModel(first_s=args.first_s or 0.0, tok_s=args.tok_s)
        except ValidationError as e:
            raise InputError(first_fault(e), where="--first-s, --tok-s", fix="Write the latency you assume.") from None
    return latency_of(r) if r else None


def _write_replay(args: argparse.Namespace, log: Log) -> dict[str, Any]:
    minutes = None if args.minutes is None else args.minutes * 60
    try:
        cut = Cut(duration_s=minutes, rate_scale=args.rate_scale, requests=args.requests, rate_per_s=args.rate,
                  seed=args.seed)  # fmt: skip
    except ValidationError as e:
        raise InputError(first_fault(e), where="--replay", fix="Minutes, scale, requests and rate say how.") from None
    rows = replay(log.requests, cut)
    args.replay.write_bytes(trace_csv(rows))
    return trace_point("real-traffic", args.replay.name, rows).model_dump(mode="json", exclude_defaults=True)
