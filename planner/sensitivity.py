"""What would change the winner of a weighted sum: the weight of one criterion, or one step of one rating.

Works on plain numbers: ratings[engine][criterion] from 0 to 3, weights[criterion] that sum to 1. A rating that nobody
knows is None and stands in the middle of the scale: neither for nor against its engine, whatever the others are rated.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.frozen import Frozen

Rating = int | None
Ratings = Mapping[str, Mapping[str, Rating]]
TOP_RATING = 3
MIDDLE = TOP_RATING / 2
SAME = 1e-12


def level(rating: Rating) -> float:
    """A rating as the number that counts: unknown is the middle of the scale."""
    return MIDDLE if rating is None else rating


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
    """One step of one rating, or an unknown one becoming known, that makes another engine win."""

    engine: str
    criterion: str
    rating: int | None
    becomes: int
    winner: str


def total(ratings: Mapping[str, Rating], weights: Mapping[str, float]) -> float:
    """Weighted sum of ratings on fixed anchors, from 0 to 1."""
    return sum(w * level(ratings[c]) for c, w in weights.items()) / TOP_RATING


def winner(ratings: Ratings, weights: Mapping[str, float]) -> str | None:
    """The engine with the highest total; between equal ones the first by name."""
    return max(sorted(ratings), key=lambda e: round(total(ratings[e], weights), 12), default=None)


def near_tie_margin(weights: Mapping[str, float]) -> float:
    """A difference below one rating step on one criterion of average weight is called a tie.

    It depends on the weights alone, so that a third candidate cannot make or break a tie.
    """
    used = sum(w > 0 for w in weights.values())
    return 1 / used / TOP_RATING


def tie_weight(
    first: Mapping[str, Rating], second: Mapping[str, Rating], weights: Mapping[str, float], k: str
) -> float | None:
    """The weight of criterion k at which two totals are equal, or None when there is none from 0 to 1.

    With d = first - second: R = sum over j != k of w_j d_j / (1 - w_k), and the tie stands at t = R / (R - d_k).
    """
    if weights[k] >= 1 - SAME:
        return None
    d_k = level(first[k]) - level(second[k])
    rest = sum(w * (level(first[c]) - level(second[c])) for c, w in weights.items() if c != k) / (1 - weights[k])
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
    below: list[tuple[float, float, str]] = []
    above: list[tuple[float, float, str]] = []
    for rival in sorted(ratings.keys() - {best}):
        gain = level(ratings[rival][k]) - level(ratings[best][k])
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
    """Every single step of a rating that makes another engine win outright; of an unknown rating, the nearest value.

    One step changes one total by weight / 3, so each is compared with the best of the totals that stay.
    """
    totals = {e: total(own, weights) for e, own in ratings.items()}
    best = winner(ratings, weights)
    if best is None or len(totals) < 2:
        return ()
    order = sorted(totals, key=lambda e: (-round(totals[e], 12), e))
    found = []
    for engine, own in ratings.items():
        rival = order[1] if engine == best else engine
        for criterion, weight in weights.items():
            for becomes in _steps(own[criterion], down=engine == best):
                moved = totals[engine] + weight * (becomes - level(own[criterion])) / TOP_RATING
                lead = totals[rival] - moved if engine == best else moved - totals[best]
                if lead > SAME:
                    found.append(
                        RatingFlip(engine=engine, criterion=criterion, rating=own[criterion], becomes=becomes,
                                   winner=rival)
                    )  # fmt: skip
                    break
    return tuple(found)


def _steps(rating: Rating, *, down: bool) -> tuple[int, ...]:
    """The values that one step may reach: the next one, or every value on that side when the rating is unknown."""
    if rating is None:
        return (1, 0) if down else (2, 3)
    becomes = rating - 1 if down else rating + 1
    return (becomes,) if 0 <= becomes <= TOP_RATING else ()
