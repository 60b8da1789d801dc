"""What happened to a decision, in a few words an edit."""

from __future__ import annotations

from collections.abc import Callable

from decisions.edits import (
    Accepted,
    Commented,
    ConditionAdded,
    ConditionFired,
    ConditionRetired,
    Edit,
    FireConfirmed,
    RecheckMoved,
    ReviewMoved,
    Superseded,
)
from decisions.escaping import entry
from decisions.opinions import ObjectionAnswered
from ui.parts import plain
from ui.text import t


def history_line(edit: Edit, linked: Callable[[str], str]) -> str:
    """One edit as a line: when, who, what, why; `linked` names another ADR by its id."""
    why = _line(edit.reason)
    words = [
        f"{edit.at:%Y-%m-%d %H:%M} UTC", f"**{plain(edit.author)}**", t(edit.kind.replace("_", " ")),
        _what(edit, linked), t("because {why}", why=why) if why else "",
    ]  # fmt: skip
    return "- " + " · ".join(w for w in words if w)


def _what(edit: Edit, linked: Callable[[str], str]) -> str:
    """What an edit says beside its kind, in the reader's words."""
    match edit:
        case ConditionFired():
            return _line(f"{edit.fire.condition}: {edit.fire.sentence}")
        case FireConfirmed():
            return f"{plain(edit.condition)}: {t('re-opened') if edit.answer == 'reopen' else t('it stands')}"
        case Commented():
            return entry(edit.text).replace(":", "\\:")  # Streamlit has shortcodes between colons
        case Accepted():
            return t("as ADR-{n:04d}", n=edit.number)
        case ConditionAdded():
            return _line(f"{edit.condition.id}: {edit.condition.in_words()}")
        case ConditionRetired():
            return plain(edit.condition)
        case RecheckMoved():
            return t("{condition}, again on {day}", condition=plain(edit.condition), day=edit.recheck_on)
        case ReviewMoved():
            return t("again on {day}", day=edit.review_on)
        case ObjectionAnswered():
            return t("to {who}", who=plain(edit.objector))
        case Superseded():
            return linked(edit.by)
        case _:
            return ""


def _line(text: str) -> str:
    """Text from outside on one line, so that nothing in it begins an entry of its own."""
    return plain(" ".join(text.split()))
