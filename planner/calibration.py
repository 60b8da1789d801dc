"""What the team measured over the coverage bound, per engine, machine, family, weights, regime; it replaces defaults.

A ratio is the speed per user that was measured over the coverage bound at the same load: one number per regime, never
one constant. Public runs of one GB10 show why: dense .77-.87 with prompts up to 1k, .42-.77 with prompts of 8k
(vLLM 0.26); .81 at batch 1 down to .58 at 32 (llama.cpp dgx-spark.md@4c7e9893).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from pydantic import AwareDatetime, Field

from planner.conditions import Kind, PassedOver
from planner.frozen import Frozen
from planner.throughput import MeasuredRatio

# Iglewicz & Hoaglin 1993, "How to Detect and Handle Outliers": |0.6745 (x - median) / MAD| > 3.5.
MODIFIED_Z = 0.6745
OUTLIER_BEYOND = 3.5
# Fewer points have no majority that could outvote one of them.
ENOUGH_FOR_OUTLIERS = 4
# Starts of one engine differ by this much of their median anyway, so a smaller MAD would call noise an outlier.
SMALLEST_MAD = 0.01
# Kinds that can be shown as ratios; only what this team measured replaces a default.
SHOWN = (Kind.MEASURED, Kind.IMPORTED)


class Band(NamedTuple):
    """A range of one quantity, both ends included; `up_to` None has no end."""

    name: str
    from_: float
    up_to: float | None = None

    def holds(self, x: float) -> bool:
        """Whether the value lies in the band."""
        return self.from_ <= x and (self.up_to is None or x <= self.up_to)


# Within a band the ratio is taken as one; between batch bands the speed model interpolates.
BATCHES = (Band("1", 1, 1), Band("2 to 7", 2, 7), Band("8 to 31", 8, 31), Band("32 and more", 32))
CONTEXTS = (Band("up to 1k", 0, 1024), Band("1k to 8k", 1025, 8192), Band("over 8k", 8193))
# Prompt tokens per answer token: from 4 on, prefill of others takes a visible part of every decode step.
MIXES = (Band("decode-bound", 0, math.nextafter(4, 0)), Band("prefill-heavy", 4))


def _band(bands: Sequence[Band], x: float) -> str:
    return next(b.name for b in bands if b.holds(x))


class Setting(Frozen):
    """What a ratio holds for besides the batch. `devices` share one model; `gpu` is an id of the catalogue.

    Kernels of one engine reach another share of the bound in another format: what fp32 weights reached says nothing of
    four bits, so `quantization` is part of it.
    """

    engine: str
    gpu: str
    devices: int = Field(default=1, ge=1)
    family: str
    quantization: str
    context: str
    mix: str

    @classmethod
    def of(
        cls, engine: str, gpu: str, devices: int, family: str, quantization: str, *, context_tokens: int,
        input_tokens: int, output_tokens: int,
    ) -> Setting:  # fmt: skip
        """The setting of a load: `context_tokens` is what a decode step reads of one request."""
        return cls(
            engine=engine, gpu=gpu, devices=devices, family=family, quantization=quantization,
            context=_band(CONTEXTS, context_tokens), mix=_band(MIXES, input_tokens / output_tokens),
        )  # fmt: skip


class MeasuredPoint(Frozen):
    """One load point of one run, with what the formulas say of it. Speeds in tok/s per user.

    `id` is the evidence that the speed was read from, `batch` the requests that ran at once, `planning_tok_s` the
    planning value with the default constants. `spoiled_by` names the validity rules that fired.
    """

    id: str
    run: str
    load_point: str
    at: AwareDatetime
    kind: Kind
    model: str
    setting: Setting
    batch: int = Field(ge=1)
    input_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)
    measured_tok_s: float = Field(gt=0)
    bound_tok_s: float = Field(gt=0)
    coverage_tok_s: float = Field(gt=0)
    planning_tok_s: float = Field(gt=0)
    spoiled_by: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Measured over the coverage bound; above 1 where real routing touches fewer experts than uniform routing."""
        return self.measured_tok_s / self.coverage_tok_s

    @property
    def default_ratio(self) -> float:
        """What the default constants expect of the same quotient."""
        return self.planning_tok_s / self.coverage_tok_s


class Outlier(Frozen):
    """A point that was set apart by the rule, with the sentence that says why."""

    point: MeasuredPoint
    reason: str


