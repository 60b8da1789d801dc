"""What happened to a decision, in a few words an edit."""

from __future__ import annotations

from collections.abc import Callable

from decisions.edits import ConditionFired, Edit, FireConfirmed
from ui.parts import plain
from ui.text import t


def history_line(edit: Edit, linked: Callable[[str], str]) -> str:
    """One edit as a line: when, who, what, why; `linked` names another ADR by its id."""
    words = [
        f"{edit.at:%Y-%m-%d %H:%M} UTC", f"**{plain(edit.author)}**", t(edit.kind.replace("_", " ")),
        _what(edit, linked), t("because {why}", why=plain(edit.reason)) if edit.reason else "",
    ]  # fmt: skip
    return "- " + " · ".join(w for w in words if w)


def _what(edit: Edit, linked: Callable[[str], str]) -> str:
    if isinstance(edit, ConditionFired):
        return plain(edit.fire.sentence)
    if isinstance(edit, FireConfirmed):
        answer = t("re-opened") if edit.answer == "reopen" else t("it stands")
        return f"{plain(edit.condition)}: {answer}"
    if edit.kind == "comment":
        return plain(edit.text)
    if edit.kind == "accepted":
        return t("as ADR-{n:04d}", n=edit.number)
    if edit.kind in ("condition_added", "condition_retired"):
        condition = edit.condition
        return plain(condition if isinstance(condition, str) else condition.in_words())
    if edit.kind == "superseded":
        return linked(edit.by)
    return ""
