"""What users really did: observed demand from monitoring (a row a day) or from request logs (a row a request)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from db.ids import new_id
from planner.conditions import Evidence, Kind
from planner.errors import InputError
from services.workspace import Workspace, now


class Usage(NamedTuple):
    """What users did: one row a day."""

    day: date
    peak_in_flight: float
    requests: float | None


def read_usage(text: str, where: str = "usage") -> tuple[Usage, ...]:
    """Read a CSV of days (columns date, peak_in_flight, optional requests), or of requests (start, end in ISO 8601).

    Raises InputError with line and column.
    """
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    columns = [c.strip() for c in reader.fieldnames or []]
    reader.fieldnames = columns
    if {"date", "peak_in_flight"} <= set(columns):
        rows = tuple(_usage_day(row, reader.line_num, where) for row in reader)
    elif {"start", "end"} <= set(columns):
        rows = _usage_of_requests([_span(row, reader.line_num, where) for row in reader])
    else:
        raise InputError(
            f"columns are {', '.join(columns) or 'missing'}.", where=where,
            fix="Give date,peak_in_flight[,requests] per day, or start,end per request.",
        )  # fmt: skip
    if not rows:
        raise InputError("holds no row.", where=where)
    days = [r.day for r in rows]
    twice = next((d for d in days if days.count(d) > 1), None)
    if twice:
        raise InputError(f"{twice} stands twice.", where=where, fix="One row a day.")
    return tuple(sorted(rows))


def _usage_day(row: dict[str, str], line: int, where: str) -> Usage:
    place = f"{where}, line {line}"
    try:
        day = date.fromisoformat((row["date"] or "").strip())
    except ValueError:
        raise InputError(f"date {row['date']!r} is not a day.", where=place, fix="Write it as 2026-11-29.") from None
    peak = _number(row["peak_in_flight"], "peak_in_flight", place)
    requests = row.get("requests")
    return Usage(day, peak, _number(requests, "requests", place) if requests else None)


def _number(text: str | None, column: str, place: str) -> float:
    try:
        value = float((text or "").strip())
    except ValueError:
        raise InputError(f"{column} {text!r} is not a number.", where=place) from None
    if value < 0:
        raise InputError(f"{column} is below zero.", where=place)
    return value


def _span(row: dict[str, str], line: int, where: str) -> tuple[datetime, datetime]:
    try:
        start, end = (datetime.fromisoformat((row[c] or "").strip()) for c in ("start", "end"))
    except ValueError:
        raise InputError("start or end is not a time.", where=f"{where}, line {line}",
                         fix="Write them as 2026-11-29T10:00:00+00:00.") from None  # fmt: skip
    if (start.tzinfo is None) != (end.tzinfo is None) or end < start:
        raise InputError("end lies before start.", where=f"{where}, line {line}")
    return start, end


def _usage_of_requests(spans: Sequence[tuple[datetime, datetime]]) -> tuple[Usage, ...]:
    """Daily peak of requests in flight; a request counts on the day on which it starts."""
    events = sorted([(s, 1, s.date()) for s, _ in spans] + [(e, -1, e.date()) for _, e in spans], key=lambda x: x[:2])
    peaks: dict[date, int] = {}
    counts: dict[date, int] = {}
    now_in_flight = 0
    for _, step, day in events:
        now_in_flight += step
        peaks[day] = max(peaks.get(day, 0), now_in_flight)
        counts[day] = counts.get(day, 0) + (step > 0)
    return tuple(Usage(d, float(p), float(counts[d])) for d, p in sorted(peaks.items()))


def observe(ws: Workspace, case: str, usage: Sequence[Usage], *, by: str, source: str) -> tuple[Evidence, ...]:
    """Store observed demand over the window from the first to the last day; missing days lower the coverage."""
    if not by.strip():
        raise InputError("who brought this in is missing.", where="usage", fix="Write a name.")
    first, last = usage[0].day, usage[-1].day
    window = (last - first).days + 1
    at = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    batch = new_id(now())

    def piece(metric_id: str, statistic: str, value: float) -> Evidence:
        return Evidence(
            id=f"observed/{batch}/{metric_id}/{statistic}", metric=metric_id, statistic=statistic, value=value,
            unit="count", kind=Kind.OBSERVED, source=f"observed/{batch}", run=f"observed/{batch}", at=at, n=len(usage),
            window_days=float(window), coverage=len(usage) / window, by=by,
            note=f"{source}: {first} to {last}, brought in by {by}",
        )  # fmt: skip

    peaks = [u.peak_in_flight for u in usage]
    pieces = [piece("peak_in_flight", "max", max(peaks)), piece("peak_in_flight", "mean", sum(peaks) / len(peaks))]
    requests = [u.requests for u in usage if u.requests is not None]
    if len(requests) == len(usage):
        pieces += [piece("requests_per_day", "max", max(requests)),
                   piece("requests_per_day", "mean", sum(requests) / len(requests))]  # fmt: skip
    ws.store.evidence.add(case, pieces)
    return tuple(pieces)


EXAMPLE = "date,peak_in_flight,requests\n2026-11-01,4,310\n2026-11-02,5,402\n"


def read_usage_file(name: str, content: bytes) -> tuple[Usage, ...]:
    """Read an uploaded CSV; raises InputError with line and column, also for what is no text."""
    try:
        return read_usage(content.decode("utf-8-sig"), where=name)
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix="Save the sheet as CSV, UTF-8.") from None
