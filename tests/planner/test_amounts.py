"""What a person types as an amount: one unit is never silently taken for another."""

import pytest

from planner.amounts import amount, count, tokens
from planner.errors import InputError


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("24", "GB", 24),
        ("24 GB", "GB", 24),
        ("24gb", "GB", 24),
        ("3,350", "GB/s", 3350),
        ("1e3 tflops", "TFLOPS", 1000),
    ],
)
def test_a_number_with_or_without_its_unit(text: str, unit: str, value: float) -> None:
    assert amount(text, unit, "memory") == value


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("24 GiB", "GB", "24 GiB given where GB are asked. Write 25.7698 GB."),  # 24 x 2^30 / 10^9
        ("24GB", "GiB", "24 GB given where GiB are asked. Write 22.3517 GiB."),
        ("24564MiB", "GiB", "Write 23.9883 GiB."),  # / 1,024
        ("3.35TB/s", "GB/s", "Write 3350 GB/s."),
        ("2184 Gbit/s", "GB/s", "Write 273 GB/s."),
        ("1 PFLOPS", "TFLOPS", "Write 1000 TFLOPS."),
        ("24 apples", "GB", "'apples' is no unit that is known here."),
        ("much", "GB", "'much' is not a number."),
        ("", "GB", "is not a number."),
        ("1e999", "GB", "is too large."),
    ],
)
def test_another_unit_is_refused_with_the_number_that_would_be_right(text: str, unit: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        amount(text, unit, "memory")
    assert says in str(refused.value)
    assert str(refused.value).startswith("memory: ")


def test_tokens_are_whole_and_k_is_1024() -> None:
    assert [tokens(x, "context") for x in ("4096", "4,096", "4k", "1M")] == [4096, 4096, 4096, 1_048_576]
    for wrong in ("4.0001k", "4 words", "four"):
        with pytest.raises(InputError, match="context"):
            tokens(wrong, "context")


def test_counts_have_no_unit() -> None:
    assert count("50", "users") == 50
    for wrong in ("5k", "1.5", "x"):
        with pytest.raises(InputError, match="Write a whole number"):
            count(wrong, "users")
