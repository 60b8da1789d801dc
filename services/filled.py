"""Results filled in by hand: teams come back from a GPU box with a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from db.ids import new_id
from planner.conditions import Evidence, Kind, LoadPoint
from planner.errors import InputError
from planner.metrics import Level, metric
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
    """The figures of a table that was filled in; empty cells are not measured and give nothing."""

    def number(row: dict[str, object], name: str) -> float | None:
        value = row.get(name)
        return float(str(value)) if value is not None and value == value else None  # a cell without a value is NaN

    def whole(row: dict[str, object], name: str) -> int | None:
        value = number(row, name)
        return int(value) if value is not None else None

    return tuple(
        Filled(
            candidate=str(row["candidate"]), load_point=str(row["load_point"]), in_flight=whole(row, "in_flight"),
            rate_per_s=number(row, "rate_per_s"), input_tokens=whole(row, "input_tokens"),
            output_tokens=whole(row, "output_tokens"), metric=column.metric, statistic=column.statistic, value=value,
            n=whole(row, "n"),
        )
        for row in table
        for column in columns_of(plan)
        if (value := number(row, column.name)) is not None
    )  # fmt: skip


def fill_in(
    ws: Workspace, case: str, rows: Sequence[Filled], *, by: str, source: str, measured_at: date,
    points: dict[str, LoadPoint],
) -> tuple[Evidence, ...]:  # fmt: skip
    """Store figures typed in by a named person, all or none.

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
    pieces = tuple(_entered(i, row, batch, by, source, at, points) for i, row in enumerate(rows, 1))
    ws.store.evidence.add(case, pieces)
    return pieces


def _entered(
    i: int, row: Filled, batch: str, by: str, source: str, at: datetime, points: dict[str, LoadPoint]
) -> Evidence:
    where = f"row {i}"
    found = metric(row.metric)
    if row.statistic not in found.statistics:
        raise InputError(f"{found.name} has no statistic {row.statistic!r}.", where=where,
                         fix=f"Use {', '.join(found.statistics)}.")  # fmt: skip
    if row.value < 0 or (found.unit in ("share", "bool") and row.value > 1):
        way_out = "Shares run from 0 to 1." if found.unit == "share" else "Write the measured value."
        raise InputError(f"{row.value:g} {found.unit} cannot be.", where=where, fix=way_out)
    if row.value == 0 and found.unit in NEVER_ZERO:
        raise InputError(f"0 {found.unit} cannot be.", where=where, fix="Leave empty what nobody measured.")
    load_hash = None
    note = f"entered by {by} from {source}"
    if found.level in (Level.REQUEST, Level.RUN):
        point = points.get(row.load_point)
        if point is None:
            raise InputError(f"no load point {row.load_point!r} in the plan.", where=where,
                             fix=f"Use {', '.join(sorted(points)) or 'a plan first'}.")  # fmt: skip
        if row.input_tokens is None or row.output_tokens is None or (row.in_flight is None and row.rate_per_s is None):
            raise InputError(
                "a speed without requests in flight (or rate), input and output length means nothing.", where=where,
                fix="Fill in all three.",
            )  # fmt: skip
        same = (point.in_flight, point.rate_per_s) == (row.in_flight, row.rate_per_s)
        same = same and (point.input_tokens, point.output_tokens) == (row.input_tokens, row.output_tokens)
        stated = point if same else point.model_copy(update={
            "in_flight": row.in_flight, "rate_per_s": row.rate_per_s, "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
        })  # fmt: skip
        load_hash = stated.load_hash()
    return Evidence(
        id=f"entered/{batch}/{i}", metric=found.id, statistic=row.statistic, value=row.value, unit=found.unit,
        kind=Kind.ENTERED, source=f"entered/{batch}", run=f"entered/{batch}", at=at, candidate=row.candidate,
        load_point=row.load_point if load_hash else None, load_hash=load_hash, n=row.n, by=by, note=note,
    )  # fmt: skip
