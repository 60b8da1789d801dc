"""A condition as one line, both ways: `vllm: ttft p95 <= 2 s at peak near 10 % -> add a unit`.

    [candidate [over other]:] metric [statistic] comparison value [unit]
        [at [every of|any of] point[, point ...] | at every point | at any point]
        [over N days] [near P %] [within N days] [version exact|patch|minor|any] [-> consequence]

comparison: <= v, >= v, between v and v, is v (true/false or a number). English only: other languages are
reading forms of the same object.
"""

from __future__ import annotations

import re
from typing import Literal, cast

from pydantic import ValidationError

from planner.conditions import Comparison, Condition
from planner.contract import Tolerance
from planner.errors import InputError, UnknownName
from planner.metrics import UNITS, metric, to_base

# A comma separates thousands, never decimals: "1,5" is refused rather than read as fifteen.
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\d.,])"
_NEEDS_UNIT = frozenset({"ms", "s", "tok/s", "req/s"})
_HEAD = re.compile(
    r"^(?:(?P<cand>[\w.-]+)(?:\s+over\s+(?P<over>[\w.-]+))?\s*:\s+)?(?P<metric>[A-Za-z_]\w*)(?P<rest>.*)$"
)
_TEST = re.compile(
    rf"^\s*(?P<stat>[a-z]\w*)?\s*(?:(?P<op><=|>=)\s*(?P<v>{_NUMBER})|between\s+(?P<lo>{_NUMBER})\s+and\s+(?P<hi>{_NUMBER})"
    rf"|is\s+(?P<is>true|false|{_NUMBER}))(?P<rest>.*)$"
)
_UNIT = re.compile(
    rf"^\s*(?P<unit>{'|'.join(re.escape(u) for u in sorted(UNITS, key=len, reverse=True))})(?=\s|$)(?P<rest>.*)$"
)
_CLAUSES = {
    "at": re.compile(r"^at\s+(?P<v>(?:(?:every|any)\s+(?:point\b|of\s+))?[\w.-]*(?:\s*,\s*[\w.-]+)*)(?P<rest>.*)$"),
    "over": re.compile(r"^over\s+(?P<v>\d+)\s+days?\b(?P<rest>.*)$"),
    "near": re.compile(rf"^near\s+(?P<v>{_NUMBER})\s*%(?P<rest>.*)$"),
    "within": re.compile(r"^within\s+(?P<v>\d+)\s+days?\b(?P<rest>.*)$"),
    "version": re.compile(r"^version\s+(?P<v>exact|patch|minor|any)\b(?P<rest>.*)$"),
}
EVERY_POINT = "*"
Quantifier = Literal["every", "any"]


def parse_condition(line: str) -> Condition:
    """Read one condition line.

    Raises InputError (UnknownName for a metric) that shows the part that was not understood.
    """
    text, _, consequence = line.strip().partition(" -> ")
    head = _HEAD.match(text.strip())
    if not head:
        raise _fault(line, "no metric found")
    found = metric(head["metric"])
    body = _TEST.match(head["rest"])
    if not body:
        raise _fault(line, f"no comparison after {head['metric']!r}")
    statistic = body["stat"] or "value"
    if statistic not in found.statistics:
        raise UnknownName.from_known(f"statistic of {found.name}", statistic, found.statistics, where=f"'{line}'")
    is_ratio = bool(head["over"]) and not found.paired
    rest, unit = body["rest"], "x" if is_ratio else found.unit
    unit_match = _UNIT.match(rest)
    if unit_match:
        unit, rest = unit_match["unit"], unit_match["rest"]

    def base(number: str) -> float:
        if number in ("true", "false"):
            return float(number == "true")
        value = float(number.replace(",", ""))
        if is_ratio:
            if unit != "x":
                raise _fault(line, f"a ratio is in x, not {unit}")
            return value
        if not unit_match and found.unit in _NEEDS_UNIT:
            way_out = (
                f"Write {number} s or {number} ms." if found.unit in ("ms", "s") else f"Write {number} {found.unit}."
            )
            raise InputError(f"{number} of what?", where=f"condition '{line}'", fix=way_out)
        in_base = to_base(value, unit, found)
        if found.unit == "share" and in_base > 1:
            raise _fault(line, f"a share runs from 0 to 1, so {number} is too much; write {number} %")
        return in_base

    fields: dict[str, object] = {}
    rest = rest.strip()
    while rest:
        word = rest.split(None, 1)[0]
        clause = _CLAUSES[word].match(rest) if word in _CLAUSES else None
        if clause is None or word in fields:
            raise _fault(line, f"{rest!r} not understood")
        fields[word] = clause["v"].strip()
        rest = clause["rest"].strip()
    points, quantifier = _points(str(fields.get("at", "")))
    comparison = cast(Comparison, body["op"] or ("between" if body["lo"] else "is"))
    try:
        return Condition(
            metric=found.id, statistic=statistic, comparison=comparison,
            threshold=base(body["v"] or body["lo"] or body["is"]), upper=base(body["hi"]) if body["hi"] else None,
            candidate=head["cand"], over=head["over"], load_points=points, quantifier=quantifier,
            near=float(str(fields.get("near", 0))) / 100,
            window_days=int(str(fields["over"])) if "over" in fields else None,
            max_age_days=int(str(fields["within"])) if "within" in fields else None,
            tolerance=cast(Tolerance, fields.get("version", "minor")),
            consequence=consequence.strip(),
        )  # fmt: skip
    except ValidationError as e:
        raise _fault(line, e.errors()[0]["msg"].removeprefix("Value error, ").rstrip(".")) from None


