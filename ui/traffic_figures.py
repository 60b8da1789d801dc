"""The words and tables of a traffic summary, the same on the page and in the terminal."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pandas as pd

from planner.traffic import HOUR_S, MINUTE_S, LengthFigures, TrafficSummary
from planner.traffic_in_flight import DAY_S
from planner.units import format_duration
from ui.text import t, tn


class Figure(NamedTuple):
    """One figure of a summary and how it is to be understood."""

    label: str
    value: str
    meaning: str


def figures(s: TrafficSummary) -> list[Figure]:
    """Every figure that is not a length, in the order in which it is read; what the log lacks reads "not known"."""
    return [*_amount(s), *_rates(s), *_in_flight(s), *_shared(s)]


def _amount(s: TrafficSummary) -> list[Figure]:
    begin = t("from {begin} UTC", begin=f"{s.begin:%Y-%m-%d %H:%M:%S}") if s.begin else t("the log has no dates")
    return [
        Figure(t("Requests"), f"{s.n:,}", t("{n} of them without an answer", n=f"{s.unanswered:,}")),
        Figure(t("Time covered"), _known(format_duration(s.span_s) if s.span_s else None), begin),
    ]  # fmt: skip


def _rates(s: TrafficSummary) -> list[Figure]:
    r = s.rates
    return [
        Figure(t("Mean rate"), _known(f"{r.mean_per_s:.3g} req/s" if r and r.mean_per_s else None), ""),
        Figure(t("Busiest minute"), _known(f"{r.busiest_minute:,} req" if r else None),
               t("{rate} req/s", rate=f"{r.busiest_minute / MINUTE_S:.3g}") if r else ""),
        Figure(t("Busiest hour"), _known(f"{r.busiest_hour:,} req" if r else None),
               t("{rate} req/s", rate=f"{r.busiest_hour / HOUR_S:.3g}") if r else ""),
        Figure(t("Burstiness, whole log"), _known(f"{r.gap_cv:.2f}" if r and r.gap_cv is not None else None),
               t("variation of the gaps: 0 is a metronome, 1 Poisson, more are bursts")),
        Figure(t("Burstiness, busiest hour"),
               _known(f"{r.busiest_hour_gap_cv:.2f}" if r and r.busiest_hour_gap_cv is not None else None),
               t("nearest arrival process: {process}", process=t(r.arrival)) if r and r.arrival else ""),
        Figure(t("Dispersion by minute"), _known(f"{r.dispersion:.2f}" if r and r.dispersion is not None else None),
               t("variance over mean by minute: 1 is Poisson; day and night raise it")),
    ]  # fmt: skip


def _in_flight(s: TrafficSummary) -> list[Figure]:
    f = s.in_flight
    if f is None:
        return [Figure(t("Peak in flight"), _known(None), t("neither the log nor you say how long answers took"))]
    source = (
        t("from the times in the log")
        if f.known == s.n
        else tn(s.n - f.known, "latency assumed for {n} request", "latency assumed for {n:,} requests")
    )
    mean = _known(f"{f.mean:.3g}" if f.mean is not None else None)
    return [
        Figure(t("Peak in flight"), f"{f.peak:,}", source),
        Figure(t("Mean in flight"), mean, t("over time")),
        Figure(t("Usual daily peak"), f"{f.usual_peak:,}", tn(len(f.daily), "of {n} day", "median of {n} days")),
    ]


def _shared(s: TrafficSummary) -> list[Figure]:
    p, talk = s.prefixes, s.sessions
    return [
        Figure(t("Shared prefix, tokens"), _share(p.token_share if p else None),
               t("of prompt tokens an earlier request had brought (endless cache)")),
        Figure(t("Shared prefix, requests"), _share(p.request_share if p else None),
               t("of requests whose prefix came before")),
        Figure(t("Sessions"), _known(f"{talk.n:,}" if talk else None),
               t("{mean} turns on average, 95 % up to {p95}, longest {most}", mean=f"{talk.turns_mean:.3g}",
                 p95=f"{talk.turns_p95:.3g}", most=f"{talk.turns_most:,}") if talk else ""),
    ]  # fmt: skip


def _known(text: str | None) -> str:
    return t("not known") if text is None else text


def _share(share: float | None) -> str:
    return _known(None if share is None else f"{share:.1%}")


LENGTH_COLUMNS = ("mean", "p50", "p90", "p95", "p99", "longest")


def length_rows(s: TrafficSummary) -> list[tuple[str, ...]]:
    """Lengths in tokens: a name, then the figures of LENGTH_COLUMNS."""
    named = (
        (t("Prompt"), s.input_tokens),
        (t("Answer"), s.output_tokens),
        (t("Together"), s.whole_tokens),
    )
    return [(name, *(f"{getattr(f, column):,.0f}" for column in LENGTH_COLUMNS)) for name, f in named if f]


def histogram_frame(s: TrafficSummary) -> pd.DataFrame:
    """Shares by power of two for prompts and answers: size, share, name; empty sizes at both ends are left out."""
    named = [(t("Prompt"), s.input_tokens), *([(t("Answer"), s.output_tokens)] if s.output_tokens else [])]
    first = min(_first(f) for _, f in named)
    last = max(len(f.by_power) for _, f in named)
    return pd.DataFrame(
        [
            {"size": f"{_from(i):,}", "share": f.by_power[i] / sum(f.by_power) if i < len(f.by_power) else 0.0,
             "name": name}
            for name, f in named
            for i in range(first, last)
        ]
    )  # fmt: skip


def _first(f: LengthFigures) -> int:
    return next(i for i, n in enumerate(f.by_power) if n)


def _from(power: int) -> int:
    return 1 << power - 1 if power else 0


def series_frame(s: TrafficSummary, values: tuple[float, ...] | tuple[int, ...], bin_s: float) -> pd.DataFrame:
    """A series over time: at (moments where the log has dates, else units of `time_unit`), value."""
    _, unit_s = time_unit(s)
    at: list[object] = [
        s.begin + timedelta(seconds=i * bin_s) if s.begin else i * bin_s / unit_s for i in range(len(values))
    ]
    return pd.DataFrame({"at": at, "value": values})


def time_unit(s: TrafficSummary) -> tuple[str, float]:
    """The title of a time axis and its unit in seconds."""
    if s.begin:
        return t("Time (UTC)"), 1.0
    span = s.span_s or 0.0
    for title, unit_s in ((t("Days"), DAY_S), (t("Hours"), HOUR_S), (t("Minutes"), MINUTE_S)):
        if span >= 3 * unit_s:
            return title, unit_s
    return t("Seconds"), 1.0
