"""Results filled in by hand: teams come back from a GPU box with a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

from db.ids import new_id
from planner.choosing import OF_A_START
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.errors import InputError, UnknownName
from planner.known import Known
from planner.loads import LoadPoint
from planner.metrics import Level, Metric, metric
from planner.poc import Plan
from services.attachments import File, attach
from services.decided import asked_for
from services.workspace import Workspace, now

ENDS = {"min": "the smallest of its repeats", "mean": "the middle of its repeats", "max": "the largest of its repeats"}
LONGEST_NAME = 200  # characters of a device's name
NEVER_ZERO = ("ms", "s", "tok/s", "req/s")


class Filled(NamedTuple):
    """One figure of a table that came back from a GPU box, in the metric's base unit.

    `row` is its row in the sheet. Figures of several starts of the engine, or of repeats within one, carry their
    number; `spread` says which end of the repeats a figure is. `at` is when it ran, where the sheet says so.
    """

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
    row: int | None = None
    start: int | None = None
    repeat: int | None = None
    spread: Literal["", "min", "mean", "max"] = ""
    at: datetime | None = None

    @property
    def load(self) -> tuple[int | None, float | None, int | None, int | None]:
        """Requests in flight, rate, input and output length."""
        return self.in_flight, self.rate_per_s, self.input_tokens, self.output_tokens

    def offers(self, point: LoadPoint) -> bool:
        """Whether load and lengths are those of a load point."""
        return self.load == (point.in_flight, point.rate_per_s, point.input_tokens, point.output_tokens)


class Machine(NamedTuple):
    """What the runs of a table took place on; `gpu` as the driver names it, `gpus` how many the engine used."""

    gpu: str
    gpus: int = 1


def as_planned(plan: Plan, machine: Machine) -> dict[str, Contract]:
    """The contract of runs that kept to the plan on that machine, by candidate; raises InputError for no machine."""
    if not machine.gpu.strip():
        raise InputError("which GPU the runs took place on is missing.", where="results by hand",
                         fix="Write its name as nvidia-smi -L says it.")  # fmt: skip
    if len(machine.gpu) > LONGEST_NAME or not machine.gpu.strip().isprintable():
        raise InputError("that is no name of a GPU.", where="results by hand",
                         fix=f"Write its name, of {LONGEST_NAME} characters at most.")  # fmt: skip
    if machine.gpus < 1:
        raise InputError(f"{machine.gpus} GPUs cannot be.", where="results by hand", fix="Write 1 or more.")
    stated = {
        "observed": {"gpu": machine.gpu.strip(), "gpu_count": str(machine.gpus)},
        "declared_differences": plan.declared_differences,
    }
    return {name: asked.model_copy(update=stated) for name, asked in asked_for(plan).items()}


def outdated(evidence: Known, rows: Sequence[Filled], measured_at: date) -> tuple[str, ...]:
    """Candidates of whom figures that state a contract would have newer ones beside them that state none.

    The newest speaks for a candidate, so its ratios refuse from then on.
    """
    of_a_contract = (e for e in evidence.of_metric(*{r.metric for r in rows}) if e.kind is Kind.ENTERED and e.contract)
    newest = {
        (e.candidate, e.metric, e.statistic, e.load_point): e.at for e in sorted(of_a_contract, key=lambda e: e.at)
    }
    return tuple(dict.fromkeys(
        r.candidate for r in rows
        if (before := newest.get((r.candidate, r.metric, r.statistic, r.load_point)))
        and before <= (r.at or _midnight(measured_at))
    ))  # fmt: skip


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


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
    plan: Plan | None = None, raw: File | None = None, machine: Machine | None = None,
) -> tuple[Evidence, ...]:  # fmt: skip
    """Store figures typed in by a named person, all or none, and total speeds over the coverage bound beside them.

    `raw` is the file that they come from: it is kept with them. With `machine` the runs kept to the plan's contract,
    there; without, a candidate's figures compare with no other's. Raises InputError with row and field: a throughput
    or latency without load and lengths is refused.
    """
    if not by.strip():
        raise InputError("who filled this in is missing.", where="results by hand", fix="Write a name.")
    if not source.strip():
        raise InputError("where the figures come from is missing.", where="results by hand",
                         fix="Name the log, sheet or message.")  # fmt: skip
    if not rows:
        raise InputError("no row is filled in.", where="results by hand", fix="Write at least one value.")
    entry = new_id(now())
    at = _midnight(measured_at)
    rows = [row._replace(row=row.row or i, at=row.at or at) for i, row in enumerate(rows, 1)]
    points, candidates = (plan.points(), [c.id for c in plan.candidates]) if plan else ({}, [])
    for row in rows:
        must_be_possible(row, points, candidates)
    kept = as_planned(plan, machine) if plan and machine else {}
    note = f"entered by {by.strip()} from {source}"
    under = {row.candidate: kept[row.candidate] for row in rows if row.candidate in kept}
    hashes = {name: contract.full_hash() for name, contract in under.items()}
    with ws.store.transaction():
        if raw:
            file = attach(ws, case, entry, raw, by.strip())
            note += f", {file.name} attached (sha256 {file.sha256[:12]})"
        pieces = tuple(
            _entered(i, row, entry, by.strip(), note, points).model_copy(update={"contract": hashes.get(row.candidate)})
            for i, row in enumerate(rows, 1)
        )
        pieces += tuple(_over_bound(pieces, plan) if plan else ())
        ws.store.evidence.add(case, pieces, {hashes[name]: contract for name, contract in under.items()})
    return pieces


def _over_bound(pieces: Sequence[Evidence], plan: Plan) -> Iterator[Evidence]:
    """Total speeds at the plan's own loads over its coverage bound, as a bundle's summary; what was typed in stands."""
    points = plan.points()
    bounds = {
        (c.id, name, points[name].load_hash()): bound
        for c in plan.candidates for name, bound in c.bound_tok_s.items() if name in points
    }  # fmt: skip
    typed = {(e.candidate, e.load_point) for e in pieces if e.metric == "measured_over_bound"}
    for e in pieces:
        bound = bounds.get((e.candidate or "", e.load_point or "", e.load_hash or ""))
        if e.metric == "output_tok_s" and bound and (e.candidate, e.load_point) not in typed:
            yield e.model_copy(update={
                "id": f"{e.id}/bound", "metric": "measured_over_bound", "value": e.value / bound, "unit": "x",
                "note": f"{e.note}; over the plan's coverage bound of {bound:,.0f} tok/s",
            })  # fmt: skip


def must_be_possible(row: Filled, points: Mapping[str, LoadPoint], candidates: Sequence[str]) -> None:
    """Names that exist, numbers that can be, a load where one is needed; raises InputError with row and field."""
    where = f"row {row.row}"
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
    if row.at and row.at > now():
        raise InputError(f"{row.at:%Y-%m-%d} lies ahead.", where=where, fix="Write the day of the run.")
    _load_of(row, found, points)


def _entered(i: int, row: Filled, entry: str, by: str, note: str, points: Mapping[str, LoadPoint]) -> Evidence:
    found = metric(row.metric)
    point = _load_of(row, found, points)
    start = f"/start-{row.start}" if row.start is not None else ""
    assert row.at is not None
    return Evidence(
        id=f"entered/{entry}/{i}", metric=found.id, statistic=row.statistic, value=row.value, unit=found.unit,
        kind=Kind.ENTERED, source=f"entered/{entry}{start}", run=f"entered/{entry}", at=row.at,
        candidate=row.candidate or None, load_point=point.name if point else None,
        load_hash=point.load_hash() if point else None, n=row.n, start=row.start, repeat=row.repeat, by=by,
        note=f"{note}; {ENDS[row.spread]}" if row.spread else note,
    )  # fmt: skip


def _load_of(row: Filled, found: Metric, points: Mapping[str, LoadPoint]) -> LoadPoint | None:
    """The load that a figure was taken at, by the plan's name for it; None for what has none, such as a start."""
    where = f"row {row.row}"
    of_speed = found.level in (Level.REQUEST, Level.RUN)
    if not of_speed and (found.level is not Level.SERVER or found.id in OF_A_START or not row.load_point):
        return None
    incomplete = None in (row.input_tokens, row.output_tokens) or (row.in_flight is None and row.rate_per_s is None)
    if of_speed and incomplete:
        raise InputError(
            "a speed without requests in flight (or rate), input and output length means nothing.", where=where,
            fix="Fill in all three.",
        )  # fmt: skip
    point = points.get(row.load_point)
    if point is None:
        what = f"no load point {row.load_point!r} in the plan." if row.load_point else "no load point offers this load."
        raise InputError(what, where=where, fix=f"Use {', '.join(sorted(points)) or 'a plan first'}.")
    if row.offers(point) or (not of_speed and row.load == (None, None, None, None)):
        return point
    if incomplete:
        raise InputError("load and lengths are stated in part.", where=where, fix="Fill in all three, or none.")
    return point.model_copy(update={
        "in_flight": row.in_flight, "rate_per_s": row.rate_per_s, "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    })  # fmt: skip
