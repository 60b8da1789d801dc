"""What a quality set gave: each item's answer and whether it passed, and how two bundles differ on the same items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from planner.errors import BundleError
from planner.frozen import Frozen
from planner.paired import Paired, first_answers, pair


class Judged(Frozen):
    """One item: its id, the sort of expectation, whether the answer met it, and the answer or the failure's text."""

    id: str
    expects: str
    passed: bool
    answer: str


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


def difference(left: Sequence[Judged], right: Sequence[Judged]) -> Paired:
    """Pair two runs of the same set by item; with repeats, the first answer of each item counts."""
    return pair(first_answers(items_of(left)), first_answers(items_of(right)))


def items_of(judged: Iterable[Judged]) -> tuple[tuple[str, bool], ...]:
    """Each item's id and whether its answer passed, in the order in which they were judged."""
    return tuple((j.id, j.passed) for j in judged)
