"""What a person typed about an ADR: read into its text, or refused with the field that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

from pydantic import ValidationError

from decisions.flip_condition import Action, FlipCondition
from decisions.record import Adr, AdrText, Consequences, People
from planner.conditions import Condition
from planner.errors import InputError
from planner.faults import first_fault
from planner.printable import printable


def lines(text: str) -> tuple[str, ...]:
    """One entry a line; a leading dash and empty lines are dropped."""
    return tuple(entry for line in text.splitlines() if (entry := line.strip().removeprefix("- ").strip()))


def names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def text_from(
    adr: Adr, fields: Mapping[str, object], *, good: str, neutral: str, bad: str, decided: str, consulted: str,
    informed: str, conditions: Iterable[FlipCondition],
) -> AdrText:  # fmt: skip
    """The text of `adr` with what was typed; raises InputError with the first fault."""
    if not printable(str(fields.get("title", adr.title))).strip():
        raise InputError("title: is empty.", where="decision", fix="Name what is decided.")
    typed = {
        **adr.text.model_dump(),
        **fields,
        "consequences": Consequences(good=lines(good), neutral=lines(neutral), bad=lines(bad)),
        "people": {"decided": names(decided), "consulted": names(consulted), "informed": names(informed)},
        "conditions": tuple(conditions),
    }
    try:
        typed["people"] = People.model_validate(typed["people"])
        return AdrText.model_validate(typed)
    except ValidationError as e:
        raise InputError(first_fault(e), where="decision") from None


def flip_rows(flips: Sequence[FlipCondition]) -> list[dict[str, object]]:
    """Flip conditions as a table to edit: one row each, the line or statement as text, the margin of "near" in %."""
    return [
        {
            "id": f.id, "line": _line(f), "fires_when": f.fires_when,
            "near_percent": round(100 * f.condition.near, 6) if f.condition else None, "owner": f.owner,
            "recheck_on": f.recheck_on, "action": f.action.value, "consequence": f.consequence, "retired": f.retired,
        }
        for f in flips
    ]  # fmt: skip


def _line(flip: FlipCondition) -> str:
    """The condition without its margin, which has a field of its own."""
    if flip.condition is None:
        return flip.in_words()
    return flip.model_copy(update={"condition": flip.condition.model_copy(update={"near": 0.0})}).in_words()


def flips_from(before: Sequence[FlipCondition], rows: Iterable[Mapping[str, object]]) -> tuple[FlipCondition, ...]:
    """Read the edited table; a row that was a statement stays one, and one that cannot be read any more as it is.

    Raises InputError with the condition's id.
    """
    known = {f.id: f for f in before}
    return tuple(_edited(known.get(str(row["id"])), row) for row in rows)


def _edited(was: FlipCondition | None, row: Mapping[str, object]) -> FlipCondition:
    if was and was.forgotten and str(row["line"] or "").strip() == was.in_words():
        return was.model_copy(update=_beside(row))
    return _flip(row, manual=bool(was and was.manual))


def flip_from(
    id: str, line: str, *, manual: bool, fires_when: str, owner: str, recheck_on: date | None, action: str,
    consequence: str, near_percent: float | None = None,
) -> FlipCondition:  # fmt: skip
    """A new flip condition from a form; raises InputError for a line that does not parse."""
    row = {"id": id, "line": line, "fires_when": fires_when, "owner": owner, "recheck_on": recheck_on,
           "action": action, "consequence": consequence, "retired": False, "near_percent": near_percent}  # fmt: skip
    return _flip(row, manual=manual)


def _beside(row: Mapping[str, object]) -> dict[str, object]:
    """What stands beside a condition's line or statement."""
    recheck = row["recheck_on"]
    return {
        "fires_when": row["fires_when"], "owner": str(row["owner"] or "").strip(),
        "recheck_on": recheck.date() if isinstance(recheck, datetime) else recheck,
        "action": Action(str(row["action"])), "consequence": str(row["consequence"] or "").strip(),
        "retired": bool(row["retired"]),
    }  # fmt: skip


def _flip(row: Mapping[str, object], *, manual: bool) -> FlipCondition:
    line = str(row["line"] or "").strip()
    fields = {"id": row["id"], **_beside(row)}
    try:
        if manual:
            return FlipCondition.model_validate({**fields, "statement": line})
        read = FlipCondition.from_line(str(row["id"]), line)
        near = row["near_percent"]
        condition = read.condition
        if condition and isinstance(near, int | float) and not condition.near:  # the line's own margin comes first
            condition = Condition.model_validate({**condition.model_dump(), "near": near / 100})
        consequence = str(fields["consequence"]) or read.consequence
        return FlipCondition.model_validate({**fields, "condition": condition, "consequence": consequence})
    except ValidationError as e:
        raise InputError(first_fault(e), where=f"flip condition {row['id']!r}") from None
    except InputError as e:
        raise InputError(e.what, where=f"flip condition {row['id']!r}", fix=e.fix) from None
