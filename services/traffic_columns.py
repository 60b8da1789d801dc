"""Columns of a request log as numbers: a chunk at once while all is well, cell by cell to find what is wrong."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from planner.traffic import EPOCH_FROM_S
from services.traffic_layouts import LATEST_EPOCH_S, Layout, Role, unit_of

OTHER_ZONE = "rows whose time states its zone otherwise than the first row's"
OTHER_UNIT = "rows whose time counts in another unit than the first row's (milliseconds against seconds?)"
# Rows with these cannot be left out: which of the two kinds is right is for a person to say.
NOT_TO_LEAVE_OUT = frozenset({OTHER_ZONE, OTHER_UNIT})
EMPTY = ("", None)
NO_TIME = "rows without a readable time"


class BadCell(ValueError):
    """What is wrong with one cell, as words that follow a count."""


class Column(Protocol):
    """One column: `values` grow by what `many` or `one` give back."""

    values: Any

    def many(self, cells: Sequence[Any]) -> Iterable[Any]:
        """All cells as numbers; raises ValueError, TypeError or OverflowError when one is odd."""

    def one(self, cell: Any) -> Any:
        """One cell as a number; raises BadCell."""


class Tokens:
    """Whole numbers from 0 on."""

    def __init__(self) -> None:
        self.values = array("q")

    def many(self, cells: Sequence[Any]) -> array[int]:
        """Cells of a CSV are text, those of JSON numbers."""
        found = array("q", map(int, cells) if isinstance(cells[0], str) else cells)
        if min(found) < 0 or bool in set(map(type, cells)):
            raise BadCell
        return found

    def one(self, cell: Any) -> int:
        """Also accepts 12.0."""
        try:
            value = float(cell)
            if isinstance(cell, bool) or value != int(value) or value >= 2**63:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise BadCell("rows whose tokens are no whole number") from None
        if value < 0:
            raise BadCell("rows with negative tokens")
        return int(value)


class Seconds:
    """The clock: numbers since some zero, or moments in ISO 8601; the first readable cell says which.

    `zoned` is whether moments state their zone, None for numbers; `zones` counts rows by the offset that they state.
    Raises InputError when nothing tells the unit.
    """

    def __init__(self, layout: Layout, role: Role, where: str) -> None:
        self.values = array("d")
        self.zoned: bool | None = None
        self.zones: Counter[timedelta | None] = Counter()
        self._layout, self._role, self._where = layout, role, where
        self._per_second: float | None = None
        self._from, self._to = 0.0, math.inf

    def _begin(self, cells: Sequence[Any]) -> bool:
        """Learn from the first readable cell how this clock is written."""
        for cell in cells:
            number = _number(cell)
            if number is not None:
                self._per_second = unit_of(self._layout, self._role, number, self._where)
                dated = number / self._per_second >= EPOCH_FROM_S
                self._from, self._to = (EPOCH_FROM_S, LATEST_EPOCH_S) if dated else (0.0, EPOCH_FROM_S)
                return True
            moment = _moment(cell)
            if moment is not None:
                self._per_second, self.zoned = 1.0, moment.tzinfo is not None
                return True
        return False

    def many(self, cells: Sequence[Any]) -> array[float]:
        """Seconds since the clock's zero."""
        if self._per_second is None and not self._begin(cells):
            raise BadCell
        if self.zoned is not None:
            moments = list(map(datetime.fromisoformat, cells))
            if any((m.tzinfo is None) is self.zoned for m in moments):
                raise BadCell
            self.zones.update(map(datetime.utcoffset, moments))
            return array("d", map(_since_1970, moments))
        found = array("d", map(float, cells))
        if self._per_second != 1.0:
            found = array("d", (v / self._per_second for v in found))
        if not math.isfinite(math.fsum(found)) or min(found) < self._from or max(found) >= self._to:
            raise BadCell
        return found

    def one(self, cell: Any) -> float:
        """Seconds since the clock's zero."""
        if self.zoned is not None:
            moment = _moment(cell)
            if moment is None:
                raise BadCell(NO_TIME)
            if (moment.tzinfo is None) is self.zoned:
                raise BadCell(OTHER_ZONE)
            self.zones[moment.utcoffset()] += 1
            return _since_1970(moment)
        number = _number(cell)
        if number is None or number < 0 or self._per_second is None:
            raise BadCell(NO_TIME)
        if not self._from <= number / self._per_second < self._to:
            raise BadCell(OTHER_UNIT)
        return number / self._per_second


