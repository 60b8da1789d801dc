"""Two candidates of a case, figure by figure and load point by load point."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

from planner.comparison import Comparison, compare
from planner.conditions import STANDING, Evidence
from planner.contract import Parity
from planner.metrics import METRICS, Direction, Level
from planner.pairing import QUALITY, agreement
from services.verdicts import CaseState

# Quality is compared by its items (quality_loss): every start answers the same ones, so starts are no sample of it.
_COMPARED = frozenset(
    m.id
    for m in METRICS.values()
    if m.level in (Level.REQUEST, Level.RUN) and m.direction is not Direction.NEITHER and m.id not in QUALITY
)
# What a reader looks at first; the rest of what was seen follows on request.
HEADLINE = (
    ("output_tok_s", "value"), ("user_tok_s", "p5"), ("ttft_ms", "p50"), ("ttft_ms", "p95"), ("ttft_ms", "p99"),
    ("tpot_ms", "p50"), ("itl_ms", "p99"), ("error_share", "value"), ("goodput", "value"),
)  # fmt: skip


class Compared(NamedTuple):
    """Two candidates with what their contracts allow (None: a side states none yet), and every figure."""

    left: str
    right: str
    parity: Parity | None
    rows: tuple[Comparison, ...]

    @property
    def by_chance(self) -> tuple[int, float]:
        """Rows that rest on ranges over starts, and how many of them would show a difference if there were none."""
        chances = [row.chance for row in self.rows if row.chance is not None]
        return len(chances), sum(chances)


def pairs(state: CaseState) -> tuple[tuple[str, str], ...]:
    """Every two candidates of the plan of whom one was seen at all, the favourite first."""
    if state.plan is None:
        return ()
    ordered = sorted(state.plan.candidates, key=lambda c: c.role != "favourite")
    seen = {f.candidate for f in state.evidence.facts if f.metric in _COMPARED and f.kind in STANDING}
    return tuple((a.id, b.id) for a, b in combinations(ordered, 2) if {a.id, b.id} <= seen)


def comparison(state: CaseState, left: str, right: str, *, all_figures: bool = False) -> Compared:
    """Hold every figure that one of two candidates has at a load point of the plan against the other's."""
    mine = [e for e in state.evidence if e.candidate in (left, right)]
    at: dict[tuple[str, str, str | None], list[Evidence]] = defaultdict(list)
    for e in mine:
        at[e.metric, e.statistic, e.load_point].append(e)
    beside = [e for e in mine if e.metric in ("kv_capacity_tokens", "pass_rate")]
    points = [p.name for p in state.plan.load_points] if state.plan else []
    seen = {key for key, pieces in at.items() if key[0] in _COMPARED and any(e.kind in STANDING for e in pieces)}
    figures = list(HEADLINE)
    if all_figures:
        figures += sorted({(m, s) for m, s, _ in seen} - set(HEADLINE), key=_place)
    rows = tuple(
        compare(left, right, *figure, point, [*at[*figure, point], *beside], state.context)
        for point in points
        for figure in figures
        if (*figure, point) in seen
    )
    ours, theirs = ([e for e in mine if e.candidate == c and e.contract and e.kind in STANDING] for c in (left, right))
    return Compared(left, right, agreement(ours, theirs, state.context) if ours and theirs else None, rows)


def _place(figure: tuple[str, str]) -> tuple[int, int]:
    metric = METRICS[figure[0]]
    return list(METRICS).index(metric.id), metric.statistics.index(figure[1])
