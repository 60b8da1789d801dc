"""What differs between two values, field by field in words, and word by word where the texts are long.

Entries of a list are told apart by their id or name, never by their place: taking out the first of five options is one
difference, not five.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from difflib import SequenceMatcher
from enum import Enum
from typing import Any, Literal, NamedTuple

from planner.condition_line import format_condition, format_number
from planner.conditions import Condition
from planner.frozen import Frozen

KEYS = ("id", "name", "key", "title", "kind", "gpu", "condition", "criterion")
SPACED = ("command", "flags")  # lists that read as one line
# Words; longer texts are compared line by line. 2,000 of which every seventh was changed take a second.
LONGEST_BY_WORD = 2000
# Fields whose name alone would mislead; others are read as they are spelt, with the unit in brackets.
WORDS = {
    "peak_users_min": "peak users, from", "peak_users_max": "peak users, to", "input_tokens": "prompt (tokens)",
    "output_tokens": "answer (tokens)", "context_tokens": "context (tokens)", "ttft_s": "first token within (s)",
    "user_tok_s_promise": "speed promised per user (tok/s)", "user_tok_s_target": "speed aimed at per user (tok/s)",
    "user_tok_s_percentile": "speed: percentile", "ttft_percentile": "first token: percentile",
    "completion_s": "answer complete within (s)", "completion_answer_tokens": "complete: answer (tokens)",
    "requests_per_user_per_min": "requests per user and minute", "error_share_max": "share of failed requests allowed",
    "lora": "LoRA", "api": "API", "gpu": "GPU", "os": "OS", "kv_cache_dtype": "KV cache",
    "other_tenants_gb": "taken by others (GB)", "electricity_per_kwh": "electricity per kWh",
    "pros": "for", "cons": "against", "neutral": "open", "chosen": "chosen option", "outcome": "because",
    "evidence_absent": "why there is no evidence", "fires_when": "fires when it", "recheck_on": "re-check on",
    "shared_contract": "contract", "load_points": "load points", "if_rejected": "if rejected",
    "gpus": "GPUs", "json_schema": "JSON schema", "run": "bundle", "url": "URL",
}  # fmt: skip
UNITS = {"_tok_s": " (tok/s)", "_per_s": " (per s)", "_ms": " (ms)", "_s": " (s)", "_min": " (min)", "_gb": " (GB)"}
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"  # no spaces between words: compared by character
# A word takes the space behind it along: as words of their own the spaces, which are all alike, would take minutes.
_WORD = re.compile(rf"(?:[{_CJK}]|[^\W{_CJK}]+|[^\w\s])\s*|\s+")

Side = Literal["same", "out", "in"]


class Difference(NamedTuple):
    """One field that differs; None on a side says that it did not stand there."""

    path: tuple[str, ...]
    before: str | None
    after: str | None

    @property
    def where(self) -> str:
        """The path as one text."""
        return " › ".join(self.path)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Both texts as one, word by word."""
        return pieces(self.before or "", self.after or "")


class Piece(NamedTuple):
    """A stretch of text that stands on both sides, was taken out, or came in."""

    side: Side
    text: str


def differences(before: Any, after: Any, *, without: Iterable[str] = ()) -> tuple[Difference, ...]:
    """Every field that differs between two frozen values (or plain mappings), in the order of their fields.

    `without` are fields of the outermost value that are left aside.
    """
    left_out = frozenset(without)
    return tuple(_differing((), _without(_parts(before), left_out), _without(_parts(after), left_out)))


def field_in_words(name: str) -> str:
    """A field's name for people, with its unit."""
    if name in WORDS:
        return WORDS[name]
    unit = next((u for u in UNITS if name.endswith(u)), "")
    return name.removesuffix(unit).replace("_", " ") + UNITS.get(unit, "")


def in_text(value: Any, *, field: str = "") -> str:
    """A value as people read it: nested ones a line each, nothing stated as empty text."""
    if isinstance(value, Condition):
        return format_condition(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_number(value if value == int(value) else float(f"{value:.6g}"))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Frozen | Mapping):
        stated = ((k, in_text(v, field=k)) for k, v in _stated(value))
        return "\n".join(f"{k}: {_inside(text)}" for k, text in stated if text)
    if isinstance(value, tuple | list):
        return (" " if field in SPACED else "\n").join(in_text(v) for v in value)
    return "" if value is None else value.isoformat() if isinstance(value, date) else str(value)


