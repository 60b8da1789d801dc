"""What to measure next, as a list: on the Results page whole, on the Overview its head."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.measure_next import Next
from ui.parts import plain
from ui.text import t

SHOWN = 5


def measure_next_section(runs: tuple[Next, ...]) -> None:
    """The first runs as a table, the rest on request; says so where everything is settled."""
    st.subheader(t("Measure next"))
    if not runs:
        st.markdown(t("Nothing that could be measured would change the decision."))
        return
    st.table(next_frame(runs[:SHOWN]), border="horizontal")
    if rest := runs[SHOWN:]:
        with st.expander(t("{n} more", n=len(rest)), icon=":material/more_horiz:"):
            st.table(next_frame(rest, first=SHOWN + 1), border="horizontal")


def next_frame(runs: tuple[Next, ...], first: int = 1) -> pd.DataFrame:
    """The runs as Markdown shows them literally."""
    return next_rows(runs, first).map(plain).set_index(t("Order"))


def next_rows(runs: tuple[Next, ...], first: int = 1) -> pd.DataFrame:
    """One row a run: what, how much, how long, the most that it could change, for what and what would follow."""
    return pd.DataFrame(
        [
            {
                t("Order"): str(i),
                t("Run"): run.what + ("" if run.in_plan else f" ({t('not in the plan yet')})"),
                t("How much"): amount_in_words(run) or "–",
                t("Could"): t(run.could),
                t("For"): ", ".join(f"{c.id} ({t(c.state)})" for c in run.changes),
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
