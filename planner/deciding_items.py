"""From two sides' answers to the same quality set to a decision on what one of them loses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.conditions import Condition, Evidence, More
from planner.deciding import Decision, side_of_range
from planner.paired import Paired, first_answers, loss_interval, pair

MOST_ITEMS = 100_000  # nobody writes a larger set


def decide_paired(condition: Condition, left: Sequence[Evidence], right: Sequence[Evidence]) -> Decision:
    """Decide a loss of quality by the interval of the paired difference; pieces are pass rates with their items."""
    found = paired(left, right)
    if found is None:
        rates = [math.fsum(p.value for p in side) / len(side) for side in (left, right)]
        return Decision(None, rates[1] - rates[0], "no item is stated on both sides, so they cannot be paired")
    side = side_of_range(condition, *found.interval)
    more = _more_items(condition, found) if side is None else None
    words = f"; at least {more.n} more items without a further difference would decide it" if more else ""
    n = found.items
    return Decision(side, found.loss, found.sentence + words, n, float(n), found.interval, more)


def _more_items(condition: Condition, found: Paired) -> More | None:
    """The items that a larger set would need for the loss to stay within the limit; None where none is known to."""
    if condition.comparison != "<=":
        return None

    def holds(items: int) -> bool:
        return loss_interval(found.only[1], sum(found.only), items)[1] <= condition.threshold

    low, high = found.items, found.items * 2
    while not holds(high):
        low, high = high, high * 2
        if high > MOST_ITEMS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return More(n=high - found.items, of="items")


def paired(left: Sequence[Evidence], right: Sequence[Evidence]) -> Paired | None:
    """Pair two sides' pass rates by item, each item by its first answer; None when they share no item."""
    a, b = (first_answers(i for p in sorted(side, key=_in_order) for i in p.items) for side in (left, right))
    return pair(a, b) if a.keys() & b.keys() else None


def _in_order(p: Evidence) -> tuple[int, int, str]:
    return p.start or 0, p.repeat or 0, p.id