class Group(Frozen):
    """All points of one setting and batch band. Ratio and spread are of `points`; outliers are beside them.

    `batch` is the geometric mean of the points' batches, `mad` the median absolute deviation from the median.
    """

    setting: Setting
    batches: str
    kind: Kind
    batch: int
    ratio: float
    spread: tuple[float, float]
    mad: float
    default_ratio: float
    points: tuple[MeasuredPoint, ...]
    outliers: tuple[Outlier, ...] = ()

    @property
    def n(self) -> int:
        """Points that the ratio rests on."""
        return len(self.points)

    @property
    def runs(self) -> int:
        """Engine starts that the points come from."""
        return len({p.run for p in self.points})

    @property
    def few(self) -> bool:
        """Too few points for any of them to be called an outlier."""
        return self.n + len(self.outliers) < ENOUGH_FOR_OUTLIERS


class Calibration(Frozen):
    """Every ratio that is known, what was set apart by whom and why, and what could not be used."""

    groups: tuple[Group, ...] = ()
    excluded: tuple[PassedOver, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()

    def for_(self, setting: Setting) -> tuple[MeasuredRatio, ...]:
        """The team's own ratios for a setting by rising batch; empty where nothing was measured there."""
        found = [g for g in self.groups if g.setting == setting and g.kind is Kind.MEASURED]
        ratios = [MeasuredRatio(batch=g.batch, ratio=g.ratio, n=g.n, spread=g.spread[1] - g.spread[0]) for g in found]
        return tuple(sorted(ratios, key=lambda r: r.batch))


def calibrate(
    points: Iterable[MeasuredPoint], excluded: Mapping[str, str] = {}, passed_over: Iterable[PassedOver] = ()
) -> Calibration:
    """Ratios by setting, batch band and kind; the order of the points does not matter.

    `excluded` maps ids of points to who set them apart and why; `passed_over` is what the caller could not use. Points
    of invalid runs and of kinds that nobody measured never calibrate and are passed over with the reason.
    """
    unusable = list(passed_over)
    aside, grouped = [], dict[tuple[Setting, str, Kind], list[MeasuredPoint]]()
    for p in sorted(points, key=lambda p: p.id):
        if reason := _why_not(p):
            unusable.append(PassedOver(evidence=p.id, reason=reason))
        elif p.id in excluded:
            aside.append(PassedOver(evidence=p.id, reason=excluded[p.id]))
        else:
            grouped.setdefault((p.setting, _band(BATCHES, p.batch), p.kind), []).append(p)
    groups = [_group(*key, found) for key, found in grouped.items()]
    return Calibration(
        groups=tuple(sorted(groups, key=lambda g: (g.kind.value, str(g.setting), g.batch))),
        excluded=tuple(aside), passed_over=tuple(unusable),
    )  # fmt: skip


def _why_not(p: MeasuredPoint) -> str:
    if p.kind not in SHOWN:
        return f"{p.kind.value}, not measured"
    return f"invalid run: {'; '.join(p.spoiled_by)}" if p.spoiled_by else ""


def _group(setting: Setting, batches: str, kind: Kind, found: Sequence[MeasuredPoint]) -> Group:
    outliers = _outliers(found)
    apart = {o.point.id for o in outliers}
    kept = tuple(p for p in found if p.id not in apart)
    ratios = [p.ratio for p in kept]
    middle = median(ratios)
    return Group(
        setting=setting, batches=batches, kind=kind, ratio=middle, spread=(min(ratios), max(ratios)),
        batch=round(math.exp(sum(math.log(p.batch) for p in kept) / len(kept))), mad=_mad(ratios, middle),
        default_ratio=median(p.default_ratio for p in kept), points=kept, outliers=outliers,
    )  # fmt: skip


def _mad(values: Sequence[float], middle: float) -> float:
    return median(abs(v - middle) for v in values)


def _outliers(found: Sequence[MeasuredPoint]) -> tuple[Outlier, ...]:
    if len(found) < ENOUGH_FOR_OUTLIERS:
        return ()
    ratios = [p.ratio for p in found]
    middle = median(ratios)
    mad = max(_mad(ratios, middle), SMALLEST_MAD * middle)
    said = []
    for p in found:
        z = MODIFIED_Z * (p.ratio - middle) / mad
        if abs(z) > OUTLIER_BEYOND:
            reason = (
                f"ratio {p.ratio:.2f} against a median of {middle:.2f}: modified z-score {z:+.1f}, "
                f"beyond {OUTLIER_BEYOND:g}"
            )
            said.append(Outlier(point=p, reason=reason))
    return tuple(said)