def _points(text: str) -> tuple[tuple[str, ...], Quantifier]:
    if not text:
        return (), "every"
    if text in ("every point", "any point"):
        return (EVERY_POINT,), "any" if text.startswith("any") else "every"
    quantifier: Quantifier = "any" if text.startswith("any of ") else "every"
    text = text.removeprefix("any of ").removeprefix("every of ")
    return tuple(p.strip() for p in text.split(",") if p.strip()), quantifier


def _fault(line: str, what: str) -> InputError:
    return InputError(
        f"{what}.", where=f"condition '{line}'", fix="Write it like 'vllm: ttft p95 <= 2 s at peak near 10 %'."
    )


def format_number(value: float) -> str:
    """Shortest text that reads back to the same number."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _threshold(c: Condition, value: float) -> str:
    if c.unit == "bool":
        return ("true" if value else "false") if c.comparison == "is" else format_number(value)
    if c.unit == "ms" and value >= 1000 and value / 1000 * 1000 == value:
        return f"{format_number(value / 1000)} s"
    number = format_number(value)
    return number if c.unit in ("count", "share") else f"{number} {c.unit}"


def format_test(c: Condition) -> str:
    """Metric, statistic and comparison alone: `ttft p95 <= 2 s`."""
    statistic = "" if c.statistic == "value" else f" {c.statistic}"
    if c.comparison == "between":
        suffix = "" if c.unit in ("count", "share") else f" {c.unit}"
        return (
            f"{c.of.name}{statistic} between {format_number(c.threshold)} and {format_number(c.upper or 0.0)}{suffix}"
        )
    return f"{c.of.name}{statistic} {c.comparison} {_threshold(c, c.threshold)}"


def format_condition(c: Condition) -> str:
    """Write a condition as the line that parse_condition reads back to an equal object."""
    who = f"{c.candidate} over {c.over}: " if c.over else f"{c.candidate}: " if c.candidate else ""
    parts = [who + format_test(c)]
    if c.load_points == (EVERY_POINT,):
        parts.append(f"at {c.quantifier} point")
    elif c.load_points:
        several = f"{c.quantifier} of " if len(c.load_points) > 1 or c.quantifier == "any" else ""
        parts.append(f"at {several}{', '.join(c.load_points)}")
    if c.window_days:
        parts.append(f"over {c.window_days} days")
    if c.near:
        parts.append(f"near {format_number(round(c.near * 100, 10))} %")
    if c.max_age_days:
        parts.append(f"within {c.max_age_days} days")
    if c.tolerance != "minor":
        parts.append(f"version {c.tolerance}")
    line = " ".join(parts)
    return f"{line} -> {c.consequence}" if c.consequence else line
