"""Explanation of a measured ratio: the runs it comes from, and how far they lie apart."""

from __future__ import annotations

from planner.calibration import Group
from planner.derivation import Derivation, given
from planner.units import format_tok_s


def ratio_derivation(group: Group) -> Derivation:
    """One line of the calibration: measured / coverage bound in one setting and band of batches."""
    s, (low, high) = group.setting, group.spread
    where = (f"{s.engine}, {s.devices} x {s.gpu}, {s.family}, {s.quantization}, {s.context} tokens, {s.mix}, "
             f"{group.batches} in flight")  # fmt: skip
    key = (s.engine, str(s.devices), s.family, s.quantization, s.context, s.mix, group.batches)
    return Derivation(
        key="ratio_" + "_".join(" ".join(key).split()),
        title=f"Measured / coverage bound, {where}", value=f"{group.ratio:.2f}",
        formula="median of measured tok/s per user / tok/s by the coverage bound, at the same batch",
        inputs=(
            *(given(f"{p.load_point}, run {p.run[:8]}",
                    f"{p.ratio:.2f} = {format_tok_s(p.measured_tok_s)} / {format_tok_s(p.coverage_tok_s)}, {p.batch:,} "
                    "at once",
                    f"{p.kind.value} on {p.at:%Y-%m-%d}, {p.model}") for p in group.points),
            given("by the default constants", f"{group.default_ratio:.2f}", "planning value / coverage bound"),
        ),
        assumptions=tuple(f"left out: {o.point.load_point}, run {o.point.run[:8]}: {o.reason}" for o in group.outliers),
        band=f"{group.n} points of {group.runs} starts lie between {low:.2f} and {high:.2f}"
             + ("; too few to tell an outlier" if group.few else ""),
    )  # fmt: skip
