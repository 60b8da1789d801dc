"""Two candidates on one figure at one load point: which is higher, how sure that is, or that no difference is shown.

By the rules of deciding: percentiles by the exact binomial test at the limits that were asked for, shares by exact
intervals, everything else over engine starts, by min to max under five a side, else by a t interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from planner.conditions import Condition, Context, Evidence, Kind, State
from planner.deciding import AS_STATED, MIN_STARTS, SHARES, decide
from planner.explaining import explain
from planner.frozen import Frozen
from planner.metrics import METRICS, Direction, Level, quantity
from planner.pairing import QUALITY, KvCapacity, Pair, Refused, Spread, contract_of, kv_capacity, pair, spread
from planner.precision_claims import beside, crossing
from planner.statistics import chance_of_disjoint, difference_interval, share_interval

Outcome = Literal["higher", "lower", "no difference shown", "conflicting", "refused", "not measured"]
# When a comparison comes to which outcome, as it is published in docs/definitions.md.
OUTCOMES: dict[Outcome, str] = {
    "not measured": "a side has no figure that counts; says what would bring it, or which rule spoils the one there is",
    "refused": "the contracts or the load do not allow it; names the fields",
    "higher": "the first side lies above by the rule of its sort of figure",
    "lower": "the first side lies below by the same rule",
    "conflicting": "starts that are no repeats of one another, or two runs, lead to different outcomes; shows both",
    "no difference shown": "the rest: what there is shows none, which proves no equality",
}
_SAYS_ITSELF = (State.UNMEASURED, State.INVALID_RUN)  # states whose reason already says which they are
T_STARTS = 5  # from so many starts a side a t interval speaks, below it the ranges


class Side(Frozen):
    """One candidate's figure: typical value, range over starts, number of starts and requests; value None: none."""

    candidate: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    starts: int = 0
    n: int | None = None
    kind: Kind | None = None


class Comparison(Frozen):
    """What is known of left against right; `outcome` says where the left side lies.

    `ratio` is left over right with the range that the starts allow; `chance` is how often the ranges of so many starts
    would call two equal candidates different. `differences` are the declared ones, `explanation` a possible cause.
    `quality` is what stands beside a speed across precisions, `warning` the same where it warns.
    """

    metric: str
    statistic: str
    load_point: str
    left: Side
    right: Side
    outcome: Outcome
    because: str
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    chance: float | None = None
    differences: tuple[str, ...] = ()
    explanation: str = ""
    quality: str = ""
    warning: str = ""

    @property
    def higher(self) -> str:
        """The candidate that is higher, where one is."""
        return {"higher": self.left.candidate, "lower": self.right.candidate}.get(self.outcome, "")

    @property
    def better(self) -> str:
        """The candidate that does better, where one does and the metric has a better end."""
        direction = METRICS[self.metric].direction
        if not self.higher or direction is Direction.NEITHER:
            return ""
        other = self.right if self.higher == self.left.candidate else self.left
        return self.higher if direction is Direction.HIGHER else other.candidate

    @property
    def sentence(self) -> str:
        """The outcome with both values, the reason, and every declared difference by name."""
        m = METRICS[self.metric]
        what = f"{m.name}{'' if self.statistic == 'value' else f' {self.statistic}'} at {self.load_point}"
        values = " against ".join(
            f"{s.candidate} {quantity(s.value, m.unit)}" for s in (self.left, self.right) if s.value is not None
        )
        said = f"{self.higher} is higher" if self.higher else self.outcome
        ratio = ""
        if self.ratio is not None:
            ratio = f" ({quantity(self.ratio, 'x')}"
            if self.ratio_interval:
                ratio += ", " + " to ".join(quantity(x, "x") for x in self.ratio_interval)
            ratio += ")"
        kinds = dict.fromkeys(s.kind for s in (self.left, self.right) if s.kind in AS_STATED)
        known = "".join(f"as {k.value}, " for k in kinds if k)
        named = f"; differs by declaration: {', '.join(self.differences)}" if self.differences else ""
        beside = f" {self.quality}" if self.quality else ""
        return f"{what}: {said}{f', {values}' if values else ''}{ratio}; {known}{self.because}{named}.{beside}"


class _Found(NamedTuple):
    """An outcome with its reason, and how often chance alone would bring it."""

    outcome: Outcome
    because: str
    chance: float | None = None


