"""Frames for the charts, from evidence: what was predicted, imported, entered and measured, on one scale."""

from __future__ import annotations

import pandas as pd

from planner.conditions import Evidence, Kind
from services.verdicts import CaseState

SPEEDS = {"user_tok_s": "p5", "output_tok_s": "value"}
COLUMNS = ["metric", "statistic", "candidate", "kind", "series", "point", "batch", "value", "low", "high", "n", "valid"]


def figures(state: CaseState, wanted: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """One row per metric, statistic, candidate, kind and closed load point: median over starts, with min and max.

    `wanted` names the statistics per metric. Invalid figures are kept apart by `valid`.
    """
    batch = {p.name: p.in_flight for p in state.plan.load_points if p.in_flight} if state.plan else {}
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for e in state.evidence:
        if e.statistic in wanted.get(e.metric, ()) and e.load_point in batch and e.candidate:
            key = (e.metric, e.statistic, e.candidate, e.kind.value, e.load_point, str(e.valid))
            groups.setdefault(key, []).append(e)
    rows = []
    for (metric, statistic, candidate, kind, point, valid), pieces in groups.items():
        values = sorted(p.value for p in pieces)
        seen = kind in (Kind.MEASURED, Kind.SIMULATED, Kind.ENTERED, Kind.IMPORTED)
        rows.append(
            {
                "metric": metric, "statistic": statistic, "candidate": candidate, "kind": kind,
                "series": f"{candidate} {kind}" if seen else kind, "point": point, "batch": batch[point],
                "value": values[len(values) // 2], "low": values[0], "high": values[-1],
                "n": sum(p.n or 0 for p in pieces) or None, "valid": valid == "True",
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(["series", "batch"])


def speed_frame(state: CaseState) -> pd.DataFrame:
    """Speed per user (p5) and total output against requests in flight, valid figures only."""
    frame = figures(state, {m: (s,) for m, s in SPEEDS.items()})
    return frame[frame.valid]
