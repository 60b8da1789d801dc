"""What would change the winner of a weighted sum: the weight of one criterion, or one step of one rating.

Works on plain numbers: ratings[engine][criterion] from 0 to 3, weights[criterion] that sum to 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.frozen import Frozen

Ratings = Mapping[str, Mapping[str, int]]
TOP_RATING = 3
SAME = 1e-12


class Crossing(Frozen):
    """The weight at which another engine draws level, and which one."""

    at: float
    to: str


class FlipWeight(Frozen):
    """How far one weight can move, the others keeping their proportions, before the winner changes on either side."""

    criterion: str
    weight: float
    below: Crossing | None = None
    above: Crossing | None = None

    @property
    def nearest(self) -> Crossing | None:
        """The crossing that needs the smaller move, or None when no weight from 0 to 1 changes the winner."""
        found = [c for c in (self.below, self.above) if c is not None]
        return min(found, key=lambda c: abs(c.at - self.weight), default=None)


class RatingFlip(Frozen):
    """One step of one rating that makes another engine win."""

    engine: str
    criterion: str
    rating: int
    becomes: int
    winner: str


def total(ratings: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """Weighted sum of ratings on fixed anchors, from 0 to 1."""
    return sum(w * ratings[c] / TOP_RATING for c, w in weights.items())


def winner(ratings: Ratings, weights: Mapping[str, float]) -> str | None:
    """The engine with the highest total; between equal ones the first by name."""
    return max(sorted(ratings), key=lambda e: round(total(ratings[e], weights), 12), default=None)


def near_tie_margin(weights: Mapping[str, float]) -> float:
    """A difference below one rating step on one criterion of average weight is called a tie.

    It depends on the weights alone, so that a third candidate cannot make or break a tie.
    """
    used = sum(w > 0 for w in weights.values())
    return 1 / used / TOP_RATING


def reweighted(weights: Mapping[str, float], criterion: str, value: float) -> dict[str, float]:
    """The weights with one set to `value` and the others scaled so that all sum to 1."""
    rest = 1 - weights[criterion]
    return {c: value if c == criterion else w * (1 - value) / rest for c, w in weights.items()}


def tie_weight(
    first: Mapping[str, int], second: Mapping[str, int], weights: Mapping[str, float], k: str
) -> float | None:
    """The weight of criterion k at which two totals are equal, or None when there is none from 0 to 1.

    With d = first - second: R = sum over j != k of w_j d_j / (1 - w_k), and the tie stands at t = R / (R - d_k).
    """
    if weights[k] >= 1 - SAME:
        return None
    d_k = first[k] - second[k]
    rest = sum(w * (first[c] - second[c]) for c, w in weights.items() if c != k) / (1 - weights[k])
    if abs(rest - d_k) < SAME:
        return None
    t = rest / (rest - d_k)
    return t if 0 <= t <= 1 else None


def flip_weights(ratings: Ratings, weights: Mapping[str, float]) -> tuple[FlipWeight, ...]:
    """For every criterion the nearest weights at which the winner changes, and to whom."""
    best = winner(ratings, weights)
    if best is None:
        return ()
    return tuple(_flip_weight(ratings, weights, best, k) for k in weights)


def _flip_weight(ratings: Ratings, weights: Mapping[str, float], best: str, k: str) -> FlipWeight:
    now = weights[k]
    below: list[tuple[float, int, str]] = []
    above: list[tuple[float, int, str]] = []
    for rival in sorted(ratings.keys() - {best}):
        gain = ratings[rival][k] - ratings[best][k]
        t = tie_weight(ratings[best], ratings[rival], weights, k)
        if t is None or t >= 1 - SAME or (t <= SAME and not (now <= SAME and gain > 0)):
            continue  # level only at the very end of the scale: nobody overtakes
        # Totals that are level now part on the side on which the rival's own rating weighs more.
        side = above if t > now + SAME or (abs(t - now) <= SAME and gain > 0) else below
        side.append((abs(t - now), -abs(gain), rival))
    return FlipWeight(
        criterion=k, weight=now,
        below=Crossing(at=max(0.0, now - min(below)[0]), to=min(below)[2]) if below else None,
        above=Crossing(at=now + min(above)[0], to=min(above)[2]) if above else None,
    )  # fmt: skip


def rating_flips(ratings: Ratings, weights: Mapping[str, float]) -> tuple[RatingFlip, ...]:
    """Every single step of a rating, up or down, that makes another engine win outright."""
    best = winner(ratings, weights)
    found = []
    for engine, own in ratings.items():
        step = -1 if engine == best else 1
        for criterion, weight in weights.items():
            becomes = own[criterion] + step
            if weight <= 0 or not 0 <= becomes <= TOP_RATING:
                continue
            changed = {**ratings, engine: {**own, criterion: becomes}}
            new = winner(changed, weights)
            lead = total(changed[new], weights) - total(changed[best], weights) if new and best else 0.0
            if new is not None and new != best and lead > SAME:
                found.append(
                    RatingFlip(engine=engine, criterion=criterion, rating=own[criterion], becomes=becomes, winner=new)
                )
    return tuple(found)
