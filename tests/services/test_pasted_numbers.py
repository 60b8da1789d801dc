"""Numbers as people write them: points, commas, thousands, k, a unit behind; what can be two numbers is asked about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from services.pasted_numbers import Number, decimal_mark, moment, number


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("1,234.5", 1234.5, None), ("1.234,5", None, 1234.5), ("12.5", 12.5, None), ("12,5", None, 12.5),
        ("1,234", 1234, 1.234), ("1.234", 1.234, 1234), ("0.123", 0.123, None), ("1234.567", 1234.567, None),
        ("1,234,567", 1234567, None), ("1 234,5", None, 1234.5), ("1'234.5", 1234.5, None), ("-3", -3, -3),
        ("－３", -3, -3), ("１２．５", 12.5, None), ("1e3", 1000, 1000), (".5", 0.5, None), ("12 34", None, None),
        ("fast", None, None), ("3 ± 1", None, None), ("73 (70-78)", None, None), ("", None, None), ("k", None, None),
    ],
)  # fmt: skip
def test_a_number_by_each_decimal_mark(cell, point, comma):
    read = [None if n is None else n.value for n in (number(cell, "point"), number(cell, "comma"))]
    assert read == [point, comma]


@pytest.mark.parametrize(
    ("cell", "value", "unit"),
    [
        ("320 ms", 320, "ms"), ("0.32s", 0.32, "s"), ("95%", 95, "%"), ("９５％", 95, "%"), ("1.2k", 1200, ""),
        ("12k tok/s", 12000, "tok/s"), ("2.5 ktok/s", 2500, "tok/s"), ("3 ミリ秒", 3, "ms"), ("0.5秒", 0.5, "s"),
        ("800 µs", 0.8, "ms"), ("16並列", 16, "count"), ("4K tokens", 4000, "tokens"), ("3 m", None, None),
        ("12 furlongs", None, None),
    ],
)  # fmt: skip
def test_a_unit_behind_a_number(cell, value, unit):
    assert number(cell, "point") == (None if value is None else Number(value, unit))


@given(st.floats(min_value=0, max_value=1e9), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_what_is_read(value, digits):
    written = f"{value:,.{digits}f}"
    turned = written.translate(str.maketrans(",.", ".,"))
    expected = float(written.replace(",", ""))
    assert number(written, "point") == Number(expected, "")
    assert number(turned, "comma") == Number(expected, "")


def cells(*texts):
    return [(f"row {i}", text) for i, text in enumerate(texts, 2)]


def test_one_clear_cell_tells_how_the_sheet_writes_decimals():
    assert decimal_mark(cells("1,234", "12.5")) == "point"
    assert decimal_mark(cells("1.234", "12,5")) == "comma"
    assert decimal_mark(cells("12", "350")) == "point"  # nothing to tell apart


@pytest.mark.parametrize(("cell", "values"), [("1,234", "1234 or 1.234"), ("1.234 ms", "1.234 or 1234")])
def test_a_cell_that_can_be_two_numbers_is_named(cell, values):
    with pytest.raises(InputError, match=rf"row 3: '{cell}' can be {values}, and no other cell tells"):
        decimal_mark(cells("12", cell))


def test_two_ways_in_one_sheet_are_named():
    with pytest.raises(InputError, match=r"'12.5' \(row 2\) and '12,5' \(row 3\) write decimals in two ways"):
        decimal_mark(cells("12.5", "12,5"))


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ("2026-11-29", (datetime(2026, 11, 29, tzinfo=UTC), None)),
        ("2026/11/9", (datetime(2026, 11, 9, tzinfo=UTC), None)),
        ("2026-11-29T10:00+09:00", (datetime(2026, 11, 29, 1, tzinfo=UTC), True)),
        ("2026-11-29 10:00", (datetime(2026, 11, 29, 10, tzinfo=UTC), False)),
        ("11/29/2026", None),
        ("29.11.2026", None),
    ],
)
def test_a_day_or_time_and_whether_it_states_its_zone(cell, read):
    assert moment(cell) == read
