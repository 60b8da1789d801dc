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
from decisions.opinions import ObjectionAnswered
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
    """What an edit says beside its kind, in the reader's words."""
    match edit:
        case ConditionFired():
            return plain(f"{edit.fire.condition}: {edit.fire.sentence}")
        case FireConfirmed():
            return f"{plain(edit.condition)}: {t('re-opened') if edit.answer == 'reopen' else t('it stands')}"
        case Commented():
            return plain(edit.text)
        case Accepted():
            return t("as ADR-{n:04d}", n=edit.number)
        case ConditionAdded():
            return plain(f"{edit.condition.id}: {edit.condition.in_words()}")
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
