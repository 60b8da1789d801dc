"""What can be said about a server and how it is known: LoadPoint, Condition, Evidence, Context, Verdict.

Service levels, hypotheses, gates and flip conditions are all Conditions; planner/evaluate.py judges them,
planner/condition_line.py writes and reads them as one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field, model_validator

from planner.contract import Contract, Tolerance
from planner.frozen import Frozen
from planner.loads import LoadPoint
from planner.metrics import METRICS, Level, Metric, metric

Comparison = Literal["<=", ">=", "between", "is"]


class Condition(Frozen):
    """One testable sentence: metric, statistic, comparison, threshold in the metric's base unit, load point.

    `over` makes it a ratio candidate/over in x, or names the second side of a paired metric. No load point is right
    for outcomes of a start, demand and facts.
    """

    metric: str
    statistic: str = "value"
    comparison: Comparison
    threshold: float
    upper: float | None = None
    candidate: str | None = None
    over: str | None = None
    load_points: tuple[str, ...] = ()
    quantifier: Literal["every", "any"] = "every"
    near: float = Field(default=0.0, ge=0, le=1)
    window_days: int | None = Field(default=None, ge=1, le=3660)
    max_age_days: int | None = Field(default=None, ge=1, le=3660)
    tolerance: Tolerance = "minor"
    consequence: str = ""

    @model_validator(mode="after")
    def _makes_sense(self) -> Condition:
        found = metric(self.metric)
        if self.metric != found.id:
            raise ValueError(f"metric is stored by its id {found.id!r}, not {self.metric!r}.")
        if (self.comparison == "between") != (self.upper is not None):
            raise ValueError("'between' needs two numbers, the other comparisons one.")
        if self.upper is not None and self.upper < self.threshold:
            raise ValueError(f"'between' runs from small to large, not {self.threshold:g} to {self.upper:g}.")
        if self.over is not None and self.candidate is None:
            raise ValueError("a ratio names both candidates: 'vllm over ollama: ...'.")
        if found.paired and self.over is None:
            raise ValueError(f"{found.name} compares two candidates: 'vllm over ollama: {found.name} ...'.")
        if self.window_days is not None and found.level is not Level.DEMAND:
            raise ValueError(f"{found.name} is not observed over days; only demand metrics take 'over N days'.")
        return self

    @property
    def of(self) -> Metric:
        """The metric's row."""
        return METRICS[self.metric]

    @property
    def unit(self) -> str:
        """Unit of threshold and value: x for a ratio, else the metric's."""
        return "x" if self.over and not self.of.paired else self.of.unit

    def at(self, point: str) -> Condition:
        """The same condition at one load point."""
        return self.model_copy(update={"load_points": (point,), "quantifier": "every"})

    def holds_for(self, value: float) -> bool:
        """Compare one number with the threshold; equality holds."""
        if self.comparison == "<=":
            return value <= self.threshold
        if self.comparison == ">=":
            return value >= self.threshold
        if self.comparison == "between":
            return self.threshold <= value <= (self.upper or 0.0)
        return value == self.threshold

    def distance(self, value: float) -> float:
        """Signed room to the nearest threshold in base units: positive while it holds."""
        if self.comparison == "<=":
            return self.threshold - value
        if self.comparison == ">=":
            return value - self.threshold
        if self.comparison == "between":
            return min(value - self.threshold, (self.upper or 0.0) - value)
        return 0.0 if value == self.threshold else -abs(value - self.threshold)


class Kind(StrEnum):
    """How a figure is known."""

    BOUND = "bound"
    COVERAGE = "coverage"
    PLANNING = "planning"
    SIMULATED = "simulated"
    ENGINE_ALONE = "engine-alone"
    DOCUMENTED = "documented"
    IMPORTED = "imported"
    ENTERED = "entered"
    OBSERVED = "observed"
    MEASURED = "measured"


# Smaller decides first. A kind that is not here never decides; it gives an expectation.
STANDING: dict[Kind, int] = {Kind.MEASURED: 0, Kind.OBSERVED: 0, Kind.IMPORTED: 1, Kind.ENTERED: 2}


