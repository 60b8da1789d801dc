"""A request log from bytes: recognised or with its columns named by hand, whole or not at all."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any, NamedTuple

from planner.errors import InputError
from planner.traffic import Requests, seen_by_prefix, seen_in_blocks
from services.sharegpt import is_sharegpt, read_sharegpt
from services.traffic_columns import NOT_TO_LEAVE_OUT, BadCell, Column, Seconds, column
from services.traffic_layouts import NEEDED, ROLES, Layout, Role, recognised
from services.traffic_rows import Chunk, Faults, Table

MOST_PER_S = 1000.0  # a mean rate above this is rather a wrong unit than a busy service
LONGEST_S = 3600.0


class Log(NamedTuple):
    """A log as it was read. `findings` are sentences about what was noticed, `left_out` about rows not taken."""

    name: str
    sha256: str
    layout: str
    requests: Requests
    findings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    estimated: bool = False


def columns_of(name: str, content: bytes) -> tuple[str, ...]:
    """The column names of a log, to choose from; none of a ShareGPT file. Raises InputError."""
    return () if is_sharegpt(content) else Table(name, content).columns


def read_log(name: str, content: bytes, layout: Layout | None = None, *, leave_out: bool = False) -> Log:
    """Read a log whole; `leave_out` takes it without its broken rows, which are counted.

    Raises InputError that names every fault with its count and first line, for unknown columns, and for a log without
    requests. Rows that mix time zones or units are refused either way.
    """
    digest = hashlib.sha256(content).hexdigest()
    if is_sharegpt(content):
        talk = read_sharegpt(name, content)
        return Log(name, digest, talk.layout, talk.requests, talk.findings, estimated=True)
    table = Table(name, content)
    layout = layout or recognised(table.columns)
    if layout is None:
        raise InputError(
            f"has the columns {', '.join(table.columns[:20])}, which are none of the known layouts.", where=name,
            fix=f"Name the columns for {', '.join(NEEDED)}: {'; '.join(f'{r} is {ROLES[r]}' for r in NEEDED)}.",
        )  # fmt: skip
    faults = Faults()
    columns: dict[Role, Column] = {role: column(layout, role, name) for role in layout.columns}
    lines = array("q")
    for chunk in table.chunks(tuple(layout.columns.values()), faults):
        lines.extend(_take(chunk, tuple(columns.values()), faults))
    values: dict[Role, Any] = {role: c.values for role, c in columns.items()}
    bad = _ends_before_begin(values, lines, faults)
    _refuse(name, len(lines) - len(bad), faults, leave_out=leave_out)
    findings: list[str] = []
    clock = columns["time"]
    if isinstance(clock, Seconds):
        findings += _zones(clock)
    requests = _in_order(values, bad, layout.block_tokens, findings)
    return Log(name, digest, layout.title, requests, (*findings, *_doubts(requests)), tuple(faults.sentences()))


def _zones(clock: Seconds) -> list[str]:
    """What is to be known of the zones that times state, or do not."""
    if clock.zoned is False:
        return ["Times state no zone: they are read as UTC."]
    if len(clock.zones) < 2:
        return []
    told = ", ".join(f"{n:,} in {timezone(zone)}" for zone, n in clock.zones.most_common() if zone is not None)
    return [f"Times state {len(clock.zones)} zones ({told}): each row counts at the moment that it states."]


def _take(chunk: Chunk, columns: Sequence[Column], faults: Faults) -> Sequence[int]:
    """Add a chunk to the columns; returns the lines that were taken."""
    try:
        whole = [c.many(cells) for c, cells in zip(columns, chunk.columns, strict=True)]
    except (ValueError, TypeError, OverflowError):
        return _take_one_by_one(chunk, columns, faults)
    for c, found in zip(columns, whole, strict=True):
        c.values.extend(found)
    return chunk.lines


def _take_one_by_one(chunk: Chunk, columns: Sequence[Column], faults: Faults) -> Sequence[int]:
    taken = []
    for line, *cells in zip(chunk.lines, *chunk.columns, strict=True):
        try:
            row = [c.one(cell) for c, cell in zip(columns, cells, strict=True)]
        except BadCell as e:
            faults.add(str(e), line)
            continue
        for c, value in zip(columns, row, strict=True):
            c.values.append(value)
        taken.append(line)
    return taken


def _ends_before_begin(values: Mapping[Role, Any], lines: array[int], faults: Faults) -> frozenset[int]:
    """Places of rows whose end lies before their time."""
    if "end" not in values:
        return frozenset()
    bad = [i for i, (begin, end) in enumerate(zip(values["time"], values["end"], strict=True)) if end < begin]
    for i in bad:
        faults.add("rows that end before they begin", lines[i])
    return frozenset(bad)


def _refuse(name: str, taken: int, faults: Faults, *, leave_out: bool) -> None:
    said = "; ".join(faults.sentences())
    if not taken:
        raise InputError(f"holds no requests that can be read{f': {said}' if said else ''}.", where=name,
                         fix="Bring a log with a row for each request.")  # fmt: skip
    mixed = [fault for fault in faults.found if fault in NOT_TO_LEAVE_OUT]
    if mixed:
        raise InputError(f"{said}.", where=name, fix="Write all times of a log in one way; nothing was taken.")
    if faults.found and not leave_out:
        raise InputError(f"{said}; {'1 row is' if taken == 1 else f'{taken:,} rows are'} sound.", where=name,
                         fix="Mend them, or say that broken rows may be left out; nothing was taken.")  # fmt: skip


def _in_order(values: Mapping[Role, Any], bad: frozenset[int], block_tokens: int, findings: list[str]) -> Requests:
    """The columns by time, counted from the first request."""
    time = values["time"]
    n = len(time)
    sorted_already = not bad and all(map(float.__le__, time, time[1:]))
    order = range(n) if sorted_already else sorted((i for i in range(n) if i not in bad), key=time.__getitem__)
    backwards = sum(map(float.__gt__, time, time[1:]))
    if backwards:
        findings.append(f"Rows are not in the order of time ({backwards:,} times backwards): they were sorted.")

    def column_of(role: Role) -> Any:
        found = values.get(role)
        if found is None or sorted_already:
            return found
        picked = (found[i] for i in order)
        return list(picked) if isinstance(found, list) else array(found.typecode, picked)

    at, tokens = column_of("time"), column_of("input")
    took, end = column_of("took"), column_of("end")
    if took is None and end is not None:
        took = array("d", map(float.__sub__, end, at))
    return Requests(
        input_tokens=tokens, output_tokens=column_of("output"), clock_s=at[0],
        at_s=array("d", (t - at[0] for t in at)), took_s=took, session=column_of("session"),
        prefix=column_of("prefix"), seen_tokens=_seen(column_of, tokens, block_tokens),
    )  # fmt: skip


def _seen(column_of: Any, tokens: array[int], block_tokens: int) -> array[int] | None:
    """Prompt tokens that were seen before: by block hashes, by what the cache gave, or by the length of prefixes."""
    blocks, cached, prefix, long = map(column_of, ("blocks", "cached", "prefix", "prefix_tokens"))
    if blocks is not None:
        return seen_in_blocks(blocks, tokens, block_tokens)
    if cached is not None:
        return array("q", (min(n, round(c)) if c == c else 0 for n, c in zip(tokens, cached, strict=True)))
    return seen_by_prefix(prefix, long, tokens) if prefix is not None and long is not None else None


def _doubts(r: Requests) -> list[str]:
    """What rather is a wrong unit than a busy or slow service."""
    found = []
    span = r.at_s[-1] if r.at_s else 0.0
    if span and (len(r.input_tokens) - 1) / span > MOST_PER_S:
        found.append(f"{(len(r.input_tokens) - 1) / span:,.0f} requests a second: are the times really in seconds?")
    known = [s for s in r.took_s or () if math.isfinite(s)]
    if known and sum(known) / len(known) > LONGEST_S:
        found.append(f"An answer takes {sum(known) / len(known):,.0f} s on average: is that really in seconds?")
    return found