def compare(
    left: str, right: str, metric: str, statistic: str, point: str, evidence: Iterable[Evidence], context: Context
) -> Comparison:
    """Hold one figure of two candidates against each other at a load point; never raises for what it cannot use."""
    pieces = sorted(evidence, key=lambda e: e.id)
    sought = Condition(metric=metric, statistic=statistic, comparison=">=", threshold=0.0, candidate=left, over=right,
                       load_points=(point,))  # fmt: skip
    found = pair(sought, point, pieces, context)
    begun = Comparison(metric=metric, statistic=statistic, load_point=point, left=Side(candidate=left),
                       right=Side(candidate=right), outcome="not measured", because="")  # fmt: skip
    if isinstance(found, Refused):
        return begun.model_copy(update={"outcome": "refused", "because": f"not comparable: {found.why}"})
    sides = {"left": _side(left, found.left.pieces), "right": _side(right, found.right.pieces)}
    if found.left.state or found.right.state:
        return begun.model_copy(update={"because": _why_not(found, left, right), **sides})
    at = context.points.get(point) if context.points else None
    used = (*found.left.pieces, *found.right.pieces)
    capacities = [k for name in (left, right) if (k := kv_capacity(name, at, pieces, used))]
    result = _decide(sought, found, capacities)
    ratio, interval = _ratio(spread(found.left.pieces), spread(found.right.pieces))
    a, b = (contract_of(c.pieces, context) for c in (found.left, found.right))
    explanation = explain(a, b, at, capacities).sentence if a and b and result.outcome != "no difference shown" else ""
    crossed = crossing(a, b) if a and b and metric not in QUALITY else ()
    known = beside(left, right, crossed, pieces, context.contracts)
    told = f"{known.sentence}." if known else ""
    return begun.model_copy(update={
        "quality": told, "warning": told if known and known.warns else "",
        "outcome": result.outcome, "because": result.because, "chance": result.chance, "ratio": ratio,
        "ratio_interval": interval, "differences": found.differences, "explanation": explanation, **sides,
    })  # fmt: skip


def _why_not(found: Pair, left: str, right: str) -> str:
    """Which side has no figure, and what would bring it or why the one there is cannot be used."""
    sides = [(name, c) for name, c in ((left, found.left), (right, found.right)) if c.state]
    return "; ".join(f"{name}: {'' if c.state in _SAYS_ITSELF else f'{c.state}: '}{c.why}" for name, c in sides)


def _side(name: str, pieces: Sequence[Evidence]) -> Side:
    if not pieces:
        return Side(candidate=name)
    s = spread(pieces)
    return Side(
        candidate=name, value=s.typical, low=s.low, high=s.high, starts=len(s.values),
        n=sum(p.n for p in pieces if p.n) or None, kind=pieces[0].kind,
    )  # fmt: skip


def _ratio(left: Spread, right: Spread) -> tuple[float | None, tuple[float, float] | None]:
    """Left over right, and the range: by Welch's t on logarithms from five starts a side, else slowest over fastest."""
    if min(left.low, right.low) <= 0:
        return (left.typical / right.typical, None) if right.typical > 0 else (None, None)
    if _many(left) and _many(right):
        low, high = difference_interval(*([math.log(v) for v in s.values] for s in (left, right)))
        return left.typical / right.typical, (math.exp(low), math.exp(high))
    return left.typical / right.typical, (left.low / right.high, left.high / right.low)


def _many(side: Spread) -> bool:
    return len(side.values) >= T_STARTS and not side.stated


def _decide(sought: Condition, found: Pair, capacities: Sequence[KvCapacity]) -> _Found:
    left, right = found.left.pieces, found.right.pieces
    if sought.metric in SHARES and all(p.n for p in (*left, *right)):
        return _of_shares(left, right)
    if sought.of.level is Level.REQUEST and sought.statistic.startswith("p"):
        tested = _at_a_limit(sought, left, right)
        if tested:
            return tested
    stated = all(p.kind in AS_STATED for p in (*left, *right))
    over = _over_starts(sought, spread(left), spread(right), stated=stated)
    if over.outcome != "no difference shown":
        return over
    return _conflict(sought, found, capacities) or over


def _at_a_limit(sought: Condition, left: Sequence[Evidence], right: Sequence[Evidence]) -> _Found | None:
    """A limit that was asked about and that one side keeps and the other breaks, both by the exact test at 95 %."""
    limits, others = ({(x.threshold, x.comparison) for p in side for x in p.exceedances} for side in (left, right))
    for threshold, comparison in sorted(limits & others):
        asked = sought.model_copy(update={"threshold": threshold, "comparison": comparison, "over": None})
        a, b = (decide(asked, side) for side in (left, right))
        if {a.side, b.side} == {"holds", "fails"}:
            left_is_low = (a.side == "holds") == (comparison == "<=")
            because = (
                f"{quantity(threshold, sought.of.unit)} lies between them, by the exact binomial test at 95 % on each "
                f"side ({a.because}; {b.because})"
            )
            return _Found("lower" if left_is_low else "higher", because)
    return None


