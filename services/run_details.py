"""What a chart of one repeat shows: its requests in time, its gaps, the ones to look at, the server beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bundle.manifest import Repeat
from db.runs import Run
from services.run_columns import LOAD, requests, token_gaps
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


class RequestDetails(NamedTuple):
    """The requests of one repeat that the point counts, each with its `why`, "" for most, and those that are drawn."""

    requests: pd.DataFrame
    waterfall: Thinned


def request_details(ws: Workspace, run: Run, repeat: Repeat) -> RequestDetails:
    """Read the requests of one repeat; raises BundleError when its file is gone or altered."""
    everything = requests(ws, run, repeat)
    found, _ = token_gaps(ws, run, repeat)
    counted = with_reasons(with_longest_gap(everything[everything.cohort.isin(LOAD)], found))
    return RequestDetails(counted, thin(counted, counted.why != "", BARS))


def gap_details(ws: Workspace, run: Run, repeat: Repeat) -> Gaps:
    """Read the gaps between tokens of one repeat; raises BundleError when its file is gone or altered."""
    found, left_out = token_gaps(ws, run, repeat)
    answered = found[found.outcome == "ok"].sort_values("end_s", ignore_index=True)
    longest = answered.gap_ms.rank(ascending=False, method="first") <= DOTS // 10
    return Gaps(thin(answered, longest, DOTS), aggressor_interval(requests(ws, run, repeat)), left_out)


def with_longest_gap(frame: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """The requests with their longest gap between tokens: longest_gap_ms, and longest_gap_at_s when it ended.

    `gaps` are those of token_gaps: of two that are as long the earlier one counts.
    """
    first = gaps.loc[gaps.groupby("request", sort=False).gap_ms.idxmax()].set_index("request")
    return frame.assign(longest_gap_ms=frame.request.map(first.gap_ms), longest_gap_at_s=frame.request.map(first.end_s))


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
    column = {name: frame[name].to_numpy() for name in ("request", "why")}
    column |= {name: frame[name].to_numpy(float) for moments in PHASES.values() for name in moments}
    silent = np.isnan(column["first_token_s"])
    has = {
        phase: np.flatnonzero((silent | (phase != "no answer")) & ~np.isnan(column[begin]) & ~np.isnan(column[end]))
        for phase, (begin, end) in PHASES.items()
    }
    places = np.concatenate(list(has.values()))
    return pd.DataFrame({
        "request": column["request"][places], "row": places + 1,
        "phase": np.repeat(list(has), [len(at) for at in has.values()]),
        "from_s": np.concatenate([column[PHASES[phase][0]][at] for phase, at in has.items()]),
        "to_s": np.concatenate([column[PHASES[phase][1]][at] for phase, at in has.items()]),
        "why": column["why"][places],
    })  # fmt: skip


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
