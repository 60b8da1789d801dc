"""Speed per user, total output and time to first token against requests in flight, as charts."""

from __future__ import annotations

import pandas as pd

from planner.requirements import Requirements
from ui.charts import Picture, against_concurrency
from ui.text import t


def speed_picture(r: Requirements, users: pd.DataFrame) -> Picture:
    """Speed per user against requests in flight; `users` are those rows of a speed frame."""
    chart = against_concurrency(
        users, y="value", y_title=t("tok/s per user (p5)"), required=r.user_tok_s_promise,
        required_label=t("promised {x:g} tok/s", x=r.user_tok_s_promise), series="series", log=True,
    )  # fmt: skip
    return Picture(chart, t("Speed per user against requests in flight, with the promised speed"))


def output_picture(r: Requirements, total: pd.DataFrame) -> Picture:
    """Total output against requests in flight; `total` are those rows of a speed frame."""
    needed = r.peak_users_max * r.user_tok_s_target
    chart = against_concurrency(
        total, y="value", y_title=t("tok/s in total"), required=needed,
        required_label=t("needed {x:,.0f} tok/s", x=needed), series="series", log=True,
    )  # fmt: skip
    return Picture(chart, t("Total output against requests in flight, with what is needed"))


def first_token_picture(r: Requirements, shown: pd.DataFrame, among: pd.DataFrame) -> Picture:
    """TTFT percentiles of one candidate against requests in flight; `among` are those of all candidates."""
    chart = against_concurrency(
        shown, y="value", y_title=t("TTFT (ms)"), required=r.ttft_s * 1000,
        required_label=t("within {x:g} s at p{p}", x=r.ttft_s, p=r.ttft_percentile), series="series", log=True,
        among=among,
    )  # fmt: skip
    return Picture(chart, t("TTFT percentiles against requests in flight, with the required time"))
