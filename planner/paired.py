"""Two candidates on the same items of a quality set: what one loses against the other, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from planner.metrics import quantity
from planner.statistics import CONFIDENCE, mcnemar_exact, share_interval

Outcome = Literal["loss shown", "no loss shown", "gain shown"]


class Paired(NamedTuple):
    """Two sides on the items that both answered, as shares of these items.

    `passed` and `only` are counts of the left and the right side: passed at all, passed where the other did not.
    `loss` is what the left side loses against the right; `interval` bounds it, each end one-sided at 95 %.
    """

    items: int
    passed: tuple[int, int]
    only: tuple[int, int]
    loss: float
    interval: tuple[float, float]
    p_value: float

    @property
    def outcome(self) -> Outcome:
        """What the pairs show; the ends of the interval leave 0 exactly where McNemar's exact p is below 5 %."""
        low, high = self.interval
        return "loss shown" if low > 0 else "gain shown" if high < 0 else "no loss shown"

    @property
    def sentence(self) -> str:
        """The outcome with its size and its doubt, the number of items, and the pairs that differ."""
        low, high = self.interval
        sizes = {
            "loss shown": f"{_share(self.loss)}, at least {_share(low)}",
            "gain shown": f"{_share(-self.loss)}, at least {_share(-high)}",
            "no loss shown": f"it could be up to {_share(high)}",
        }
        left, right = self.only
        return (
            f"{self.outcome} ({sizes[self.outcome]}): of {self.items} items {self.passed[0]} passed against "
            f"{self.passed[1]}, {left} only here and {right} only there, p = {self.p_value:.2g}"
        )


def pair(left: Mapping[str, bool], right: Mapping[str, bool]) -> Paired:
    """Pair two sides by the ids of their items; what only one side answered is left out.

    The loss is (share of items that differ) x (2 x share of those that fell to the right - 1). Both shares get their
    Clopper-Pearson bounds at 97.5 %, so that each end of the product holds at 95 % (Bonferroni); given how many items
    differ, the second is McNemar's exact test (Clopper and Pearson 1934, Biometrika 26; McNemar 1947, Psychometrika
    12).
    """
    both = sorted(left.keys() & right.keys())
    only_left = sum(left[i] and not right[i] for i in both)
    only_right = sum(right[i] and not left[i] for i in both)
    items, differ = len(both), only_left + only_right
    return Paired(
        items=items,
        passed=(sum(left[i] for i in both), sum(right[i] for i in both)),
        only=(only_left, only_right),
        loss=(only_right - only_left) / items if items else 0.0,
        interval=loss_interval(only_right, differ, items),
        p_value=mcnemar_exact(only_left, only_right),
    )


def _share(value: float) -> str:
    return quantity(value, "share")


def loss_interval(to_the_right: int, differ: int, items: int) -> tuple[float, float]:
    """Bounds of the loss, each one-sided at 95 %: of `items`, `differ` differ, and so many fell `to_the_right`."""
    few, many = share_interval(differ, items, CONFIDENCE)
    low, high = (2 * share - 1 for share in share_interval(to_the_right, differ, CONFIDENCE))
    return (few if low > 0 else many) * low, (many if high > 0 else few) * high


def first_answers(answers: Iterable[tuple[str, bool]]) -> dict[str, bool]:
    """Item to whether its first answer passed: one answer an item, as a user gets one, however often a set was run."""
    found: dict[str, bool] = {}
    for item, passed in answers:
        found.setdefault(item, passed)
    return found
