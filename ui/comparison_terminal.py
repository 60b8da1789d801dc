"""The comparison in a terminal: every two candidates of a case, figure by figure; the same as JSON."""

from __future__ import annotations

from typing import Any

from services.comparison import Compared
from ui.terminal import say, table

COMPARE_EXAMPLE = "compare --case two-cores --json"


def print_comparison(compared: Compared) -> None:
    """What the contracts allow, a table of outcomes, and what could explain the differences."""
    state = compared.parity.state if compared.parity else "refused: a side states no contract"
    say(f"{compared.left} against {compared.right}: {state}")
    for moved in compared.parity.differences if compared.parity else ():
        say(f"  {moved}")
    rows = [(f"{row.metric} {row.statistic}", row.load_point, row.outcome, row.sentence) for row in compared.rows]
    table(f"{compared.left} against {compared.right}", ("figure", "load point", "left is", "sentence"), rows)
    for sentence in dict.fromkeys(row.explanation for row in compared.rows if row.explanation):
        say(sentence)


def comparison_json(compared: Compared) -> dict[str, Any]:
    """The same as data."""
    parity = compared.parity
    return {
        "left": compared.left, "right": compared.right, "parity": parity.state if parity else None,
        "differences": [str(m) for m in parity.differences] if parity else [],
        "figures": [
            {"sentence": r.sentence, "higher": r.higher, "better": r.better, **r.model_dump(mode="json")}
            for r in compared.rows
        ],
    }  # fmt: skip
