"""Two people saved the same text: what came from the other one, and what both changed, side by side for a choice."""

from __future__ import annotations

from typing import Any

import streamlit as st

from decisions.flip_condition import FlipCondition
from decisions.merge import Clash, Side
from decisions.record import EvidenceRef, Option
from services.decisions import Merging
from ui.flip_gauge import condition_words
from ui.parts import plain
from ui.text import t


def field_name(field: str) -> str:
    """A field of the text as people read it."""
    return plain(field.replace("_", " ").replace(".", ": "))


def came_from_them(merging: Merging) -> None:
    """Who saved, and which of their changes come in by themselves."""
    st.markdown(
        f"**{t('{who} saved this while you were writing. What you typed is still here.', who=plain(merging.by))}**"
    )
    if merging.merged.taken:
        fields = ", ".join(field_name(f) for f in merging.merged.taken)
        st.markdown(t("Theirs alone, taken as it is: {fields}", fields=fields))
    if not merging.merged.clashes:
        st.markdown(t("Nothing was changed by both: the two texts go together."))


def chosen_sides(merging: Merging, key: str) -> dict[str, Side]:
    """Both texts of every clash with a choice below; mine where none was made yet."""
    return {clash.field: _side(clash, key) for clash in merging.merged.clashes}


def _side(clash: Clash, key: str) -> Side:
    st.markdown(f"**{t('Both changed: {field}', field=field_name(clash.field))}**")
    left, right = st.columns(2, border=True)
    for column, heading, value in ((left, t("Mine"), clash.mine), (right, t("Theirs"), clash.theirs)):
        column.caption(heading)
        column.markdown(_words(value))
    sides: list[Side] = ["mine", "theirs"]
    words = {"mine": t("Keep mine"), "theirs": t("Take theirs")}
    return st.radio(field_name(clash.field), sides, format_func=words.get, horizontal=True,
                    label_visibility="collapsed", key=f"side-{clash.field}-{key}")  # fmt: skip


def _words(value: Any) -> str:
    """A field's value as Markdown that shows it literally."""
    if value is None or value in ("", ()):
        return t("*nothing*")
    if isinstance(value, FlipCondition):
        more = f"{t(value.fires_when)}, {value.owner or t('nobody')}, {value.recheck_on or t('no date')}"
        return f"{condition_words(value)}  \n{plain(more)}  \n{plain(value.consequence)}"
    if isinstance(value, Option):
        return "\n".join(
            f"- {plain(x)}" for x in (value.title, value.summary, *value.pros, *value.neutral, *value.cons) if x
        )
    if isinstance(value, EvidenceRef):
        return plain(value.says)
    if isinstance(value, tuple):
        return "\n".join(f"- {plain(str(entry))}" for entry in value)
    return plain(str(value)).replace("\n", "\n\n")
