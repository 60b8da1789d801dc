"""Where the words of a required value stand: at the right end above the line unless lines of data pass there."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.limit_lines import PLACES, Place, clear_place, limit_line


def lines(**series: list[float]) -> pd.DataFrame:
    """Values of each series at 1, 2, 4 and 8 in flight."""
    return pd.DataFrame(
        [{"batch": 2**i, "series": name, "value": v} for name, vs in series.items() for i, v in enumerate(vs)]
    )


@pytest.mark.parametrize(
    ("required", "drawn", "place"),
    [
        (50.0, lines(a=[400, 300, 250, 200]), Place(right=True, above=True)),  # all of it far above
        (50.0, lines(a=[10, 20, 40, 60], b=[900, 900, 900, 900]), Place(right=False, above=True)),  # it ends there
        (50.0, lines(a=[80, 80, 80, 80], b=[900, 900, 900, 900]), Place(right=True, above=False)),  # just above it
    ],
)
def test_words_stand_where_no_line_passes(required: float, drawn: pd.DataFrame, place: Place) -> None:
    assert clear_place(required, "needed 50 tok/s", drawn, "batch", "value", "series", log_x=True) == place


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6), st.floats(1e-3, 1e6), st.booleans(), st.text(max_size=40))
def test_any_data_has_a_place(values: list[float], required: float, log: bool, label: str) -> None:
    assert clear_place(required, label, lines(a=values), "batch", "value", "series", log_x=True, log_y=log) in PLACES


def test_the_words_are_drawn_at_that_end() -> None:
    words = [limit_line(1.0, "x", place).to_dict()["layer"][1] for place in PLACES]
    assert [w["mark"]["align"] for w in words] == ["right", "left", "right", "left"]
    assert [w["mark"]["baseline"] for w in words] == ["bottom", "bottom", "top", "top"]