def weakest(kinds: Iterable[Kind | None]) -> Kind | None:
    """How something is known that rests on several figures: by the lowest standing among them."""
    return max((k for k in kinds if k), key=lambda k: (STANDING.get(k, 0), k.value), default=None)


class Exceedance(Frozen):
    """How many of n samples lie beyond a threshold: above it for `<=`, below it for `>=`; failures are beyond."""

    threshold: float
    comparison: Literal["<=", ">="]
    beyond: int = Field(ge=0)


class Evidence(Frozen):
    """One figure about one candidate: what, where, how it is known, and whether it can be trusted.

    value is in the metric's base unit. `source` is one engine start of one run, one import or one entry; repeats
    inside it carry `repeat`. `contract` is the hash of the material contract, looked up in the Context. `items` are
    those of a quality set with whether each passed: what two candidates are paired by.
    """

    id: str
    metric: str
    definition_version: int = 1
    statistic: str = "value"
    value: float
    unit: str
    kind: Kind
    source: str
    at: AwareDatetime
    candidate: str | None = None
    run: str | None = None
    start: int | None = None
    repeat: int | None = None
    load_point: str | None = None
    load_hash: str | None = None
    n: int | None = None
    effective_n: float | None = None
    exceedances: tuple[Exceedance, ...] = ()
    interval: tuple[float, float] | None = None
    spoiled_by: tuple[str, ...] = ()
    contract: str | None = None
    service_levels: str | None = None
    window_days: float | None = None
    coverage: float | None = None
    by: str | None = None
    note: str = ""
    # Left out where there are none, so that a figure of another metric keeps its bytes.
    items: tuple[tuple[str, bool], ...] = Field(default=(), exclude_if=lambda items: not items)

    @property
    def valid(self) -> bool:
        """No validity rule spoils it."""
        return not self.spoiled_by

    def beyond(self, threshold: float, comparison: str) -> int | None:
        """Samples beyond a threshold, or None when that was not counted."""
        for e in self.exceedances:
            if e.comparison == comparison and abs(e.threshold - threshold) <= 1e-9 * max(1.0, abs(threshold)):
                return e.beyond
        return None


class Context(Frozen):
    """What an evaluation needs besides evidence: now, the plan's load points, contracts by hash, what was decided.

    `points` None means that no plan limits what can be measured. `decided` is the contract per candidate that the
    decision rests on, or that runs in production; `service_levels` the hash of the levels that goodput is asked under.
    """

    now: AwareDatetime
    points: Mapping[str, LoadPoint] | None = None
    contracts: Mapping[str, Contract] = {}
    decided: Mapping[str, Contract] = {}
    service_levels: str | None = None
    observes_demand: bool = True


class State(StrEnum):
    """The states of a verdict, in the order in which they are decided."""

    UNMEASURABLE = "unmeasurable"
    UNMEASURED = "unmeasured"
    INVALID_RUN = "invalid run"
    EXPIRED = "expired"
    CONFLICTING = "conflicting"
    UNDECIDED = "undecided"
    NEAR = "near"
    HOLDS = "holds"
    FAILS = "fails"


class PassedOver(Frozen):
    """A piece of evidence that was looked at and not used, and why."""

    evidence: str
    reason: str


class More(Frozen):
    """How much more would decide what is undecided: the least that could."""

    n: int
    of: Literal["requests", "items", "starts", "days"]


class Verdict(Frozen):
    """What is known about a condition now; `side` says which way a near, holds or fails verdict points.

    `warning` is what a reader must know beside it (planner/precision_claims.py); the sentence says it too.
    """

    state: State
    sentence: str
    side: Literal["holds", "fails"] | None = None
    value: float | None = None
    threshold: float | None = None
    unit: str = ""
    distance: float | None = None
    relative_distance: float | None = None
    n: int | None = None
    effective_n: float | None = None
    interval: tuple[float, float] | None = None
    kind: Kind | None = None
    used: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    expectation: str = ""
    differences: tuple[str, ...] = ()
    warning: str = ""
    more: More | None = None
    parts: tuple[Verdict, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether the condition is known to hold or to fail."""
        return self.side is not None