def _inside(text: str) -> str:
    """A nested value below its name, set in."""
    return text if "\n" not in text else "".join(f"\n  {line}" for line in text.splitlines())


def pieces(before: str, after: str) -> tuple[Piece, ...]:
    """Two texts as one, with what was taken out and what came in; very long ones line by line."""
    a, b = _WORD.findall(before), _WORD.findall(after)
    if max(len(a), len(b)) > LONGEST_BY_WORD:
        a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[Piece] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(Piece("same", "".join(a[i:j])))
            continue
        sides: tuple[tuple[Side, list[str]], ...] = (("out", a[i:j]), ("in", b[k:m]))
        found += [Piece(side, "".join(words)) for side, words in sides if words]
    return tuple(found)


def folded(shown: Iterable[Piece], keep: int = 80) -> tuple[Piece, ...]:
    """The same pieces with long stretches that stand on both sides cut to `keep` characters beside a change."""
    listed = list(shown)
    return tuple(
        p if p.side != "same" else Piece("same", _cut(p.text, keep, first=i == 0, last=i == len(listed) - 1))
        for i, p in enumerate(listed)
    )


def _cut(text: str, keep: int, *, first: bool, last: bool) -> str:
    if len(text) <= 2 * keep + 3:
        return text
    return ("" if first else text[:keep]) + " … " + ("" if last else text[-keep:])


def _differing(path: tuple[str, ...], a: Any, b: Any, field: str = "") -> Iterator[Difference]:
    """Differences below a path; a value that one side lacks altogether is one difference, not one a field."""
    if a == b:
        return
    left, right = _parts(a), _parts(b)
    if left is None or right is None:
        before, after = in_text(a, field=field) or None, in_text(b, field=field) or None
        if before == after and isinstance(a, float) and isinstance(b, float):
            before, after = repr(a), repr(b)  # they differ beyond the digits that are shown
        if before != after:
            yield Difference(path, before, after)
        return
    if isinstance(a, tuple | list) and (moved := _order(left, right)):
        yield Difference((*path, "order"), *moved)
    for name in dict.fromkeys((*left, *right)):
        yield from _differing((*path, name.label), left.get(name), right.get(name), name.field)


def _order(left: dict[_Name, Any], right: dict[_Name, Any]) -> tuple[str, str] | None:
    """The entries that both sides have, as each side orders them; None when that is the same."""
    before, after = ([n.label for n in one if n in other] for one, other in ((left, right), (right, left)))
    return None if before == after else (", ".join(before), ", ".join(after))


class _Name(NamedTuple):
    """What a part is told apart by: its field, or its key within a list."""

    field: str
    label: str


def _parts(value: Any) -> dict[_Name, Any] | None:
    """The parts of a value that are compared one by one; None for what is compared as a whole."""
    if isinstance(value, Condition):
        return None
    if isinstance(value, Frozen):
        return {_Name(n, field_in_words(n)): getattr(value, n) for n in type(value).model_fields}
    if isinstance(value, Mapping):
        return {k if isinstance(k, _Name) else _Name("", str(k)): v for k, v in value.items()}
    if isinstance(value, tuple | list) and all(isinstance(v, Frozen) for v in value):
        if not value:
            return {}
        key = next((k for k in KEYS if all(k in type(v).model_fields for v in value)), None)
        keyed = {_Name("", in_text(getattr(v, key))): v for v in value} if key else {}
        return keyed if len(keyed) == len(value) else None
    return None


def _without(parts: dict[_Name, Any] | None, names: frozenset[str]) -> dict[_Name, Any] | None:
    return None if parts is None else {k: v for k, v in parts.items() if not names & {k.field, k.label}}


def _stated(value: Frozen | Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Fields in words that are not at their default, or entries of a mapping."""
    if isinstance(value, Mapping):
        return list(value.items())
    fields = type(value).model_fields
    return [(field_in_words(n), v) for n in fields if (v := getattr(value, n)) != fields[n].default]
