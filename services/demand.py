"""Observed demand: figures of whole days in UTC, which days count, what a request log says, what stands beside it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from decisions.record import Deployment
from planner.conditions import Evidence, Kind
from planner.errors import InputError
from planner.observed_days import MIN_COVERAGE
from planner.traffic import Requests
from planner.traffic_in_flight import DAY_S, in_flight
from services.sharegpt import is_sharegpt
from services.traffic_layouts import recognised
from services.traffic_log import Log, read_log
from services.traffic_rows import Table
from services.usage import FIGURES, Usage, day_of, read_usage_file


class Gap(NamedTuple):
    """A day that does not count: how much of it is covered, and what else is missing."""

    day: date
    coverage: float
    why: str = ""


class Demand(NamedTuple):
    """The days that count, those that do not, where they come from, and what was noticed."""

    days: tuple[Usage, ...]
    gaps: tuple[Gap, ...]
    source: str
    findings: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Usage | Gap], source: str, findings: Sequence[str] = ()) -> Demand:
        """Days and gaps, told apart."""
        days, gaps = ([d for d in found if isinstance(d, kind)] for kind in (Usage, Gap))
        return cls(tuple(days), tuple(gaps), source, tuple(findings))

    def gap_sentences(self) -> tuple[str, ...]:
        """What is left out, days in a row together."""
        return tuple(_left_out([g for _, g in run]) for _, run in groupby(enumerate(self.gaps), key=_in_a_row))

    def counted(self) -> tuple[Usage, ...]:
        """The days that count; raises InputError when none does."""
        if not self.days:
            said = " ".join((*self.gap_sentences(), "Whole days count, from midnight to midnight UTC."))
            raise InputError("no day is covered enough.", where=self.source, fix=said)
        return self.days


def _in_a_row(numbered: tuple[int, Gap]) -> tuple[int, str]:
    place, gap = numbered
    return gap.day.toordinal() - place, gap.why


def _left_out(gaps: Sequence[Gap]) -> str:
    days = f"{gaps[0].day} to {gaps[-1].day}" if len(gaps) > 1 else str(gaps[0].day)
    return f"{days}: {gaps[0].why or f'{max(g.coverage for g in gaps):.0%} covered'}, not counted."


def day_or_gap(u: Usage, least_coverage: float = MIN_COVERAGE, *, peak_needed: bool = False) -> Usage | Gap:
    """The day, or the gap that it is when less of it is covered than `least_coverage`, or its peak was not readable."""
    if u.coverage < least_coverage:
        return Gap(u.day, u.coverage)
    if peak_needed and u.peak_in_flight is None:
        return Gap(u.day, u.coverage, "no readable number")
    return u


def demand_of_file(
    name: str, content: bytes, *, whole_days: bool = False, least_coverage: float = MIN_COVERAGE
) -> Demand:
    """Demand of a file: a row a day or a row a request (services/usage.py), or a request log of a known layout.

    Raises InputError with what is wrong where.
    """
    if is_sharegpt(content) or (table := Table(name, content)).is_json or recognised(table.columns):
        return demand_of_log(read_log(name, content), whole_days=whole_days, least_coverage=least_coverage)
    days = read_usage_file(name, content, whole_days=whole_days)
    return Demand.of([day_or_gap(u, least_coverage) for u in days], name)


def demand_of_log(log: Log, *, whole_days: bool = False, least_coverage: float = MIN_COVERAGE) -> Demand:
    """Demand of a request log, day by day. Its first and last day reach only from its first and to its last request.

    `whole_days` is somebody's word that the log holds all of these two. How many were in flight is said only where the
    log tells of every request how long it took. Raises InputError for a log whose clock shows no date.
    """
    r = log.requests
    if r.begin is None or r.at_s is None:
        raise InputError("tells no dates.", where=log.name, fix="Bring a log whose times are moments.")
    first, since_midnight = r.begin.date(), r.clock_s % DAY_S
    until = since_midnight + r.at_s[-1]
    n = int(until // DAY_S) + 1
    levels = in_flight(r.at_s, r.took_s, r.output_tokens, None, DAY_S, since_midnight)
    peaks = levels.daily if levels else (None,) * n
    found, quiet = [], 0
    for i, peak in enumerate(peaks):
        begins, ends = max(i * DAY_S, since_midnight), min((i + 1) * DAY_S, until)
        covered = 1.0 if whole_days else (ends - begins) / DAY_S
        a, b = (bisect_left(r.at_s, edge * DAY_S - since_midnight) for edge in (i, i + 1))
        quiet += a == b
        found.append(day_or_gap(_day(r, first + timedelta(days=i), slice(a, b), peak, covered), least_coverage))
    findings = [*log.findings, *log.left_out]
    if levels is None:
        findings.append("How long every answer took is not in the log: no peak in flight is taken from it.")
    if quiet:
        findings.append(f"Days without a request, counted as days on which nobody asked: {quiet}.")
    if log.estimated:
        findings.append("Lengths are estimates from texts.")
    return Demand.of(found, f"{log.name} (sha256 {log.sha256[:12]})", findings)


def _day(r: Requests, day: date, rows: slice, peak: int | None, covered: float) -> Usage:
    requests, prompt = rows.stop - rows.start, sum(r.input_tokens[rows])
    seen = sum(r.seen_tokens[rows]) / prompt if r.seen_tokens is not None and prompt else None
    mean_in, mean_out = (prompt / requests, sum(r.output_tokens[rows]) / requests) if requests else (None, None)
    return Usage(day, None if peak is None else float(peak), float(requests), seen, mean_in, mean_out, covered)


class SeenDay(NamedTuple):
    """One observed day as it counts now: its figures, their source, and what ran then.

    `ran` is None on days before the first deployment that is recorded, and where none is.
    """

    usage: Usage
    source: str
    ran: Deployment | None


def seen_days(evidence: Iterable[Evidence], deployments: Sequence[Deployment]) -> tuple[SeenDay, ...]:
    """Every observed day, oldest first, with the deployment in production at its end.

    `evidence` is that which counts (services.usage.newest); `deployments` are by time.
    """
    pieces = sorted((e for e in evidence if e.kind is Kind.OBSERVED and day_of(e)), key=day_of)
    return tuple(_seen(day, list(of_day), deployments) for day, of_day in groupby(pieces, key=day_of))


def _seen(day: date, pieces: Sequence[Evidence], deployments: Sequence[Deployment]) -> SeenDay:
    value = {e.metric: e.value for e in pieces}
    ends = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    ran = next((d for d in reversed(deployments) if d.since < ends), None)
    figures = {f.field: value.get(f.metric) for f in FIGURES}
    usage = Usage(day, **figures, coverage=min(e.coverage or 0.0 for e in pieces))
    return SeenDay(usage, "; ".join(dict.fromkeys(e.note for e in pieces)), ran)


def missing(days: Sequence[SeenDay]) -> tuple[date, ...]:
    """The days between the first and the last that nobody looked at."""
    known = {d.usage.day for d in days}
    between = range(min(known).toordinal(), max(known).toordinal()) if known else ()
    return tuple(day for n in between if (day := date.fromordinal(n)) not in known)


def changes(days: Sequence[SeenDay]) -> Iterator[SeenDay]:
    """The first day of each deployment among these days."""
    for _, same in groupby(days, key=lambda d: d.ran):
        first = next(same)
        if first.ran is not None:
            yield first
