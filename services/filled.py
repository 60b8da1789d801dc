"""Results filled in by hand: teams come back from a GPU box with a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from db.ids import new_id
from planner.choosing import OF_A_START
from planner.conditions import Evidence, Kind
from planner.errors import InputError, UnknownName
from planner.loads import LoadPoint
from planner.metrics import Level, Metric, metric
from planner.poc import Plan
from services.workspace import Workspace, now

NEVER_ZERO = ("ms", "s", "tok/s", "req/s")


class Filled(NamedTuple):
    """One row of a table that came back from a GPU box."""

    candidate: str
    load_point: str
    in_flight: int | None
    rate_per_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    metric: str
    statistic: str
    value: float
    n: int | None = None


class Column(NamedTuple):
    """A figure that the table asks for: its name there, the metric and the statistic."""

    name: str
    metric: str
    statistic: str


def columns_of(plan: Plan) -> tuple[Column, ...]:
    """What a row holds: the statistics that the service levels of the plan ask about, and the total speed."""
    asked = {c.metric: c.statistic for c in plan.service_levels}
    ttft, speed = asked.get("ttft_ms", "p95"), asked.get("user_tok_s", "p5")
    return (
        Column(f"TTFT {ttft} (ms)", "ttft_ms", ttft),
        Column(f"tok/s per user {speed}", "user_tok_s", speed),
        Column("tok/s in total", "output_tok_s", "value"),
    )


def blank_table(plan: Plan) -> list[dict[str, object]]:
    """One row per candidate and load point, with the plan's load and lengths and no figures yet."""
    return [
        {
            "candidate": c.id, "load_point": p.name, "in_flight": p.in_flight, "rate_per_s": p.rate_per_s,
            "input_tokens": p.input_tokens, "output_tokens": p.output_tokens,
            **{column.name: None for column in columns_of(plan)}, "n": None,
        }
        for c in plan.candidates
        for p in plan.load_points
    ]  # fmt: skip


def rows_of(plan: Plan, table: Sequence[dict[str, object]]) -> tuple[Filled, ...]:
    """The figures of a table that was filled in; empty cells are not measured and give nothing.

    Raises InputError with row and column for a cell that is no number.
    """
    return tuple(
        Filled(
            candidate=str(row["candidate"]), load_point=str(row["load_point"]), in_flight=_whole(i, row, "in_flight"),
            rate_per_s=_number(i, row, "rate_per_s"), input_tokens=_whole(i, row, "input_tokens"),
            output_tokens=_whole(i, row, "output_tokens"), metric=column.metric, statistic=column.statistic,
            value=value, n=_whole(i, row, "n"),
        )
        for i, row in enumerate(table, 1)
        for column in columns_of(plan)
        if (value := _number(i, row, column.name)) is not None
    )  # fmt: skip


def _number(i: int, row: Mapping[str, object], name: str) -> float | None:
    given = row.get(name)
    if given is None or given != given or not str(given).strip():  # a cell without a value is NaN
        return None
    try:
        return float(str(given))
    except ValueError:
        raise InputError(f"{given!r} is not a number.", where=f"row {i}, {name}",
                         fix="Write it with a point, as in 1.5, or leave it empty.") from None  # fmt: skip


def _whole(i: int, row: Mapping[str, object], name: str) -> int | None:
    value = _number(i, row, name)
    if value is not None and not value.is_integer():
        raise InputError(f"{value:g} is not a whole number.", where=f"row {i}, {name}", fix="Write a whole number.")
    return None if value is None else int(value)


def fill_in(
    ws: Workspace, case: str, rows: Sequence[Filled], *, by: str, source: str, measured_at: date,
    points: Mapping[str, LoadPoint], candidates: Sequence[str] = (),
) -> tuple[Evidence, ...]:  # fmt: skip
    """Store figures typed in by a named person, all or none; `candidates` are those of the plan, where there is one.

    Raises InputError with row and field: a throughput or latency without load and lengths is refused.
    """
    if not by.strip():
        raise InputError("who filled this in is missing.", where="results by hand", fix="Write a name.")
    if not source.strip():
        raise InputError("where the figures come from is missing.", where="results by hand",
                         fix="Name the log, sheet or message.")  # fmt: skip
    if not rows:
        raise InputError("no row is filled in.", where="results by hand", fix="Write at least one value.")
    batch = new_id(now())
    at = datetime(measured_at.year, measured_at.month, measured_at.day, tzinfo=UTC)
    if at > now():
        raise InputError(f"{measured_at} lies ahead.", where="results by hand", fix="Write the day of the run.")
    for i, row in enumerate(rows, 1):
        _must_be_possible(f"row {i}", row, candidates)
    pieces = tuple(_entered(i, row, batch, by.strip(), source, at, points) for i, row in enumerate(rows, 1))
    ws.store.evidence.add(case, pieces)
    return pieces


