"""Observed demand in the terminal: from a file or a Prometheus, with what does not count and why."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from decisions.flips import FlipVerdict
from planner.errors import InputError
from planner.observed_days import MIN_COVERAGE
from services.demand import Demand, demand_of_file
from services.demand_queries import demand_of_prometheus
from services.prometheus import Prometheus
from services.workspace import Workspace, now
from ui.terminal import Argument, day, say
from ui.text import t, tn

USAGE_EXAMPLE = "usage --case nortia --prometheus http://prometheus:9090 --selector 'job=\"vllm\"' --by 'A. Operator'"
USAGE_ARGUMENTS = (
    Argument("file", {"type": Path, "nargs": "?", "metavar": "FILE", "help": "CSV of days, or a request log"}),
    Argument("--prometheus", {"metavar": "URL", "help": "read the days from there instead"}),
    Argument("--days", {"type": int, "default": 28, "metavar": "N", "help": "so many days of it (default: 28)"}),
    Argument("--until", {"type": day, "metavar": "DAY", "help": "the last one (default: yesterday)"}),
    Argument("--selector", {"default": "", "metavar": "MATCHERS", "help": "label matchers that name your servers"}),
    Argument("--engine", {"default": "", "metavar": "ID", "help": "whose metrics (default: those that are there)"}),
    Argument("--least-coverage", {"type": float, "default": MIN_COVERAGE, "metavar": "SHARE",
                                  "help": f"of a day, for it to count (default: {MIN_COVERAGE:g})"}),
    Argument("--whole-days", {"action": "store_true", "help": "a log holds all of its first and last day"}),
    Argument("--by", {"required": True, "metavar": "NAME", "help": "who brings it in"}),
    Argument("--source", {"metavar": "TEXT", "help": "where the figures come from (default: the file's name)"}),
)  # fmt: skip


def demand_asked(ws: Workspace, args: argparse.Namespace) -> Demand:
    """What the arguments name; raises InputError, also when they name both or neither."""
    if bool(args.file) == bool(args.prometheus):
        raise InputError("is read from a file or from a Prometheus.", where="usage", fix="Name one of them.")
    if not 0 < args.least_coverage <= 1:
        raise InputError(f"{args.least_coverage:g} is no share.", where="--least-coverage", fix="Write 0.9 for 90 %.")
    if args.file:
        found = demand_of_file(
            args.file.name, _bytes(args.file), whole_days=args.whole_days, least_coverage=args.least_coverage
        )
    else:
        found = demand_of_prometheus(
            Prometheus(args.prometheus), ws.catalog.engines, args.until or (now() - timedelta(days=1)).date(),
            args.days, engine=args.engine, selector=args.selector, least_coverage=args.least_coverage,
        )  # fmt: skip
    return found._replace(source=args.source or found.source)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path), fix="Check the path.") from None


def print_demand(found: Demand) -> None:
    """How many days came in, the highest peak, and what was left out."""
    peaks = [u.peak_in_flight for u in found.days if u.peak_in_flight is not None]
    say(tn(
        len(found.days), "{n} day, {first}; highest peak in flight {peak}",
        "{n} days, {first} to {last}; highest peak in flight {peak}", first=found.days[0].day, last=found.days[-1].day,
        peak=f"{max(peaks):g}" if peaks else t("not known"),
    ))  # fmt: skip
    for sentence in (*found.gap_sentences(), *found.findings):
        say(f"  ! {sentence}")


def demand_json(found: Demand, fired: Sequence[FlipVerdict]) -> dict[str, Any]:
    """The same for a machine."""
    return {
        "source": found.source, "days": [u._asdict() for u in found.days], "gaps": [g._asdict() for g in found.gaps],
        "findings": found.findings, "fired": [{"condition": f.condition, "sentence": f.sentence} for f in fired],
    }  # fmt: skip
