"""Two candidates side by side: whether their figures compare at all, and how far the starts of each lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.choosing import OTHER_LOAD, Chosen, choose
from planner.conditions import Condition, Context, Evidence, State
from planner.contract import Contract, Parity, parity
from planner.deciding import AS_STATED, per_start
from planner.loads import LoadPoint
from planner.statistics import percentile

# What a declared difference leaves comparable: figures per token, whatever the length of the answer.
PER_TOKEN = frozenset({"output_tok_s", "user_tok_s", "tpot_ms", "itl_ms"})
QUALITY = frozenset({"pass_rate", "quality_loss"})  # what a declared difference of precision is to be judged by
KV_DIFFERS = 0.05  # share by which the KV capacity of two starts must differ before they count as unlike


class Refused(NamedTuple):
    """Why two sides do not compare."""

    why: str


class Pair(NamedTuple):
    """Both sides' chosen evidence and the declared differences that every sentence names."""

    left: Chosen
    right: Chosen
    differences: tuple[str, ...] = ()


def pair(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> Pair | Refused:
    """Choose the evidence of a ratio's two sides; a side without any says so in its own state.

    A side whose only figures were taken at another load than the plan's point refuses: other lengths do not compare.
    """
    names = (condition.candidate, condition.over)
    sought = condition.model_copy(update={"metric": "pass_rate"}) if condition.of.paired else condition
    left, right = (choose(sought.model_copy(update={"candidate": name}), point, pieces, context) for name in names)
    for side, name in ((left, condition.candidate), (right, condition.over)):
        if side.state is State.UNMEASURED and any(p.reason.endswith(OTHER_LOAD) for p in side.passed_over):
            return Refused(f"the load differs: {name} was measured at other lengths or another rate than {point!r}")
    if left.state or right.state:
        return Pair(left, right)
    agreed = agreement(left.pieces, right.pieces, context)
    if agreed is None:
        silent = [n for n, c in zip(names, (left, right), strict=True) if n and not contract_of(c.pieces, context)]
        return Refused(f"a side states no contract ({' and '.join(silent)})")
    refused = _refusal(condition.metric, left.pieces, right.pieces, agreed)
    if refused:
        return Refused(refused)
    return Pair(left, right, tuple(str(m) for m in agreed.differences))


def agreement(left: Sequence[Evidence], right: Sequence[Evidence], context: Context) -> Parity | None:
    """Parity of the newest contracts of two sides; None where one states none."""
    a, b = contract_of(left, context), contract_of(right, context)
    return parity(a, b) if a and b else None


def contract_of(pieces: Sequence[Evidence], context: Context) -> Contract | None:
    """The contract of the newest piece, where it has one."""
    return context.contracts.get(max(pieces, key=lambda e: (e.at, e.id)).contract or "")


def _refusal(metric: str, left: Sequence[Evidence], right: Sequence[Evidence], agreed: Parity) -> str:
    """Why the two sides do not compare; empty when they do."""
    if {e.load_hash for e in left} != {e.load_hash for e in right}:
        return "the load differs"
    if agreed.state == "refused":
        return "; ".join(str(m) for m in agreed.differences)
    if agreed.differences and metric not in PER_TOKEN | QUALITY:
        fields = " and ".join(m.field for m in agreed.differences)
        return f"with {fields} declared different, only figures per token compare"
    return ""


class Spread(NamedTuple):
    """One side over its engine starts: a value per start, and the range of all.

    `stated` is the range that a foreign source states around a figure whose starts it does not list.
    """

    per_start: Mapping[str, float]
    low: float
    high: float
    stated: bool

    @property
    def values(self) -> tuple[float, ...]:
        """A value per start, in the order of their names."""
        return tuple(self.per_start.values())

    @property
    def typical(self) -> float:
        """The median over starts."""
        return percentile(self.values, 50)


def spread(pieces: Sequence[Evidence]) -> Spread:
    """How far the starts of one side lie apart; raises ValueError for an empty sequence."""
    starts = per_start(pieces)
    ranges = [p.interval for p in pieces if p.interval and p.kind in AS_STATED]
    low = min([*starts.values(), *(r[0] for r in ranges)])
    high = max([*starts.values(), *(r[1] for r in ranges)])
    return Spread(starts, low, high, bool(ranges))


class KvCapacity(NamedTuple):
    """What the starts of one candidate can hold, and what a load point asks for, in tokens."""

    candidate: str
    lowest: float
    highest: float
    needed: float | None

    @property
    def binds(self) -> bool:
        """Not every start holds all requests of the load at once."""
        return self.needed is not None and self.needed > self.lowest

    @property
    def unlike(self) -> bool:
        """The starts are no repeats of one another at this load: some hold much less of it than others."""
        return self.binds and self.highest > self.lowest * (1 + KV_DIFFERS)

    def in_words(self) -> str:
        """Whose capacity, as a range where its starts differ, and what the load asks for."""
        many = self.highest > self.lowest
        held = f"{self.lowest:,.0f} to {self.highest:,.0f}" if many else f"{self.lowest:,.0f}"
        asked = f", this load asks for {self.needed:,.0f}" if self.needed else ""
        return f"KV capacity of {self.candidate}{' differs between its starts' if many else ''}: {held} tokens{asked}"


def kv_capacity(
    candidate: str, point: LoadPoint | None, pieces: Sequence[Evidence], beside: Sequence[Evidence]
) -> KvCapacity | None:
    """KV capacity over the starts of a candidate, from what its engine stated; None where it never did.

    Only starts like those of the figures `beside` count: a rehearsal, or another memory share, holds another amount.
    """
    alike = {(e.kind, e.contract) for e in beside}
    seen = [
        e.value
        for e in pieces
        if (e.metric, e.candidate) == ("kv_capacity_tokens", candidate) and e.valid and (e.kind, e.contract) in alike
    ]
    if not seen:
        return None
    needed = point.in_flight * (point.input_tokens + point.output_tokens) if point and point.in_flight else None
    return KvCapacity(candidate, min(seen), max(seen), needed)
