"""Amounts that a person types: 4k tokens, 24 GiB, 3.35 TB/s. A unit of another size is refused, never converted."""

from __future__ import annotations

import math
import re

from planner.errors import InputError

# What one unit is worth in the smallest of its kind; only units of one row can be taken for each other.
_SIZES: tuple[dict[str, float], ...] = (
    {"MB": 1e6, "MiB": 2**20, "GB": 1e9, "GiB": 2**30, "TB": 1e12, "TiB": 2**40},
    {"MB/s": 1e6, "GB/s": 1e9, "GiB/s": 2**30, "TB/s": 1e12, "Gbit/s": 1e9 / 8},
    {"GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15},
    {"W": 1.0, "kW": 1000.0},
    {"tok/s": 1.0},
)
_AMOUNT = re.compile(r"\s*([-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?)\s*([A-Za-z%/]*)\s*", re.IGNORECASE)
_THOUSANDS = {"k": 1024, "m": 1024**2}


def amount(text: str, unit: str, where: str) -> float:
    """A number in `unit`, with or without the unit behind it.

    Raises InputError for what is no number, and for a unit of another size, with the number that would be right.
    """
    number, suffix = _split(text, where, f"Write a number in {unit}.")
    kind = next(row for row in _SIZES if unit in row)
    spelled = {name.lower(): name for name in kind}
    if not suffix or suffix.lower() == unit.lower():
        return number
    if suffix.lower() not in spelled:
        raise InputError(f"{suffix!r} is no unit that is known here.", where=where, fix=f"Write a number in {unit}.")
    stated = spelled[suffix.lower()]
    right = number * kind[stated] / kind[unit]
    fix = f"Write {right:.6g} {unit}."
    raise InputError(f"{number:g} {stated} given where {unit} are asked.", where=where, fix=fix)


def tokens(text: str, where: str) -> int:
    """A whole number of tokens; `8k` is 8,192, as models count their context. Raises InputError."""
    number, suffix = _split(text, where, "Write whole tokens, as in 4096 or 8k.")
    if suffix and suffix.lower() not in _THOUSANDS:
        raise InputError(f"{suffix!r} is no unit of tokens.", where=where, fix="Write whole tokens, as in 4096 or 8k.")
    return whole(number * _THOUSANDS.get(suffix.lower(), 1), where)


def count(text: str, where: str) -> int:
    """A whole number. Raises InputError."""
    number, suffix = _split(text, where, "Write a whole number.")
    if suffix:
        raise InputError(f"{text!r} is not a whole number.", where=where, fix="Write a whole number.")
    return whole(number, where)


def number(text: str, where: str) -> float:
    """A plain number. Raises InputError."""
    found, suffix = _split(text, where, "Write a number.")
    if suffix:
        raise InputError(f"{text!r} is not a number.", where=where, fix="Write a number without a unit.")
    return found


def share(text: str, where: str) -> float:
    """A share from 0 to 1, written as 0.7 or 70%. Raises InputError."""
    found, suffix = _split(text, where, "Write a share, as in 0.7 or 70%.")
    if suffix not in ("", "%"):
        raise InputError(f"{text!r} is no share.", where=where, fix="Write a share, as in 0.7 or 70%.")
    if not suffix and 1 < found <= 100:
        raise InputError(f"{found:g} is above 1.", where=where, fix=f"Write {found:g}% or {found / 100:g}.")
    return found / 100 if suffix else found


def whole(number: float, where: str) -> int:
    """A number that must be whole. Raises InputError."""
    if number != math.floor(number):
        raise InputError(f"{number:g} is not a whole number.", where=where, fix="Write a whole number.")
    return int(number)


def _split(text: str, where: str, fix: str) -> tuple[float, str]:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} is not a number.", where=where, fix=fix)
    number = float(found[1].replace(",", ""))
    if not math.isfinite(number):
        raise InputError(f"{text!r} is too large.", where=where, fix=fix)
    return number, found[2]
