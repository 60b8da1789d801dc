"""Small things that every page uses: heads, badges, messages, the way to the next step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import streamlit as st

from decisions.record import Adr, Deployment
from planner.derivation import Derivation
from planner.errors import FliplineError
from ui.registry import BY_URL, PAGES
from ui.text import t
from ui.words import metrics_in_words


class Look(NamedTuple):
    """Colour and icon of a word; never colour alone."""

    colour: str
    icon: str


STATES: dict[str, Look] = {
    "holds": Look("green", ":material/check_circle:"),
    "fails": Look("red", ":material/cancel:"),
    "near": Look("orange", ":material/warning:"),
    "unmeasured": Look("gray", ":material/radio_button_unchecked:"),
    "unmeasurable": Look("gray", ":material/block:"),
    "undecided": Look("blue", ":material/hourglass_empty:"),
    "invalid run": Look("orange", ":material/report:"),
    "expired": Look("orange", ":material/event_busy:"),
    "conflicting": Look("orange", ":material/call_split:"),
    "armed": Look("green", ":material/shield:"),
    "fired": Look("red", ":material/notifications_active:"),
    "pass": Look("green", ":material/check:"),
    "fail": Look("red", ":material/close:"),
    "unknown": Look("blue", ":material/help:"),
    "draft": Look("gray", ":material/edit_note:"),
    "proposed": Look("blue", ":material/how_to_vote:"),
    "accepted": Look("green", ":material/verified:"),
    "rejected": Look("red", ":material/thumb_down:"),
    "superseded": Look("gray", ":material/redo:"),
    "deprecated": Look("gray", ":material/archive:"),
}
KINDS: dict[str, str] = {
    "measured": "green", "observed": "green", "imported": "orange", "entered": "orange", "documented": "gray",
    "simulated": "violet", "planning": "blue", "coverage": "blue", "bound": "blue", "engine-alone": "blue",
}  # fmt: skip


def state_badge(state: str) -> str:
    """A state as an inline badge: word, colour and icon."""
    look = STATES[str(state)]
    return f":{look.colour}-badge[{look.icon} {t(str(state))}]"


def kind_badge(kind: str) -> str:
    """How a figure is known, as an inline badge."""
    return f":{KINDS[str(kind)]}-badge[{t(str(kind))}]"


def plain(text: str) -> str:
    """Text from outside as Markdown that shows it literally."""
    for character in "\\`*_{}[]<>#|~$:":
        text = text.replace(character, "\\" + character)
    return text


def head(url: str, lead: str) -> None:
    """Title, which step of the walk it is, and one sentence on what the page is for."""
    page = BY_URL[url]
    steps = sum(p.step is not None for p in PAGES)
    step = t("Step {step} of {steps}", step=page.step, steps=steps) if page.step else ""
    st.title(t(page.title))
    st.caption(" · ".join(x for x in (step, lead) if x))
    flash = st.session_state.pop("flash", None)
    if flash:
        st.success(flash)


def flash(message: str) -> None:
    """Show a message at the head of the page after the next rerun."""
    st.session_state["flash"] = message


def next_step(url: str, *, primary: bool = True) -> None:
    """The action that leads on; the primary one, unless the page has work to be done first."""
    after = BY_URL[url].next
    if after is None:
        return
    target = BY_URL[after]
    label = t("Next: {page}", page=t(target.title))
    if st.button(label, type="primary" if primary else "secondary", icon=":material/arrow_forward:", key=f"next-{url}"):
        st.switch_page(target.file)


def go_to(url: str, sentence: str) -> None:
    """What is missing, as a sentence with a link to where it is mended."""
    page = BY_URL[url]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(sentence)
        st.page_link(page.file, label=t(page.title), icon=page.icon)


def judged(sentence: str, state: str) -> str:
    """The sentence of a flip condition beside its badge, which says the state already."""
    return plain(metrics_in_words(sentence.removeprefix(f"{state.capitalize()}. ")))


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show a clear sentence instead of a traceback; what was typed stays where it is."""
    try:
        yield
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")


@st.fragment
def explained(derivation: Derivation, label: str = "") -> None:
    """A figure's formula, inputs with sources, assumptions and known error, in one click.

    What is inside is sent when it is opened: a page has dozens of these, and most are never looked into.
    """
    key = f"how-{derivation.key}-{label}"
    with st.popover(label or t("How?"), icon=":material/function:", key=key, on_change="rerun") as shown:
        if not shown.open:
            return
        st.markdown(f"**{plain(derivation.title)}: {plain(derivation.value)}**")
        st.markdown(f"`{derivation.formula}`")
        for given in derivation.inputs:
            st.markdown(f"- {plain(given.name)} = {plain(given.value)}  \n  :small[{plain(given.source)}]")
        for assumption in derivation.assumptions:
            st.markdown(f"- {t('assumes')}: {plain(assumption)}")
        st.caption(f"{t('Known error')}: {plain(derivation.band)}")


def nearness(relative_distance: float | None) -> float | None:
    """How near a flip condition is to firing, 0 (far: as much room as the threshold itself) to 1 (fired)."""
    return None if relative_distance is None else min(1.0, max(0.0, 1.0 - relative_distance))


def deployment_words(d: Deployment) -> str:
    """What runs in production, since when, and who recorded it, as Markdown."""
    what = plain(f"{d.candidate} {d.engine_version}")
    return t("{what} since {day}, recorded by {who}", what=what, day=f"{d.since:%Y-%m-%d}", who=plain(d.by))


def short(adr: Adr) -> str:
    """An ADR as a list calls it: its number, when it has one, and its title."""
    return f"ADR-{adr.number:04d} {adr.title}" if adr.number else adr.title
