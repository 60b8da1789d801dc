"""What a chart of one repeat shows: its requests in time, its gaps, the ones to look at, the server beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bundle.manifest import Repeat
from db.runs import Run
from services.run_columns import LOAD, requests, server_metrics, token_gaps
from services.workspace import Workspace

OUTLIERS = 10  # slowest first tokens and longest gaps that are named, each
BARS = 120  # requests in a waterfall
DOTS = 1_000  # gaps in a chart
STRETCHES = 400  # points of a server metric's line
# Reasons why a request is looked at; the first that fits comes first.
FAILED, CUT_OFF, SLOW, STALLED = "failed", "cut off", "slow first token", "long gap"
# From, to: the two moments that each part of a request lies between.
PHASES = {
    "waits in the client": ("scheduled_s", "dispatched_s"), "to the first token": ("dispatched_s", "first_token_s"),
    "tokens": ("first_token_s", "last_token_s"), "no answer": ("dispatched_s", "end_s"),
}  # fmt: skip
# What a server may say of itself: title, names in the telemetry, unit, and what a value is divided by.
SERVER = (
    ("Requests running and waiting", ("running", "waiting"), "requests", 1.0),
    ("KV cache in use", ("kv_use",), "share", 1.0),
    ("Preemptions", ("preemptions",), "since the start", 1.0),
    ("Memory", ("gpu_memory_used_bytes", "rss_bytes"), "GB", 1e9),
    ("GPU power", ("gpu_power_w",), "W", 1.0),
)  # fmt: skip


class Thinned(NamedTuple):
    """Rows that are shown, and out of how many; `every` is which of the unremarkable ones stand for the others."""

    frame: pd.DataFrame
    total: int
    every: int


class Gaps(NamedTuple):
    """Gaps between tokens in time, when an aggressor was on the server, and how many gaps are upper bounds only."""

    shown: Thinned
    aggressor: tuple[float, float] | None
    left_out: int


class RepeatDetails(NamedTuple):
    """One repeat as it is shown. `requests` are those that the point counts, each with its `why`, "" for most."""

    requests: pd.DataFrame
    waterfall: Thinned
    gaps: Gaps
    server: pd.DataFrame


def details(ws: Workspace, run: Run, repeat: Repeat) -> RepeatDetails:
    """Read one repeat; raises BundleError when its file is gone or altered."""
    everything = requests(ws, run, repeat)
    found, left_out = token_gaps(ws, run, repeat)
    counted = with_reasons(with_longest_gap(everything[everything.cohort.isin(LOAD)], found))
    answered = found[found.outcome == "ok"]
    longest = answered.gap_ms.rank(ascending=False, method="first") <= DOTS // 10
    return RepeatDetails(
        counted, thin(counted, counted.why != "", BARS),
        Gaps(thin(answered, longest, DOTS), aggressor_interval(everything), left_out), server_metrics(ws, run, repeat),
    )  # fmt: skip


def with_longest_gap(frame: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """The requests with their longest gap between tokens: longest_gap_ms, and longest_gap_at_s when it ended."""
    first = gaps.sort_values(["gap_ms", "end_s"], ascending=[False, True]).drop_duplicates("request")
    longest = first.rename(columns={"gap_ms": "longest_gap_ms", "end_s": "longest_gap_at_s"})
    return frame.merge(longest.drop(columns="outcome"), on="request", how="left")


def with_reasons(frame: pd.DataFrame) -> pd.DataFrame:
    """The requests with why each is worth a look: it failed, was cut off, or is among the slowest or longest."""
    n = len(frame)
    tests = (
        (FAILED, frame.outcome == "failed"),
        (CUT_OFF, frame.outcome == "undetermined"),
        (SLOW, frame.ttft_ms.rank(ascending=False, method="first") <= min(OUTLIERS, n // 10)),
        (STALLED, frame.longest_gap_ms.rank(ascending=False, method="first") <= min(OUTLIERS, n // 10)),
    )
    why = np.full(n, "", dtype=object)
    for reason, mask in tests:
        why = np.where(mask, np.where(why == "", reason, why + ", " + reason), why)
    return frame.assign(why=why)


def outliers(frame: pd.DataFrame) -> pd.DataFrame:
    """The requests that are worth a look: failed ones first, then the slowest first token."""
    chosen = frame[frame.why != ""]
    failed = chosen.outcome.map({"failed": 0, "undetermined": 1}).fillna(2)
    order = chosen.assign(_place=failed).sort_values(["_place", "ttft_ms"], ascending=[True, False], kind="stable")
    return order.drop(columns="_place").reset_index(drop=True)


def thin(frame: pd.DataFrame, keep: pd.Series, most: int) -> Thinned:
    """Keep what is remarkable and every k-th of the rest, in order, so that about `most` rows stay.

    Remarkable rows beyond three quarters of the room are thinned by the same rule: else they alone would fill it.
    """
    places = np.arange(len(frame))
    marked, rest = places[keep.to_numpy(bool)], places[~keep.to_numpy(bool)]
    if len(frame) <= most:
        return Thinned(frame, len(frame), 1)
    if len(marked) > most * 3 // 4:
        marked = marked[:: -(-len(marked) // (most * 3 // 4))]
    every = -(-len(rest) // max(1, most - len(marked))) if len(rest) else 1
    chosen = np.sort(np.concatenate([marked, rest[::every]]))
    return Thinned(frame.iloc[chosen], len(frame), every)


def phases(frame: pd.DataFrame) -> pd.DataFrame:
    """The bars of a waterfall: request, row (its place), phase, from_s, to_s, why; what did not happen has no bar."""
    placed = frame.assign(row=np.arange(1, len(frame) + 1))
    parts = []
    for phase, (begin, end) in PHASES.items():
        silent = placed.first_token_s.isna()
        here = placed[silent if phase == "no answer" else ~(silent & (begin == "first_token_s"))]
        bars = pd.DataFrame({
            "request": here.request, "row": here.row, "phase": phase, "from_s": here[begin], "to_s": here[end],
            "why": here.why,
        })  # fmt: skip
        parts.append(bars[bars.from_s.notna() & bars.to_s.notna()])
    return pd.concat(parts, ignore_index=True)


def aggressor_interval(frame: pd.DataFrame) -> tuple[float, float] | None:
    """From the first dispatch to the last end of an aggressor, as itl_disturbed_ms counts it; None where none was."""
    sent = frame[(frame.cohort == "aggressor") & frame.dispatched_s.notna()]
    if sent.empty:
        return None
    end = float("inf") if sent.end_s.isna().any() else float(sent.end_s.max())
    return float(sent.dispatched_s.min()), min(end, float(frame.end_s.max()))


def metric_lines(server: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Some server metrics in time, thinned to what a chart can show: the highest value of each stretch of time."""
    frame = server[server.name.isin(names)]
    if frame.empty:
        return frame
    width = max(frame.t_s.max() - frame.t_s.min(), 1e-9) / STRETCHES
    stretch = ((frame.t_s - frame.t_s.min()) // width).astype(int)
    groups = frame.assign(stretch=stretch).groupby(["name", "stretch"], as_index=False)
    return groups.agg(t_s=("t_s", "first"), value=("value", "max"))
