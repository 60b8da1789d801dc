"""Quantities read as people write them."""

import pytest

from planner.units import format_duration, format_gb, format_gib, format_tok_s


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0125, "12 ms"),
        (0.0042, "4.2 ms"),
        (42.37, "42.4 s"),  # the case's batched completion
        (311.6, "5 min 12 s"),  # and its sequential one
        (59.97, "1 min 00 s"),
        (3599.9, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (900, "15 min"),  # a limit that somebody stated: nothing is left over
        (28_800.0, "8 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_gb_is_decimal_and_gib_is_binary() -> None:
    assert format_gb(23_132_659_200) == "23.1 GB"
    assert format_gb(402_653_184) == "0.403 GB"
    assert format_gib(121.69 * 2**30) == "121.69 GiB"


@pytest.mark.parametrize(
    ("rate", "text"),
    [(590.08, "590 tok/s"), (1250, "1,250 tok/s"), (11.8, "12 tok/s"), (4.42, "4.4 tok/s")],
)
def test_rates_have_sensible_digits(rate: float, text: str) -> None:
    assert format_tok_s(rate) == text
