"""Quality sets of a case: pass rates with intervals, candidates paired by item, and which claims lack a result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from bundle.quality import Judged
from db.runs import Run
from planner.conditions import Evidence, Kind
from planner.deciding_items import paired
from planner.known import Known
from planner.paired import Paired
from planner.pairing import agreement
from planner.precision_claims import warnings_among
from planner.statistics import share_interval
from services.quality_items import judged_items
from services.verdicts import CaseState
from services.workspace import Workspace

SEEN = (Kind.MEASURED, Kind.IMPORTED, Kind.ENTERED, Kind.SIMULATED)
SPEEDS = ("output_tok_s", "user_tok_s", "request_rate", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")


class Rate(NamedTuple):
    """What one candidate passed of one set: mean over starts, the exact 95 % interval over items, and what spoiled it.

    `pieces` are the figures behind it; `items` is None where the source states no number.
    """

    candidate: str
    point: str
    kind: Kind
    value: float
    interval: tuple[float, float] | None
    items: int | None
    starts: int
    spoiled_by: tuple[str, ...]
    pieces: tuple[Evidence, ...]


class PairOfRates(NamedTuple):
    """Two candidates on one set; `found` is None where they do not compare, and `refused` says why."""

    left: Rate
    right: Rate
    differences: tuple[str, ...]
    found: Paired | None
    refused: str = ""


class Differing(NamedTuple):
    """An item that only one side passed, with both answers."""

    item: str
    expects: str
    passed_by: str
    left: str
    right: str


def rates(state: CaseState) -> tuple[Rate, ...]:
    """Pass rates per candidate, set and kind, in the order of the plan; a set is known by what is in it."""
    groups: dict[tuple[str, str, Kind, bool], list[Evidence]] = {}
    for e in Known.of(state.evidence).of_metric("pass_rate"):
        if e.kind in SEEN and e.candidate:
            groups.setdefault((e.candidate, e.load_hash or e.load_point or "", e.kind, e.valid), []).append(e)
    order = {c.id: i for i, c in enumerate(state.plan.candidates)} if state.plan else {}
    found = [_rate(pieces) for pieces in groups.values()]
    return tuple(sorted(found, key=lambda r: (r.point, order.get(r.candidate, len(order)), r.candidate, r.kind)))


def _rate(pieces: Sequence[Evidence]) -> Rate:
    first, n = pieces[0], max((e.n or 0 for e in pieces), default=0)
    value = sum(e.value for e in pieces) / len(pieces)
    return Rate(
        candidate=first.candidate or "", point=first.load_point or "", kind=first.kind, value=value,
        interval=share_interval(round(value * n), n) if n else None, items=n or None,
        starts=len({e.source for e in pieces}),
        spoiled_by=tuple(dict.fromkeys(x for e in pieces for x in e.spoiled_by)), pieces=tuple(pieces),
    )  # fmt: skip


def pairs(state: CaseState) -> tuple[PairOfRates, ...]:
    """Every two candidates that answered the same set, known in the same way, by item."""
    valid = [r for r in rates(state) if not r.spoiled_by]
    return tuple(
        _pair(state, a, b)
        for a, b in combinations(valid, 2)
        if a.candidate != b.candidate and a.kind == b.kind and a.pieces[0].load_hash == b.pieces[0].load_hash
    )


def _pair(state: CaseState, left: Rate, right: Rate) -> PairOfRates:
    agreed = agreement(left.pieces, right.pieces, state.context)
    if agreed is None:
        return PairOfRates(left, right, (), None, "a side states no contract")
    differences = tuple(str(m) for m in agreed.differences)
    if agreed.state == "refused":
        return PairOfRates(left, right, (), None, "; ".join(differences))
    found = paired(left.pieces, right.pieces)
    return PairOfRates(left, right, differences, found, "" if found else "no item is stated on both sides")


def precision_warnings(state: CaseState) -> tuple[str, ...]:
    """A warning for each two candidates whose speeds stand on a page in different precisions without a result."""
    known = Known.of(state.evidence)
    speeds, rates_ = known.of_metric(*SPEEDS), known.of_metric("pass_rate")
    return warnings_among(speeds, rates_, state.context.contracts, state.context.decided)


def differing(ws: Workspace, state: CaseState, pair: PairOfRates) -> tuple[Differing, ...]:
    """The items that only one side passed, with both first answers, from the kept bundles.

    Raises BundleError when one of them was altered or is gone.
    """
    left, right = (_first_answers(ws, state.runs, r) for r in (pair.left, pair.right))
    return tuple(
        Differing(
            item, left[item].expects, (pair.left if left[item].passed else pair.right).candidate, left[item].answer,
            right[item].answer,
        )
        for item in left
        if item in right and left[item].passed != right[item].passed
    )  # fmt: skip


def _first_answers(ws: Workspace, runs: Sequence[Run], rate: Rate) -> dict[str, Judged]:
    by_source = {r.sha256[:12]: r for r in runs}
    found: dict[str, Judged] = {}
    for e in sorted(rate.pieces, key=lambda e: (e.start or 0, e.repeat or 0, e.id)):
        for judged in judged_items(ws, by_source, e):
            found.setdefault(judged.id, judged)
    return found
