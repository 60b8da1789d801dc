"""The score of a case's engines, on its favourite model plan and first machine."""

from __future__ import annotations

from collections.abc import Mapping

from planner.requirements import Requirements
from planner.scoring import Score, score
from services.workspace import Workspace


def case_score(ws: Workspace, r: Requirements, adjust: Mapping[str, float] | None = None) -> Score:
    """Score every engine of the catalogue; `adjust` replaces the points of criteria."""
    gpu = ws.catalog.gpu(r.hardware[0].gpu)
    return score(r, ws.catalog.engines, compute_capability=gpu.compute_capability, adjust=adjust)
