"""The quality set: prompts with an expectation, read from a file, and whether an answer meets it.

One JSON object a line: {"id", "prompt"} and one expectation of
exact (the answer, spaces around it aside), contains (upper and lower case alike), regex (found anywhere),
json_schema (the answer is JSON that fits; a Markdown fence around it is taken off) or
number (the last number of the answer, within `tolerance`, 0 unless stated).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.json_schema import check_schema, fits
from bundle.quality import Judged
from planner.errors import InputError

_FENCE = re.compile(r"^```\w*\s*\n(.*?)\n?```$", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:[eE][-+]?\d+)?")
KEPT_CHARACTERS = 4000


class Item(NamedTuple):
    """One prompt of a quality set; `wanted` is what its kind of expectation compares with."""

    id: str
    prompt: str
    kind: str
    wanted: Any
    tolerance: float = 0.0


def is_valid_json(text: str, schema: dict[str, Any]) -> bool:
    """Whether the whole text is JSON that fits the schema."""
    try:
        return fits(json.loads(text, parse_constant=_refuse), schema)
    except (ValueError, RecursionError):
        return False


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity, which Python reads and JSON does not know


def _json(text: str, item: Item) -> bool:
    fenced = _FENCE.match(text.strip())
    return is_valid_json(fenced.group(1) if fenced else text, item.wanted)


def _number(text: str, item: Item) -> bool:
    found = _NUMBER.findall(text)
    return bool(found) and abs(float(found[-1].replace(",", "")) - float(item.wanted)) <= item.tolerance


_MEETS: dict[str, Callable[[str, Item], bool]] = {
    "exact": lambda text, item: text.strip() == str(item.wanted).strip(),
    "contains": lambda text, item: str(item.wanted).casefold() in text.casefold(),
    "regex": lambda text, item: re.search(item.wanted, text) is not None,
    "json_schema": _json,
    "number": _number,
}


def judge_answer(item: Item, text: str | None, error: str = "") -> Judged:
    """Judge one answer; a request that failed has none, and does not pass."""
    passed = text is not None and _MEETS[item.kind](text, item)
    shown = f"[{error}]" if text is None else text
    return Judged(id=item.id, expects=item.kind, passed=passed, answer=shown[:KEPT_CHARACTERS])


def item_of(row: dict[str, Any], where: str) -> Item:
    """One item from its line; raises InputError for anything that could not be judged."""
    prompt = row.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError("an item needs a prompt.", where=where, fix='Write {"prompt": "...", "exact": "..."}.')
    if unknown := sorted(row.keys() - {"id", "prompt", "tolerance", *_MEETS}):
        raise InputError(f"unknown field {unknown[0]!r}.", where=where, fix=f"Expectations: {', '.join(_MEETS)}.")
    kinds = [kind for kind in _MEETS if kind in row]
    if len(kinds) != 1:
        raise InputError("an item has exactly one expectation.", where=where, fix=f"Choose of {', '.join(_MEETS)}.")
    (kind,) = kinds
    wanted, tolerance = row[kind], row.get("tolerance", 0.0)
    if kind == "json_schema":
        check_schema(wanted, where=where)
    elif kind == "number":
        if not _is_number(wanted) or not _is_number(tolerance) or tolerance < 0:
            raise InputError("number and tolerance are finite numbers, tolerance not below 0.", where=where)
    elif not isinstance(wanted, str) or not wanted:
        raise InputError(f"{kind} takes a text.", where=where)
    elif kind == "regex":
        try:
            re.compile(wanted)
        except re.error as e:
            raise InputError(f"{wanted!r} is not a regular expression: {e}.", where=where) from None
    if "tolerance" in row and kind != "number":
        raise InputError("tolerance goes with number only.", where=where)
    return Item(str(row.get("id") or where.rpartition(" ")[2]), prompt, kind, wanted, float(tolerance))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
