"""A fault that pydantic found, as one sentence for a person."""

from __future__ import annotations

from pydantic import ValidationError


def first_fault(error: ValidationError) -> str:
    """The first fault of a pydantic error as one sentence: field, what was given, what would be right."""
    first = error.errors()[0]
    place = ".".join(str(p) for p in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return message if not place else f"{place}: {message}"
    given = first.get("input")
    shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
    return f"{place}: {message[0].lower()}{message[1:]}{shown}."
