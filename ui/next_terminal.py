"""What to measure next in a terminal, and the same as JSON."""

from __future__ import annotations

from typing import Any

from planner.measure_next import Next
from ui.next_words import amount_in_words
from ui.terminal import say, table


def print_next(runs: tuple[Next, ...]) -> None:
    """The runs in their order, or that nothing is left to measure."""
    if not runs:
        say("Nothing that could be measured would change the decision.")
        return
    rows = [
        (str(i), r.what + ("" if r.in_plan else " (not in the plan yet)"), amount_in_words(r), r.could,
         ", ".join(f"{c.id} ({c.state})" for c in r.changes))
        for i, r in enumerate(runs, 1)
    ]  # fmt: skip
    table("Measure next", ("order", "run", "how much", "could", "for"), rows)


def next_json(runs: tuple[Next, ...]) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "candidate": r.candidate, "load_point": r.point, "starts": r.starts,
            "more": r.more.model_dump() if r.more else None, "minutes": r.minutes, "could": r.could,
            "in_plan": r.in_plan, "changes": [c._asdict() for c in r.changes],
        }
        for r in runs
    ]  # fmt: skip