def _of_shares(left: Sequence[Evidence], right: Sequence[Evidence]) -> _Found:
    """Shares of requests by their exact intervals, over as many requests as they are worth."""
    a, b = _share_interval(left), _share_interval(right)
    shown = " against ".join(f"{quantity(low, 'share')} to {quantity(high, 'share')}" for low, high in (a, b))
    outcome = _apart(*a, *b)
    words = "overlap" if outcome == "no difference shown" else "do not overlap"
    return _Found(outcome, f"the exact 95 % intervals {words}, {shown}")


def _share_interval(pieces: Sequence[Evidence]) -> tuple[float, float]:
    """Clopper-Pearson over the pooled requests, shrunk to the effective sample size and rounded outwards."""
    n = sum(p.n or 0 for p in pieces)
    worth = math.floor(math.fsum(min(p.n or 0, p.effective_n or p.n or 0) for p in pieces))
    hits = math.fsum(p.value * (p.n or 0) for p in pieces) / n * worth
    return share_interval(math.floor(hits + 1e-9), worth)[0], share_interval(math.ceil(hits - 1e-9), worth)[1]


def _apart(left_low: float, left_high: float, right_low: float, right_high: float) -> Outcome:
    """Where the left range lies when the two do not touch."""
    return "higher" if left_low > right_high else "lower" if left_high < right_low else "no difference shown"


def _over_starts(sought: Condition, left: Spread, right: Spread, *, stated: bool) -> _Found:
    """Over starts; figures of a foreign source stand with the range that it states around them."""
    starts = f"{len(left.values)} and {len(right.values)} starts"
    if _many(left) and _many(right):
        low, high = difference_interval(left.values, right.values)
        shown = f"{quantity(low, sought.of.unit)} to {quantity(high, sought.of.unit)}"
        return _Found(_apart(low, high, 0.0, 0.0), f"95 % interval of the difference {shown} over {starts}")
    outcome = _apart(left.low, left.high, right.low, right.high)
    words = "overlap" if outcome == "no difference shown" else "do not overlap"
    if stated:
        known = all(s.stated or len(s.values) > 1 for s in (left, right))
        if not known:
            return _Found("no difference shown", "how far the starts lie apart is not stated")
        return _Found(outcome, f"the ranges over starts that the source states {words}")
    if min(len(left.values), len(right.values)) < MIN_STARTS:
        return _Found("no difference shown", f"{starts}; from {MIN_STARTS} a side their ranges decide")
    chance = chance_of_disjoint(len(left.values), len(right.values))
    if outcome == "no difference shown":
        return _Found(outcome, f"min to max overlap over {starts}", chance)
    because = f"min to max do not overlap over {starts}, as they would {chance:.0%} of the time without a difference"
    return _Found(outcome, because, chance)


def _conflict(sought: Condition, found: Pair, capacities: Sequence[KvCapacity]) -> _Found | None:
    """Starts that are no repeats of one another and lead, each alone, to different outcomes; or runs that disagree."""
    left, right = spread(found.left.pieces), spread(found.right.pieces)
    unlike = {k.candidate: k for k in capacities if k.unlike}
    for mine, other, name in ((left, right, sought.candidate or ""), (right, left, sought.over or "")):
        alone = {_apart(v, v, other.low, other.high) for v in mine.values}
        if name in unlike and len(alone) > 1:
            values = ", ".join(quantity(v, sought.of.unit) for v in mine.values)
            return _Found("conflicting", f"the starts of {name} disagree ({values}); {unlike[name].in_words()}")
    by_run = _by_run(sought, found)
    if set(by_run.values()) >= {"higher", "lower"}:
        return _Found("conflicting", "; ".join(f"run {run}: {outcome}" for run, outcome in by_run.items()))
    return None


def _by_run(sought: Condition, found: Pair) -> dict[str, Outcome]:
    """What each run that measured both sides says alone."""
    sides = [
        {run: [e for e in c.pieces if e.run == run] for run in sorted({e.run for e in c.pieces if e.run})}
        for c in (found.left, found.right)
    ]
    return {
        run: _over_starts(sought, spread(left), spread(sides[1][run]), stated=False).outcome
        for run, left in sides[0].items()
        if run in sides[1]
    }