class Maybe:
    """Numbers from 0 on, scaled; NaN where a row does not say."""

    def __init__(self, what: str) -> None:
        self.values = array("d")
        self._what = what
        self.per_one = 1.0

    def many(self, cells: Sequence[Any]) -> Iterable[float]:
        """Scaled numbers; NaN for an empty cell."""
        found = array("d", (float(cell) / self.per_one if cell not in EMPTY else math.nan for cell in cells))
        if any((not v >= 0 and v == v) or v == math.inf for v in found):
            raise BadCell
        return found

    def one(self, cell: Any) -> float:
        """NaN for an empty cell."""
        if cell in EMPTY:
            return math.nan
        number = _number(cell)
        if number is None or number < 0:
            raise BadCell(f"rows whose {self._what} is no number from 0 on")
        return number / self.per_one


class MaybeSeconds(Maybe):
    """How long something took, in the unit of its column."""

    def __init__(self, layout: Layout, role: Role, where: str) -> None:
        super().__init__("time taken")
        self._asked = layout, role, where
        self._known = False

    def many(self, cells: Sequence[Any]) -> Iterable[float]:
        """Seconds; raises InputError when nothing tells the unit of the first number."""
        number = next((n for n in map(_number, cells) if n is not None), None)
        if not self._known and number is not None:
            layout, role, where = self._asked
            self.per_one, self._known = unit_of(layout, role, number, where), True
        return super().many(cells)


class MaybeMoment(Seconds):
    """A clock that may be empty in some rows."""

    def many(self, cells: Sequence[Any]) -> array[float]:
        """NaN for an empty cell."""
        if self._per_second is None:
            self._begin(cells)
        return array("d", map(self.one, cells))

    def one(self, cell: Any) -> float:
        """NaN for an empty cell."""
        return math.nan if cell in EMPTY else super().one(cell)


class Names:
    """Ids as numbers in the order in which they come, so that none of them is kept; -1 for none."""

    def __init__(self) -> None:
        self.values = array("q")
        self._numbers: dict[str, int] = {}

    def many(self, cells: Sequence[Any]) -> Iterable[int]:
        """A number each."""
        numbers = self._numbers
        return [-1 if cell in EMPTY else numbers.setdefault(str(cell), len(numbers)) for cell in cells]

    def one(self, cell: Any) -> int:
        """The number of an id."""
        return -1 if cell in EMPTY else self._numbers.setdefault(str(cell), len(self._numbers))


class Blocks:
    """Lists of hashes, whole numbers."""

    def __init__(self) -> None:
        self.values: list[array[int]] = []

    def many(self, cells: Sequence[Any]) -> Iterable[array[int]]:
        """One array a row."""
        return [array("q", cell) for cell in cells]

    def one(self, cell: Any) -> array[int]:
        """No list is an empty one."""
        try:
            return array("q", cell if cell is not None else ())
        except (TypeError, ValueError, OverflowError):
            raise BadCell("rows whose block hashes are no whole numbers") from None


def _number(cell: Any) -> float | None:
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and not isinstance(cell, bool) else None


def _moment(cell: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(cell.strip())
    except (AttributeError, TypeError, ValueError):
        return None


def _since_1970(moment: datetime) -> float:
    """A moment without a zone is read as UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def column(layout: Layout, role: Role, where: str) -> Column:
    """The reader of a role's cells."""
    match role:
        case "input" | "output":
            return Tokens()
        case "time":
            return Seconds(layout, role, where)
        case "end":
            return MaybeMoment(layout, role, where)
        case "took":
            return MaybeSeconds(layout, role, where)
        case "session" | "prefix":
            return Names()
        case "blocks":
            return Blocks()
        case "prefix_tokens" | "cached":
            return Maybe(role)
