"""What a quality set gave: each item's answer and whether it passed, and how two bundles differ on the same items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from planner.errors import BundleError
from planner.frozen import Frozen
from planner.statistics import mcnemar_exact


class Judged(Frozen):
    """One item: its id, the sort of expectation, whether the answer met it, and the answer or the failure's text."""

    id: str
    expects: str
    passed: bool
    answer: str


class QualityDifference(NamedTuple):
    """Two bundles on the items that both answered: how many passed on each side, and on one side only."""

    items: int
    passed: tuple[int, int]
    only: tuple[int, int]
    p_value: float


def write_quality(path: Path, judged: Sequence[Judged]) -> None:
    """Write the judged items as JSON."""
    path.write_text(json.dumps([j.model_dump() for j in judged], indent=1, ensure_ascii=False), encoding="utf-8")


def read_quality(path: Path) -> tuple[Judged, ...]:
    """Read judged items; raises BundleError when the file is missing or malformed."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Judged.model_validate(row) for row in rows)
    except FileNotFoundError:
        raise BundleError("the file is missing.", where=str(path), fix="Copy the bundle again, whole.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, TypeError, ValidationError):
        raise BundleError("is not a list of judged items.", where=str(path)) from None


def difference(left: Sequence[Judged], right: Sequence[Judged]) -> QualityDifference:
    """Pair two runs of the same set by item; the p-value is McNemar's exact one.

    With repeats, the first answer of each item counts.
    """
    sides = []
    for judged in (left, right):
        first: dict[str, bool] = {}
        for j in judged:
            first.setdefault(j.id, j.passed)
        sides.append(first)
    a, b = sides
    both = sorted(a.keys() & b.keys())
    only = (sum(a[i] and not b[i] for i in both), sum(b[i] and not a[i] for i in both))
    passed = (sum(a[i] for i in both), sum(b[i] for i in both))
    return QualityDifference(len(both), passed, only, mcnemar_exact(*only))
