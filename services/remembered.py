"""Sizings and scores that were worked out before: a page asks for the same ones at every click.

Both are pure: what is asked for decides the answer, and no answer can be changed.
"""

from __future__ import annotations

from functools import lru_cache

from planner import capacity, scoring
from planner.capacity import Sizing, SizingSettings
from planner.catalog import Catalog
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.scoring import Score
from planner.throughput import MeasuredRatio

KEPT = 64


class _Same:
    """A catalogue told by its identity: to compare all of it would take longer than a sizing."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.catalog is self.catalog

    def __hash__(self) -> int:
        return id(self.catalog)


def size(
    r: Requirements, plan: ModelPlan, hardware: Hardware, catalog: Catalog, settings: SizingSettings | None = None,
    measured: tuple[MeasuredRatio, ...] = (),
) -> Sizing:  # fmt: skip
    """As planner.capacity's."""
    return _size(r, plan, hardware, _Same(catalog), settings or SizingSettings(), measured)


def score(r: Requirements, catalog: Catalog) -> Score:
    """Every engine of the catalogue on the favourite model plan and the first machine, as planner.scoring's."""
    return _score(r, _Same(catalog))


@lru_cache(KEPT)
def _size(
    r: Requirements, plan: ModelPlan, hardware: Hardware, of: _Same, settings: SizingSettings,
    measured: tuple[MeasuredRatio, ...],
) -> Sizing:  # fmt: skip
    return capacity.size(r, plan, hardware, of.catalog, settings, measured)


@lru_cache(KEPT)
def _score(r: Requirements, of: _Same) -> Score:
    gpu = of.catalog.gpu(r.hardware[0].gpu)
    return scoring.score(r, of.catalog.engines, compute_capability=gpu.compute_capability)
