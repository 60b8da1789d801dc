"""What users really did: observed demand from monitoring (a row a day) or from request logs (a row a request)."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import NamedTuple

from db.ids import new_id
from planner.conditions import Evidence, Kind
from planner.errors import InputError
from planner.known import Derived, Known
from planner.metrics import METRICS
from services.workspace import Workspace, now


class Usage(NamedTuple):
    """What users did on one day, in UTC where the source knows it; None is not known.

    The share is of prompt tokens that stood in a prefix seen before, tokens are means over the day's requests, coverage
    is the share of the day that was looked at.
    """

    day: date
    peak_in_flight: float | None
    requests: float | None = None
    shared_prefix_share: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    coverage: float = 1.0


class Figure(NamedTuple):
    """Which field of a day becomes which metric, under which statistics over days."""

    field: str
    metric: str
    statistics: tuple[str, ...]


FIGURES = (
    Figure("peak_in_flight", "peak_in_flight", ("max", "mean", "p95")),
    Figure("requests", "requests_per_day", ("max", "mean")),
    Figure("shared_prefix_share", "shared_prefix_share", ("mean",)),
    Figure("input_tokens", "input_tokens", ("mean",)),
    Figure("output_tokens", "output_tokens", ("mean",)),
)
EARLIEST, LATEST = 1970, 9998  # years of a request
MOST_DAYS = 3660  # as many as a condition looks back at most (planner/conditions.py)
PREFIX = "observed/"  # begins the id of an observed figure: observed/BATCH/DAY/METRIC/STATISTIC
OPTIONAL = ("requests", "shared_prefix_share", "input_tokens", "output_tokens", "coverage")
SHARES = ("shared_prefix_share", "coverage")


def read_usage(text: str, where: str = "usage", *, whole_days: bool = False) -> tuple[Usage, ...]:
    """Read a CSV of days, or of requests (start, end in ISO 8601).

    Days have the columns date and peak_in_flight, and may have those of OPTIONAL. The first and the last day of
    requests reach only from the first and to the last of them; `whole_days` is somebody's word that they are all there.
    Raises InputError with line and column.
    """
    try:
        return _read(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))), where, whole_days)
    except csv.Error as e:
        raise InputError(f"is no readable CSV: {e}.", where=where) from None


def _read(reader: csv.DictReader[str], where: str, whole_days: bool) -> tuple[Usage, ...]:
    columns = [c.strip() for c in reader.fieldnames or []]
    reader.fieldnames = columns
    if {"date", "peak_in_flight"} <= set(columns):
        rows = tuple(_usage_day(row, f"{where}, line {reader.line_num}") for row in reader)
    elif {"start", "end"} <= set(columns):
        spans = [_span(row, f"{where}, line {reader.line_num}") for row in reader]
        rows = _usage_of_requests(spans, where, whole_days)
    else:
        raise InputError(
            f"columns are {', '.join(columns) or 'missing'}.", where=where,
            fix=f"Give date,peak_in_flight[,{','.join(OPTIONAL)}] per day, or start,end per request.",
        )  # fmt: skip
    if not rows:
        raise InputError("holds no row.", where=where)
    twice = next((day for day, n in Counter(r.day for r in rows).items() if n > 1), None)
    if twice:
        raise InputError(f"{twice} stands twice.", where=where, fix="One row a day.")
    return tuple(sorted(rows))


def _usage_day(row: dict[str, str], place: str) -> Usage:
    try:
        day = date.fromisoformat((row["date"] or "").strip())
    except ValueError:
        raise InputError(f"date {row['date']!r} is not a day.", where=place, fix="Write it as 2026-11-29.") from None
    more = {c: _number(row[c], c, place) for c in OPTIONAL if (row.get(c) or "").strip()}
    above = next((c for c in SHARES if more.get(c, 0.0) > 1), None)
    if above:
        raise InputError(f"{above} is above 1.", where=place, fix="Write a share from 0 to 1.")
    return Usage(day, _number(row["peak_in_flight"], "peak_in_flight", place), **more)


def _number(text: str | None, column: str, place: str) -> float:
    try:
        value = float((text or "").strip())
    except ValueError:
        raise InputError(f"{column} {text!r} is not a number.", where=place) from None
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{column} is {value}, which cannot be.", where=place, fix="Write 0 or more.")
    return value


def _span(row: dict[str, str], place: str) -> tuple[datetime, datetime]:
    """Start and end, in UTC where they state their zone: rows of two zones fall into the same days."""
    try:
        start, end = (datetime.fromisoformat((row[c] or "").strip()) for c in ("start", "end"))
    except ValueError:
        raise InputError("start or end is not a time.", where=place,
                         fix="Write them as 2026-11-29T10:00:00+00:00.") from None  # fmt: skip
    if not all(EARLIEST <= moment.year <= LATEST for moment in (start, end)):
        raise InputError(f"start or end lies outside the years {EARLIEST} to {LATEST}.", where=place,
                         fix="Write the year of the request.")  # fmt: skip
    if (start.tzinfo is None) != (end.tzinfo is None):
        raise InputError("only one of start and end states its time zone.", where=place)
    if end < start:
        raise InputError("end lies before start.", where=place)
    return (start.astimezone(UTC), end.astimezone(UTC)) if start.tzinfo else (start, end)


def _usage_of_requests(
    spans: Sequence[tuple[datetime, datetime]], where: str, whole_days: bool
) -> tuple[Usage, ...]:  # fmt: skip
    """Daily peak of requests in flight; a day without requests between the first and the last had none in flight."""
    if len({start.tzinfo is None for start, _ in spans}) > 1:
        raise InputError("some times state their zone and some do not.", where=where, fix="State it in every row.")
    if not spans:
        return ()
    first, last = min(s for s, _ in spans), max(s for s, _ in spans)
    if (last - first).days > MOST_DAYS:
        raise InputError(f"runs from {first.date()} to {last.date()}, which is no log of one service.", where=where,
                         fix=f"Mend the times, or bring {MOST_DAYS:,} days at most.")  # fmt: skip
    # A request that ends as it came, by a clock of whole seconds, was there at that moment all the same.
    moment = timedelta(microseconds=1)
    events = sorted([(s, 1) for s, _ in spans] + [(max(e, s + moment), -1) for s, e in spans])
    steps: dict[date, list[int]] = {}
    for at, step in events:
        steps.setdefault(at.date(), []).append(step)
    in_flight, day, found = 0, first.date(), []
    while day <= last.date():
        level = list(accumulate(steps.get(day, ()), initial=in_flight))
        started = sum(step > 0 for step in steps.get(day, ()))
        covered = 1.0 if whole_days else _covered(day, first, last)
        found.append(Usage(day, float(max(level)), float(started), coverage=covered))
        in_flight, day = level[-1], day + timedelta(days=1)
    return tuple(found)


def _covered(day: date, first: datetime, last: datetime) -> float:
    """The share of a day that lies between two moments."""
    begins = datetime.combine(day, time(), first.tzinfo)
    return (min(begins + timedelta(days=1), last) - max(begins, first)) / timedelta(days=1)


def observe(ws: Workspace, case: str, usage: Sequence[Usage], *, by: str, source: str) -> tuple[Evidence, ...]:
    """Store observed demand, one figure a day and metric, so that windows join whenever more days arrive.

    A figure that stands already is not stored again; where it was another one, the newer counts from now on (`newest`).
    Raises InputError for a day that lies ahead.
    """
    if not by.strip():
        raise InputError("who brought this in is missing.", where="usage", fix="Write a name.")
    at_now = now()
    ahead = next((u.day for u in usage if u.day > at_now.date()), None)
    if ahead:
        raise InputError(f"{ahead} lies ahead.", where=source, fix="Bring in days that have passed.")
    batch = new_id(at_now)
    known = newest(ws.store.evidence.of_case(case, kinds=[Kind.OBSERVED]))
    stands = {_asked(e): (e.value, e.coverage, e.at) for e in known if day_of(e)}
    pieces = tuple(
        p for u in usage for p in _pieces(u, batch, at_now, f"{source}, brought in by {by}", by)
        if stands.get(_asked(p)) != (p.value, p.coverage, p.at)
    )  # fmt: skip
    ws.store.evidence.add(case, pieces)
    return pieces


_NEWEST: Derived[Known] = Derived()


def newest(evidence: Iterable[Evidence]) -> Known:
    """Evidence without what was observed of a day that was brought in again later: no day counts twice."""
    known = Known.of(evidence)
    return _NEWEST.get(known, None, lambda: _newest(known))


def _newest(evidence: Known) -> Known:
    observed = {m: evidence.of_metric(m) for m in sorted({f.metric for f in evidence.facts if f.kind is Kind.OBSERVED})}
    latest: dict[str, str] = {}
    for e in (e for found in observed.values() for e in found):
        if day_of(e):
            latest[_asked(e)] = max(latest.get(_asked(e), ""), e.id)
    kept = {m: [e for e in f if day_of(e) is None or latest[_asked(e)] == e.id] for m, f in observed.items()}
    return evidence.with_metrics(kept) if kept != observed else evidence


def day_of(e: Evidence) -> date | None:
    """The day that an observed figure is about; None for any other evidence."""
    return date.fromisoformat(e.id.split("/")[2]) if e.kind is Kind.OBSERVED and e.id.startswith(PREFIX) else None


def _asked(e: Evidence) -> str:
    """Day, metric and statistic of an observed figure."""
    return e.id.split("/", 2)[2]


def _pieces(u: Usage, batch: str, at_now: datetime, note: str, by: str) -> Iterator[Evidence]:
    end = min(datetime(u.day.year, u.day.month, u.day.day, tzinfo=UTC) + timedelta(days=1), at_now)
    for figure in FIGURES:
        value: float | None = getattr(u, figure.field)
        for statistic in figure.statistics if value is not None else ():
            yield Evidence(
                id=f"{PREFIX}{batch}/{u.day}/{figure.metric}/{statistic}", metric=figure.metric, statistic=statistic,
                value=value or 0.0, unit=METRICS[figure.metric].unit, kind=Kind.OBSERVED, source=f"{PREFIX}{batch}",
                run=f"{PREFIX}{batch}", at=end, n=1, window_days=1.0, coverage=u.coverage, by=by, note=note,
            )  # fmt: skip


EXAMPLE = "date,peak_in_flight,requests\n2026-11-01,4,310\n2026-11-02,5,402\n"


def read_usage_file(name: str, content: bytes, *, whole_days: bool = False) -> tuple[Usage, ...]:
    """Read an uploaded CSV; raises InputError with line and column, also for what is no text."""
    try:
        return read_usage(content.decode("utf-8-sig"), where=name, whole_days=whole_days)
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix="Save the sheet as CSV, UTF-8.") from None
