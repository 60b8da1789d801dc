"""From two sides' answers to the same quality set to a decision on what one of them loses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.conditions import Condition, Evidence
from planner.deciding import Decision, side_of_range
from planner.paired import Paired, first_answers, pair


def decide_paired(condition: Condition, left: Sequence[Evidence], right: Sequence[Evidence]) -> Decision:
    """Decide a loss of quality by the interval of the paired difference; pieces are pass rates with their items."""
    found = paired(left, right)
    if found is None:
        rates = [math.fsum(p.value for p in side) / len(side) for side in (left, right)]
        return Decision(None, rates[1] - rates[0], "no item is stated on both sides, so they cannot be paired")
    side = side_of_range(condition, *found.interval)
    return Decision(side, found.loss, found.sentence, found.items, float(found.items), found.interval)


def paired(left: Sequence[Evidence], right: Sequence[Evidence]) -> Paired | None:
    """Pair two sides' pass rates by item, each item by its first answer; None when they share no item."""
    a, b = (first_answers(i for p in sorted(side, key=_in_order) for i in p.items) for side in (left, right))
    return pair(a, b) if a.keys() & b.keys() else None


def _in_order(p: Evidence) -> tuple[int, int, str]:
    return p.start or 0, p.repeat or 0, p.id
