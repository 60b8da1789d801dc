"""Theory against measurement: measured speed over the bound and over the planning value, per regime."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import median
from typing import NamedTuple

from planner.calibration import Calibration, Group, MeasuredPoint, Setting
from planner.conditions import Kind, PassedOver
from planner.frozen import Frozen


class Ratio(NamedTuple):
    """The median of a quotient over points, with its range."""

    value: float
    low: float
    high: float


class Regime(Frozen):
    """One setting and batch band in which a case was measured; speeds in tok/s per user.

    `points` are those of the case that count. The ratios divide what was measured by the bound of the bandwidth, by
    that with the experts touched counted, and by the planning value with the default constants.
    """

    setting: Setting
    batches: str
    kind: Kind
    batch: int
    points: tuple[MeasuredPoint, ...]
    measured_tok_s: float
    over_bound: Ratio
    over_coverage: Ratio
    over_planning: Ratio

    @property
    def n(self) -> int:
        """Points that the ratios rest on."""
        return len(self.points)

    @property
    def starts(self) -> int:
        """Engine starts that the points come from."""
        return len({p.run for p in self.points})

    @property
    def calibrates(self) -> bool:
        """Whether these ratios replace the default constants of a sizing; imported ones are only shown."""
        return self.kind is Kind.MEASURED


class Theory(Frozen):
    """The regimes of a case by rising batch, and what of its runs calibrates nothing, with the reason."""

    regimes: tuple[Regime, ...] = ()
    left_out: tuple[PassedOver, ...] = ()


def theory(known: Calibration, sources: Collection[str]) -> Theory:
    """What a calibration holds of these bundles; `sources` are how their evidence begins (Evidence.source)."""
    found = [
        _regime(group, points)
        for group in known.groups
        if (points := [p for p in group.points if _source(p.id) in sources])
    ]
    outliers = [PassedOver(evidence=o.point.id, reason=o.reason) for group in known.groups for o in group.outliers]
    others = [x for x in (*outliers, *known.excluded, *known.passed_over) if _source(x.evidence) in sources]
    return Theory(
        regimes=tuple(sorted(found, key=lambda r: (r.kind.value, str(r.setting), r.batch))),
        left_out=tuple(others),
    )


def _source(evidence: str) -> str:
    return evidence.partition("/")[0]


def _regime(group: Group, points: Sequence[MeasuredPoint]) -> Regime:
    return Regime(
        setting=group.setting, batches=group.batches, kind=group.kind, points=tuple(points),
        batch=round(math.exp(math.fsum(math.log(p.batch) for p in points) / len(points))),
        measured_tok_s=median(p.measured_tok_s for p in points),
        over_bound=_ratio([p.measured_tok_s / p.bound_tok_s for p in points]),
        over_coverage=_ratio([p.ratio for p in points]),
        over_planning=_ratio([p.measured_tok_s / p.planning_tok_s for p in points]),
    )  # fmt: skip


def _ratio(values: Sequence[float]) -> Ratio:
    return Ratio(median(values), min(values), max(values))
