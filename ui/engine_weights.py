"""Weights as sliders: the points of the rules, and on each slider the points at which another engine wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import pandas as pd
import streamlit as st

from planner.scoring import Score
from planner.sensitivity import FlipWeight
from planner.weighting import Weight
from ui.palette import ENGINE_COLOURS, OTHER_COLOURS
from ui.parts import plain
from ui.text import t
from ui.words import criterion, rating

MOST_POINTS = 20.0
BAR = (
    '<div role="img" aria-label="{said}" title="{said}" '
    'style="display:flex;height:15px;border-radius:4px;overflow:hidden;margin-top:-10px">{cells}</div>'
)
CELL = (
    '<div style="width:{width:.2f}%;background:{colour};color:#fff;overflow:hidden;white-space:nowrap;'
    'text-align:center;border-left:{cut}px solid #e5484d;font-size:11px;line-height:15px">{name}</div>'
)


class Band(NamedTuple):
    """A part of a slider, in points, and the engine that comes first there."""

    low: float
    high: float
    engine: str


def bands(weight: Weight, total: float, flip: FlipWeight, first: str) -> list[Band]:
    """The slider of one criterion cut at its flip points; `total` are all points now.

    A share t of the weights is t x (points of the others) / (1 - t) points of this criterion.
    """
    others = total - weight.points

    def points(share: float) -> float:
        return MOST_POINTS if share >= 1 else min(MOST_POINTS, share * others / (1 - share))

    low = points(flip.below.at) if flip.below else 0.0
    high = points(flip.above.at) if flip.above else MOST_POINTS
    found = [Band(0.0, low, flip.below.to)] if flip.below else []
    found.append(Band(low, high, first))
    if flip.above:
        found.append(Band(high, MOST_POINTS, flip.above.to))
    return [b for b in found if b.high > b.low]


def weights(
    score: Score, by_rules: Mapping[str, Weight], keys: Mapping[str, str], reset: Callable[[], None], adjusted: bool
) -> None:
    """All sliders, those that the requirements ask for first. `keys` holds the sliders' state by criterion."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(
            t("Points come from the requirements by rules. Move them to see what follows; nothing is stored here. "
              "The bar under a slider names who comes first at which points.")
        )  # fmt: skip
        st.button(t("Reset the weights"), on_click=reset, icon=":material/undo:", key="reset-weights",
                  disabled=not adjusted)  # fmt: skip
    asked = [w for w in score.weights if by_rules[w.criterion].points > 0]
    others = [w for w in score.weights if by_rules[w.criterion].points <= 0]
    _sliders(score, asked, by_rules, keys)
    with st.expander(t("Criteria that these requirements do not ask for ({n})", n=len(others))):
        _sliders(score, others, by_rules, keys)


def _sliders(
    score: Score, shown: Sequence[Weight], by_rules: Mapping[str, Weight], keys: Mapping[str, str]
) -> None:  # fmt: skip
    for i in range(0, len(shown), 3):
        for column, w in zip(st.columns(3), shown[i : i + 3], strict=False):
            with column:
                _slider(score, w, by_rules[w.criterion], keys[w.criterion])


def _slider(score: Score, w: Weight, by_rule: Weight, key: str) -> None:
    """One criterion: its points, the rules that gave them, its share and its flip points."""
    st.session_state.setdefault(key, float(by_rule.points))
    st.slider(
        criterion(w.criterion), 0.0, MOST_POINTS, step=0.5, format="%g", key=key, persist_state="session",
        help=plain("; ".join(by_rule.why)) or t("No rule gives it points for these requirements."),
    )  # fmt: skip
    flip = next((f for f in score.flip_weights if f.criterion == w.criterion), None)
    if flip is None or score.favourite is None:
        st.caption(t("weight {weight:.2f} · {flips}", weight=w.weight, flips=t("no engine is ranked")))
        return
    names = {c.engine: c.engine_name for c in score.candidates}
    total = sum(x.points for x in score.weights)
    _bar(bands(w, total, flip, score.favourite), names)
    st.caption(t("weight {weight:.2f} · {flips}", weight=w.weight, flips=_in_words(flip, names)))


def _bar(shown: Sequence[Band], names: Mapping[str, str]) -> None:
    """The bar under a slider: a colour and a name for each part, cut where the winner changes."""
    words = "; ".join(
        t("{name} from {low:.1f} to {high:.1f} points", name=names[b.engine], low=b.low, high=b.high) for b in shown
    )
    cells = "".join(
        CELL.format(width=100 * (b.high - b.low) / MOST_POINTS, colour=_colour(b.engine), cut=2 if b.low else 0,
                    name=escape(names[b.engine]))
        for b in shown
    )  # fmt: skip
    st.html(BAR.format(said=escape(words, quote=True), cells=cells))


def _colour(engine: str) -> str:
    return ENGINE_COLOURS.get(engine, OTHER_COLOURS[0])


def _in_words(f: FlipWeight, names: Mapping[str, str]) -> str:
    """At which weight of one criterion another engine wins."""
    found = []
    if f.below:
        found.append(t("{name} wins below {at:.2f}", name=names[f.below.to], at=f.below.at))
    if f.above:
        found.append(t("{name} wins above {at:.2f}", name=names[f.above.to], at=f.above.at))
    return "; ".join(found) or t("no weight of this criterion changes the winner")


def single_ratings(score: Score) -> None:
    """Ratings of which one step makes another engine win."""
    names = {c.engine: c.engine_name for c in score.candidates}
    if not score.rating_flips:
        st.markdown(t("No single step of one rating changes the winner."))
        return
    rows = [
        {
            t("Engine"): names[f.engine],
            t("Criterion"): criterion(f.criterion),
            t("Rated"): rating(f.rating),
            t("If it were"): rating(f.becomes),
            t("Then wins"): names[f.winner],
        }
        for f in score.rating_flips
    ]
    st.table(pd.DataFrame(rows).set_index(t("Engine")), border="horizontal")
