"""What to measure next in words: the rows of a list, the amount, what would follow."""

from __future__ import annotations

import pandas as pd

from planner.measure_next import Next
from ui.text import t


def next_rows(runs: tuple[Next, ...], first: int = 1) -> pd.DataFrame:
    """One row a run: what, how much, how long, the most that it could change, for what and what would follow."""
    return pd.DataFrame(
        [
            {
                t("Order"): str(i),
                t("Run"): run.what + ("" if run.in_plan else f" ({t('not in the plan yet')})"),
                t("How much"): amount_in_words(run) or "–",
                t("Could"): t(run.could),
                t("For"): ", ".join(dict.fromkeys(f"{c.id} ({t(c.state)})" for c in run.changes)),
                t("Then"): consequence(run),
            }
            for i, run in enumerate(runs, first)
        ]
    )


def consequence(run: Next) -> str:
    """What would follow from the most that a run could change; what the plan asks before what the score proposes."""
    found = [c for c in run.changes if c.could == run.could]
    asked = [c for c in found if c.kind != "proposal"] or found
    return "; ".join(dict.fromkeys(c.then.rstrip(".") for c in asked))


def amount_in_words(run: Next) -> str:
    """Starts, what is missing, and the time it takes, as far as they are known; empty where nothing is."""
    time = ""
    if run.minutes is not None and run.candidate:
        time = t("about {x:,.0f} min", x=run.minutes) if run.minutes >= 1 else t("under 1 min")
    return ", ".join(x for x in (run.amount, time) if x)