def _must_be_possible(where: str, row: Filled, candidates: Sequence[str]) -> None:
    """Names that exist and numbers that can be; raises InputError with row and field."""
    found = metric(row.metric)
    if candidates and row.candidate not in candidates and (row.candidate or found.level is not Level.DEMAND):
        raise UnknownName.from_known("candidate", row.candidate, candidates, where=where)
    if row.statistic not in found.statistics:
        raise InputError(f"{found.name} has no statistic {row.statistic!r}.", where=where,
                         fix=f"Use {', '.join(found.statistics)}.")  # fmt: skip
    if not math.isfinite(row.value):
        raise InputError(f"{row.value} is no value.", where=f"{where}, {found.name}", fix="Write the measured value.")
    if row.value < 0 or (found.unit in ("share", "bool") and row.value > 1):
        way_out = "Shares run from 0 to 1." if found.unit == "share" else "Write the measured value."
        raise InputError(f"{row.value:g} {found.unit} cannot be.", where=where, fix=way_out)
    if row.value == 0 and found.unit in NEVER_ZERO:
        raise InputError(f"0 {found.unit} cannot be.", where=where, fix="Leave empty what nobody measured.")
    for name, least in (("n", 1), ("in_flight", 1), ("input_tokens", 1), ("output_tokens", 1)):
        given = getattr(row, name)
        if given is not None and given < least:
            raise InputError(f"{given} is less than {least}.", where=f"{where}, {name}", fix=f"Write {least} or more.")
    if row.rate_per_s is not None and not (math.isfinite(row.rate_per_s) and row.rate_per_s > 0):
        raise InputError(f"{row.rate_per_s} is no rate.", where=f"{where}, rate_per_s", fix="Write more than 0.")


def _entered(
    i: int, row: Filled, batch: str, by: str, source: str, at: datetime, points: Mapping[str, LoadPoint]
) -> Evidence:
    found = metric(row.metric)
    point = _load_of(f"row {i}", row, found, points)
    return Evidence(
        id=f"entered/{batch}/{i}", metric=found.id, statistic=row.statistic, value=row.value, unit=found.unit,
        kind=Kind.ENTERED, source=f"entered/{batch}", run=f"entered/{batch}", at=at, candidate=row.candidate or None,
        load_point=point.name if point else None, load_hash=point.load_hash() if point else None, n=row.n, by=by,
        note=f"entered by {by} from {source}",
    )  # fmt: skip


def _load_of(where: str, row: Filled, found: Metric, points: Mapping[str, LoadPoint]) -> LoadPoint | None:
    """The load that a figure was taken at, by the plan's name for it; None for what has none, such as a start."""
    of_speed = found.level in (Level.REQUEST, Level.RUN)
    if not of_speed and (found.level is not Level.SERVER or found.id in OF_A_START or not row.load_point):
        return None
    point = points.get(row.load_point)
    if point is None:
        raise InputError(f"no load point {row.load_point!r} in the plan.", where=where,
                         fix=f"Use {', '.join(sorted(points)) or 'a plan first'}.")  # fmt: skip
    given = (row.in_flight, row.rate_per_s, row.input_tokens, row.output_tokens)
    if not of_speed and given == (None, None, None, None):
        return point
    if row.input_tokens is None or row.output_tokens is None or (row.in_flight is None and row.rate_per_s is None):
        raise InputError(
            "a speed without requests in flight (or rate), input and output length means nothing.", where=where,
            fix="Fill in all three.",
        )  # fmt: skip
    if (point.in_flight, point.rate_per_s, point.input_tokens, point.output_tokens) == given:
        return point
    return point.model_copy(update={
        "in_flight": row.in_flight, "rate_per_s": row.rate_per_s, "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    })  # fmt: skip
