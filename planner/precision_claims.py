"""A speed claimed across precisions needs a quality result beside it: which claims cross, and what stands beside them.

Quantization changes the model. Whatever prints such a claim prints what this module says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

from planner.conditions import STANDING, Evidence
from planner.contract import Contract, Moved
from planner.deciding_items import paired
from planner.metrics import METRICS
from planner.paired import Paired

PRECISION = ("quantization", "kv_cache_dtype")  # contract fields that change what a model answers
SPEED_UNITS = frozenset({"ms", "tok/s", "req/s"})


class Beside(NamedTuple):
    """What stands beside a claim of speed across precisions; it warns without a quality result, or with a loss."""

    sentence: str
    warns: bool


def beside(
    left: str, right: str, differences: Iterable[Moved], evidence: Iterable[Evidence],
    contracts: Mapping[str, Contract],
) -> Beside | None:  # fmt: skip
    """What is known of quality beside a speed of `left` against `right`; None when their precision is the same.

    `differences` are those of the two contracts. A quality result is a set that both answered, in these precisions.
    """
    crossed = [m for m in differences if m.field in PRECISION]
    if not crossed:
        return None
    found = _results(left, right, crossed, tuple(evidence), contracts)
    if not found:
        names = " and ".join(f"{m.field} ({m.left} -> {m.right})" for m in crossed)
        return Beside(
            f"Warning: {left} and {right} differ in {names}, and no quality result stands beside their speeds", True
        )
    told = "; ".join(f.sentence for f in found)
    lost = any(f.outcome == "loss shown" for f in found)
    return Beside(f"{'Warning: quality of' if lost else 'Quality of'} {left} against {right}: {told}", lost)


def warning_for(
    left: str, right: str, differences: Iterable[Moved], evidence: Iterable[Evidence],
    contracts: Mapping[str, Contract],
) -> str:  # fmt: skip
    """The warning that a speed of `left` against `right` carries; empty when it needs none."""
    found = beside(left, right, differences, evidence, contracts)
    return f"{found.sentence}." if found and found.warns else ""


def warnings_among(
    speeds: Iterable[Evidence], evidence: Iterable[Evidence], contracts: Mapping[str, Contract],
    planned: Mapping[str, Contract] = {},
) -> tuple[str, ...]:  # fmt: skip
    """A warning for each two candidates whose speeds stand side by side in different precisions.

    A speed that states no contract, as one that was typed in, stands under what is `planned` for its candidate.
    """
    pieces = tuple(evidence)
    newest: dict[str, tuple[datetime, str, Contract]] = {}
    for e in speeds:
        contract = contracts.get(e.contract or "") or planned.get(e.candidate or "")
        if e.candidate and contract and e.kind in STANDING and METRICS[e.metric].unit in SPEED_UNITS:
            known = newest.get(e.candidate)
            if known is None or (e.at, e.id) > known[:2]:
                newest[e.candidate] = (e.at, e.id, contract)
    found = []
    for left, right in combinations(sorted(newest), 2):
        found.append(warning_for(left, right, crossing(newest[left][-1], newest[right][-1]), pieces, contracts))
    return tuple(w for w in found if w)


def crossing(left: Contract, right: Contract) -> tuple[Moved, ...]:
    """The fields of precision that both contracts state and that differ."""
    a, b = left.stated(), right.stated()
    return tuple(Moved(f, a[f], b[f]) for f in PRECISION if f in a and f in b and a[f] != b[f])


def _results(
    left: str, right: str, crossed: Sequence[Moved], evidence: Sequence[Evidence], contracts: Mapping[str, Contract]
) -> list[Paired]:
    """Both sides paired on each quality set that both answered, valid and in the precision that the claim is about."""
    sides: list[dict[str, list[Evidence]]] = [{}, {}]
    for side, candidate, wanted in (
        (sides[0], left, {m.field: m.left for m in crossed}),
        (sides[1], right, {m.field: m.right for m in crossed}),
    ):
        for e in evidence:
            if e.metric != "pass_rate" or e.candidate != candidate or not (e.valid and e.items and e.load_hash):
                continue
            contract = contracts.get(e.contract or "")
            if e.kind in STANDING and contract and wanted.items() <= contract.stated().items():
                side.setdefault(e.load_hash, []).append(e)
    pairs = (paired(sides[0][load], sides[1][load]) for load in sorted(sides[0].keys() & sides[1].keys()))
    return [p for p in pairs if p]
