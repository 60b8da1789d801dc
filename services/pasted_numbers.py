"""Numbers as people write them in a sheet: decimal points and commas, thousands, k and M, a unit behind."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

from planner.errors import InputError

Mark = Literal["point", "comma"]
EMPTY = frozenset({"", "-", "–", "—", "n/a", "na", "nan", "null", "none", "not measured", "未測定", "なし"})
YES_NO = {"true": 1.0, "yes": 1.0, "ok": 1.0, "はい": 1.0, "○": 1.0, "false": 0.0, "no": 0.0, "failed": 0.0,
          "いいえ": 0.0, "×": 0.0}  # fmt: skip
# As written -> the unit that planner/metrics.py knows, and how many of those one of these is.
UNIT_WORDS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "ミリ秒"), ("ms", 1.0)),
    **dict.fromkeys(("us", "μs", "microseconds", "マイクロ秒"), ("ms", 0.001)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), ("s", 1.0)),
    **dict.fromkeys(("min", "minutes", "分"), ("min", 1.0)),
    **dict.fromkeys(("tok/s", "tok/sec", "token/s", "tokens/s", "tokens/sec", "tokens/second", "t/s", "tps",
                     "トークン/秒"), ("tok/s", 1.0)),
    **dict.fromkeys(("req/s", "reqs/s", "requests/s", "requests/sec", "rps", "qps", "リクエスト/秒"), ("req/s", 1.0)),
    **dict.fromkeys(("req/min", "requests/min", "rpm", "リクエスト/分"), ("req/min", 1.0)),
    **dict.fromkeys(("%", "percent", "パーセント"), ("%", 1.0)),
    **dict.fromkeys(("tokens", "token", "tok", "トークン"), ("tokens", 1.0)),
    **dict.fromkeys(("requests", "req", "count", "件", "回", "並列", "users"), ("count", 1.0)),
    "share": ("share", 1.0), "x": ("x", 1.0), "倍": ("x", 1.0),
}  # fmt: skip
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}(?:[{thousands} ']\d{{3}})+(?:{decimal}\d+)?"
    bare = rf"\d+(?:{decimal}\d+)?|{decimal}\d+"
    return re.compile(rf"([+-]?)({grouped}|{bare})([eE][+-]?\d+)?\s*([kKM](?![A-Za-z])|[kM](?=tok|req)|)\s*(\D.*)?")


_WRITTEN: dict[Mark, tuple[re.Pattern[str], str, str]] = {
    "point": (_pattern(r"\.", ","), ".", ","),
    "comma": (_pattern(",", r"\."), ",", "."),
}


class Number(NamedTuple):
    """A value and the unit that stands behind it, empty when none does."""

    value: float
    unit: str


def tidy(cell: str) -> str:
    """A cell in one way of writing: full-width forms, odd blanks and minus signs as plain ones."""
    return unicodedata.normalize("NFKC", cell).replace("−", "-").replace("µ", "μ").strip()


def number(cell: str, mark: Mark) -> Number | None:
    """The number in a cell with this decimal mark; None when there is none, also for a unit that nobody knows."""
    pattern, decimal, thousands = _WRITTEN[mark]
    found = pattern.fullmatch(tidy(cell))
    if found is None:
        return None
    sign, digits, power, prefix, behind = found.groups()
    word = (behind or "").strip().lower()
    if word and word not in UNIT_WORDS:
        return None
    unit, factor = UNIT_WORDS.get(word, ("", 1.0))
    bare = re.sub(rf"[{re.escape(thousands)} ']", "", digits).replace(decimal, ".")
    return Number(float(f"{float(sign + bare + (power or '')) * _PREFIX[prefix] * factor:.15g}"), unit)


def decimal_mark(cells: Iterable[tuple[str, str]]) -> Mark:
    """How a sheet writes decimals, told by the cells that can be read in one way only; cells come with their place.

    Raises InputError when two cells tell different marks, or when a cell can be read in two ways and none tells.
    """
    tells: dict[Mark, tuple[str, str]] = {}
    open_question = None
    for place, cell in cells:
        point, comma = number(cell, "point"), number(cell, "comma")
        if point and not comma:
            tells.setdefault("point", (place, cell))
        elif comma and not point:
            tells.setdefault("comma", (place, cell))
        elif point and comma and point.value != comma.value and open_question is None:
            open_question = place, cell, point.value, comma.value
    if len(tells) == 2:
        (here, a), (there, b) = tells["point"], tells["comma"]
        raise InputError(f"{a!r} ({here}) and {b!r} ({there}) write decimals in two ways.", where="table",
                         fix="State the decimal mark, or write them in one way.")  # fmt: skip
    if tells:
        return next(iter(tells))
    if open_question:
        place, cell, a_value, b_value = open_question
        raise InputError(f"{cell!r} can be {a_value:g} or {b_value:g}, and no other cell tells.", where=place,
                         fix="State the decimal mark, point or comma.")  # fmt: skip
    return "point"


def moment(cell: str) -> tuple[datetime, bool | None] | None:
    """A day or time in ISO 8601, also with slashes, and whether it states its zone (None: a day has none).

    What states no zone is read as UTC; None for what is no such time.
    """
    text = re.sub(r"^(\d{4})/(\d{1,2})/(\d{1,2})", lambda m: f"{m[1]}-{m[2]:0>2}-{m[3]:0>2}", tidy(cell))
    try:
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC), None
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = at.tzinfo is not None
    return (at if zoned else at.replace(tzinfo=UTC)), zoned
