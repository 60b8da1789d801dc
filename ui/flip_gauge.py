"""How near a flip condition is to firing, as one small bar."""

from __future__ import annotations

import streamlit as st

from decisions.flip_condition import FlipCondition
from decisions.flips import FlipState, FlipVerdict
from planner.metrics import quantity
from ui.parts import nearness, plain
from ui.text import t

WIDTH_PX = 420


def gauge(verdict: FlipVerdict) -> None:
    """A bar that is full when the condition fires, with the room that is left; nothing where there is no distance."""
    near = nearness(verdict.relative_distance)
    if near is None or verdict.distance is None:
        return
    room = quantity(abs(verdict.distance), verdict.unit)
    fired = verdict.state is FlipState.FIRED
    words = t("{x} beyond", x=room) if fired else t("{x} of room before it fires", x=room)
    st.progress(near, text=words, width=WIDTH_PX)


def condition_words(flip: FlipCondition) -> str:
    """A condition as Markdown: its line as code, a person's statement as it was written."""
    return f"`{flip.in_words()}`" if flip.condition else plain(flip.in_words())
