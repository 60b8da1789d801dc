"""What would change the winner: by hand, and against trying every step and every weight."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.sensitivity import flip_weights, rating_flips, tie_weight, total, winner


def test_flip_weight_by_hand() -> None:
    # cost 0.3, speed 0.7; a: cost 1, speed 3; b: cost 3, speed 2 (of 3).
    # a = 0.3*1/3 + 0.7*3/3 = 0.8; b = 0.3*3/3 + 0.7*2/3 = 0.7667. Level at t: (1-t)*3 + t = (1-t)*2 + 3t -> t = 1/3.
    ratings = {"a": {"cost": 1, "speed": 3}, "b": {"cost": 3, "speed": 2}}
    shares = {"cost": 0.3, "speed": 0.7}
    cost, speed = flip_weights(ratings, shares)
    assert cost.above is not None
    assert (cost.above.to, cost.above.at) == ("b", pytest.approx(1 / 3))
    assert cost.below is None
    assert speed.below is not None
    assert (speed.below.to, speed.below.at) == ("b", pytest.approx(2 / 3))
    assert speed.nearest == speed.below
    # One step: a's speed 3 -> 2 gives 0.5667, a's cost 1 -> 0 gives 0.7, b's speed 2 -> 3 gives 1.0; b's cost is 3.
    steps = {(f.engine, f.criterion, f.becomes) for f in rating_flips(ratings, shares)}
    assert steps == {("a", "speed", 2), ("a", "cost", 0), ("b", "speed", 3)}


def test_an_engine_better_on_everything_cannot_be_flipped() -> None:
    ratings = {"a": {"x": 3, "y": 3}, "b": {"x": 3, "y": 1}}
    assert all(f.nearest is None for f in flip_weights(ratings, {"x": 0.5, "y": 0.5}))


NAMES = ("x", "y", "z")
RATINGS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries({n: st.none() | st.integers(0, 3) for n in NAMES}),
    min_size=2,
)
SHARES = (
    st.tuples(*[st.integers(0, 9)] * 3)
    .filter(any)
    .map(lambda p: {n: v / sum(p) for n, v in zip(NAMES, p, strict=True)})
)


def reweighted(weights: Mapping[str, float], criterion: str, value: float) -> dict[str, float]:
    """The weights with one set to `value` and the others scaled so that all sum to 1."""
    rest = 1 - weights[criterion]
    return {c: value if c == criterion else w * (1 - value) / rest for c, w in weights.items()}


@settings(max_examples=150)
@given(RATINGS, SHARES)
def test_at_the_flip_weight_totals_are_equal_and_nobody_wins_before(
    ratings: dict[str, dict[str, int | None]], shares: dict[str, float]
) -> None:
    best = winner(ratings, shares)
    assert best is not None
    for flip in flip_weights(ratings, shares):
        for crossing in (flip.below, flip.above):
            if crossing is None:
                continue
            assert 0 <= crossing.at <= 1
            at = reweighted(shares, flip.criterion, crossing.at)
            assert sum(at.values()) == pytest.approx(1)
            assert total(ratings[best], at) == pytest.approx(total(ratings[crossing.to], at), abs=1e-9)
            assert total(ratings[best], at) >= max(total(r, at) for r in ratings.values()) - 1e-9


@settings(max_examples=150)
@given(RATINGS, SHARES, st.sampled_from(NAMES), st.floats(0, 1))
def test_between_the_flip_weights_the_winner_stays(
    ratings: dict[str, dict[str, int | None]], shares: dict[str, float], criterion: str, value: float
) -> None:
    if shares[criterion] >= 1:
        return
    flip = next(f for f in flip_weights(ratings, shares) if f.criterion == criterion)
    low = flip.below.at if flip.below else -1.0
    high = flip.above.at if flip.above else 2.0
    if low < value < high:
        at = reweighted(shares, criterion, value)
        best = winner(ratings, shares)
        assert best is not None
        assert total(ratings[best], at) >= max(total(r, at) for r in ratings.values()) - 1e-9


@settings(max_examples=150)
@given(RATINGS, SHARES)
def test_rating_flips_are_those_that_trying_every_step_finds(
    ratings: dict[str, dict[str, int | None]], shares: dict[str, float]
) -> None:
    """The oracle changes each rating and adds all totals up again; a step on a scale of 3 with known ratings is one."""
    best = winner(ratings, shares)
    assert best is not None
    tried = set()
    for engine, own in ratings.items():
        for criterion, was in own.items():
            if was is None or shares[criterion] == 0:
                continue
            becomes = was + (-1 if engine == best else 1)
            if not 0 <= becomes <= 3:
                continue
            changed = {**ratings, engine: {**own, criterion: becomes}}
            new = winner(changed, shares)
            assert new is not None
            if total(changed[new], shares) - total(changed[best], shares) > 1e-9:
                tried.add((engine, criterion, becomes, new))
    found = {
        (f.engine, f.criterion, f.becomes, f.winner) for f in rating_flips(ratings, shares) if f.rating is not None
    }
    assert found == tried


@given(RATINGS, SHARES)
def test_tie_weight_is_symmetric(ratings: dict[str, dict[str, int | None]], shares: dict[str, float]) -> None:
    first, second = list(ratings.values())[:2]
    there, back = tie_weight(first, second, shares, "x"), tie_weight(second, first, shares, "x")
    assert (there is None) == (back is None)
    assert there is None or there == pytest.approx(back)
