"""`python -m bench compare`: two bundles side by side, metric by metric, and whether they may be compared at all."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from bench.commands import BAD_RESULT, OK, PLAIN_WIDTH
from bundle.folder import find_bundles
from bundle.manifest import Manifest
from bundle.quality import Judged, difference
from bundle.run_data import RunData, read_run
from bundle.summary import evidence_of
from planner.conditions import Evidence
from planner.contract import Parity, parity
from planner.errors import BundleError
from planner.metrics import METRICS, quantity
from planner.paired import Paired
from planner.pairing import PER_TOKEN
from planner.precision_claims import crossing, warning_for
from planner.printable import printable

NOT_MEASURED = "not measured"
INVALID = "invalid run"


class Row(NamedTuple):
    """One metric and statistic at one load on both sides; None is not measured or not valid, `why` says which."""

    load: str
    metric: str
    statistic: str
    left: float | None
    right: float | None
    why: tuple[str, str]
    ratio: float | None


class Compared(NamedTuple):
    """Two bundles; a row has a ratio only where the contracts and the load allow one.

    `warning` is what stands beside speeds in two precisions while no quality set was answered by both, or one is lost.
    """

    parity: Parity
    rows: tuple[Row, ...]
    quality: tuple[tuple[str, Paired], ...] = ()
    warning: str = ""


def compare(left: Path, right: Path) -> Compared:
    """Set two bundles side by side; raises BundleError when one of them does not verify."""
    runs = read_run(_bundle(left)), read_run(_bundle(right))
    agreed = parity(runs[0].manifest.contract, runs[1].manifest.contract)
    evidence = [tuple(evidence_of(run)) for run in runs]
    sides = [_grouped(pieces) for pieces in evidence]
    names = [{p.load_hash(): p.in_words() for p in run.manifest.points} for run in runs]
    metrics = list(METRICS)
    keys = sorted(
        sides[0].keys() | sides[1].keys(), key=lambda k: (k[0] or "", metrics.index(k[1]), k[2].rjust(5))
    )  # fmt: skip
    rows = []
    for key in keys:
        load, metric, statistic = key
        (a, why_a), (b, why_b) = (_value(side.get(key, ())) for side in sides)
        declared = agreed.state == "comparable with a declared difference"
        comparable = agreed.state != "refused" and (not declared or metric in PER_TOKEN)
        ratio = a / b if comparable and a is not None and b else None
        words = names[0].get(load or "") or names[1].get(load or "") or ""
        rows.append(Row(words, metric, statistic, a, b, (why_a, why_b), ratio))
    warning = _warning(runs[0].manifest, runs[1].manifest, (*evidence[0], *evidence[1]))
    return Compared(agreed, tuple(rows), _quality(*runs), warning)


def _warning(left: Manifest, right: Manifest, evidence: Iterable[Evidence]) -> str:
    """What must stand beside speeds in two precisions."""
    contracts = {m.contract.full_hash(): m.contract for m in (left, right)}
    return warning_for(left.candidate, right.candidate, crossing(left.contract, right.contract), evidence, contracts)


def _quality(left: RunData, right: RunData) -> tuple[tuple[str, Paired], ...]:
    """The paired difference on every quality set that both bundles answered."""
    sides: list[dict[str, list[Judged]]] = []
    for run in (left, right):
        found: dict[str, list[Judged]] = {}
        for d in run.repeats:
            if d.quality:
                found.setdefault(d.point.load_hash(), []).extend(d.quality)
        sides.append(found)
    words = {p.load_hash(): p.in_words() for p in left.manifest.points}
    return tuple((words[load], difference(sides[0][load], sides[1][load])) for load in sides[0] if load in sides[1])


def _bundle(folder: Path) -> Path:
    found = find_bundles(folder) if folder.is_dir() else []
    if len(found) != 1:
        what = f"holds {len(found)} bundles, not one" if found else "holds no bundle"
        raise BundleError(f"{what}.", where=str(folder), fix="Name the folder of one start.")
    return found[0]


def _grouped(evidence: Iterable[Evidence]) -> dict[tuple[str | None, str, str], list[Evidence]]:
    groups: dict[tuple[str | None, str, str], list[Evidence]] = {}
    for e in evidence:
        groups.setdefault((e.load_hash, e.metric, e.statistic), []).append(e)
    return groups


def _value(pieces: Sequence[Evidence]) -> tuple[float | None, str]:
    """Median over repeats of what is valid, or the words for its absence."""
    valid = [e.value for e in pieces if e.valid]
    if valid:
        return statistics.median(valid), ""
    return None, INVALID if pieces else NOT_MEASURED


def run(options: argparse.Namespace) -> int:
    """Print two bundles side by side; 1 when their contracts refuse a comparison."""
    found = compare(options.left, options.right)
    if options.json:
        differences = [str(m) for m in found.parity.differences]
        rows = [r._asdict() for r in found.rows]
        quality = [{"load": load, **q._asdict(), "outcome": q.outcome} for load, q in found.quality]
        told = {"parity": found.parity.state, "differences": differences, "warning": found.warning, "rows": rows,
                "quality": quality}  # fmt: skip
        print(json.dumps(told))
    else:
        _say(found, options.left.name, options.right.name)
    return BAD_RESULT if found.parity.state == "refused" else OK


def _say(found: Compared, left: str, right: str) -> None:
    print(f"Contracts: {found.parity.state}")
    for moved in found.parity.differences:
        print(printable(f"  {moved}"))
    if found.parity.state == "comparable with a declared difference":
        print("  Only figures per token are held against each other.")
    if found.warning:
        print(found.warning)
    for load, q in found.quality:
        print(f"{load}, left against right: {q.sentence} (McNemar, exact).")
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    table = Table("load", "metric", "statistic", left, right, "ratio", box=box.SIMPLE_HEAD)
    for r in found.rows:
        unit = METRICS[r.metric].unit
        cells = (quantity(v, unit) if v is not None else why for v, why in zip((r.left, r.right), r.why, strict=True))
        table.add_row(r.load, r.metric, r.statistic, *cells, "" if r.ratio is None else f"{r.ratio:.3g} x")
    console.print(table)
