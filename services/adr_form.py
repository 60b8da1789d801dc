"""What a person typed about an ADR: read into its text, or refused with the field that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

from pydantic import ValidationError

from decisions.record import Action, Adr, AdrText, Consequences, FlipCondition, People
from planner.errors import InputError
from planner.faults import first_fault


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
    """Flip conditions as a table to edit: one row each, the line or statement as text."""
    return [
        {
            "id": f.id, "line": f.in_words(), "fires_when": f.fires_when, "owner": f.owner, "recheck_on": f.recheck_on,
            "action": f.action.value, "consequence": f.consequence, "retired": f.retired,
        }
        for f in flips
    ]  # fmt: skip


def flips_from(before: Sequence[FlipCondition], rows: Iterable[Mapping[str, object]]) -> tuple[FlipCondition, ...]:
    """Read the edited table; a row that was a statement stays one. Raises InputError with the condition's id."""
    manual = {f.id for f in before if f.manual}
    return tuple(_flip(row, manual=row["id"] in manual) for row in rows)


def flip_from(
    id: str, line: str, *, manual: bool, fires_when: str, owner: str, recheck_on: date | None, action: str,
    consequence: str,
) -> FlipCondition:  # fmt: skip
    """A new flip condition from a form; raises InputError for a line that does not parse."""
    row = {"id": id, "line": line, "fires_when": fires_when, "owner": owner, "recheck_on": recheck_on,
           "action": action, "consequence": consequence, "retired": False}  # fmt: skip
    return _flip(row, manual=manual)


def _flip(row: Mapping[str, object], *, manual: bool) -> FlipCondition:
    line = str(row["line"] or "").strip()
    recheck = row["recheck_on"]
    fields: dict[str, object] = {
        "id": row["id"], "fires_when": row["fires_when"], "owner": str(row["owner"] or "").strip(),
        "recheck_on": recheck.date() if isinstance(recheck, datetime) else recheck,
        "action": Action(str(row["action"])), "consequence": str(row["consequence"] or "").strip(),
        "retired": bool(row["retired"]),
    }  # fmt: skip
    try:
        if manual:
            return FlipCondition.model_validate({**fields, "statement": line})
        read = FlipCondition.from_line(str(row["id"]), line)
        consequence = str(fields["consequence"]) or read.consequence
        return FlipCondition.model_validate({**fields, "condition": read.condition, "consequence": consequence})
    except ValidationError as e:
        raise InputError(first_fault(e), where=f"flip condition {row['id']!r}") from None
    except InputError as e:
        raise InputError(e.what, where=f"flip condition {row['id']!r}", fix=e.fix) from None


def differences(mine: AdrText, theirs: AdrText) -> tuple[tuple[str, str], ...]:
    """Fields that differ, and what stands there on the other side, as text."""
    a, b = mine.model_dump(mode="json"), theirs.model_dump(mode="json")
    return tuple((name, str(b[name])) for name in AdrText.model_fields if a[name] != b[name])
