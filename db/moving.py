"""From one database into another: all rows, or none; compared row by row and chain by chain before they count."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, Table, func, insert, inspect, select, text

from db.audit import Audit
from db.database import Database
from db.dialects import POSTGRESQL
from db.snapshots import SnapshotStore
from db.tables import Base
from planner.errors import ConflictError, NotAllowed

AT_ONCE = 500  # rows
# Filled by triggers as the rows come in; what they counted before goes along.
COUNTERS = ("evidence_revision",)


class Content(NamedTuple):
    """What a database holds: rows by table, and the head of every record by ADR id."""

    rows: dict[str, int]
    heads: dict[str, str]


class _Sum(NamedTuple):
    """How many rows a table has, and a sum over their hashes that does not depend on their order."""

    rows: int = 0
    hashes: int = 0

    def plus(self, row: tuple[object, ...]) -> _Sum:
        hashed = int.from_bytes(hashlib.sha256(repr(row).encode()).digest())
        return _Sum(self.rows + 1, (self.hashes + hashed) % (1 << 256))


def rows_of(connection: Connection) -> dict[str, int]:
    """How many rows every table has, those first that others refer to."""
    return {t.name: connection.execute(select(func.count()).select_from(t)).scalar_one() for t in _tables(connection)}


def copy(source: Database, target: Database, heads: dict[str, str]) -> Content:
    """Copy everything while nobody else writes to either; `heads` are those of the source.

    Raises NotAllowed for a target that holds anything or a source whose log is broken, ConflictError when what arrived
    differs from what was sent. Nothing is stored then.
    """
    with source.write() as reading, target.write() as writing:
        sent, arrived = reading.connection(), writing.connection()
        for name, rows in rows_of(arrived).items():
            if rows:
                raise NotAllowed(f"holds {rows} {'row' if rows == 1 else 'rows'} in {name} already.", where=target.url,
                                 fix="Name an empty database.")  # fmt: skip
        _must_be_whole(source, heads)
        copied = {}
        for table in _tables(arrived):
            if table.name in COUNTERS:
                arrived.execute(table.delete())
            copied[table.name] = _copied(sent, arrived, table)
            _count_on(arrived, table)
        for table in _tables(arrived):
            if _sum_of(arrived, table) != copied[table.name]:
                raise ConflictError(f"{table.name} did not arrive as it was sent; nothing was stored.",
                                    where=target.url, fix="Move again; if it stays so, tell us.")  # fmt: skip
        _must_be_whole(target, heads)
    return Content({name: s.rows for name, s in copied.items()}, heads)


def _must_be_whole(database: Database, heads: dict[str, str]) -> None:
    broken = Audit(database, SnapshotStore(database)).broken(heads, nothing_after=True)
    if broken:
        raise NotAllowed(f"the log is broken: {broken[0]}", where=database.url,
                         fix="Find out what happened before it goes anywhere: python cli.py adr verify.")  # fmt: skip


def _tables(connection: Connection) -> list[Table]:
    """Ours, those first that others refer to, counters last."""
    known = {t.name: t for t in Base.metadata.sorted_tables}
    order = [name for name, _ in inspect(connection).get_sorted_table_and_fkc_names() if name in known]
    return [known[name] for name in sorted(order, key=lambda name: name in COUNTERS)]


def _read(connection: Connection, table: Table) -> Iterator[tuple[object, ...]]:
    """All rows, a few at a time; by their key, so that what was added first comes first."""
    query = select(table).order_by(*table.primary_key).execution_options(yield_per=AT_ONCE)
    for row in connection.execute(query):
        yield tuple(row)


def _copied(sent: Connection, arrived: Connection, table: Table) -> _Sum:
    names, total, waiting = [c.name for c in table.columns], _Sum(), []
    for row in _read(sent, table):
        total = total.plus(row)
        waiting.append(dict(zip(names, row, strict=True)))
        if len(waiting) == AT_ONCE:
            arrived.execute(insert(table), waiting)
            waiting = []
    if waiting:
        arrived.execute(insert(table), waiting)
    return total


def _sum_of(connection: Connection, table: Table) -> _Sum:
    total = _Sum()
    for row in _read(connection, table):
        total = total.plus(row)
    return total


def _count_on(connection: Connection, table: Table) -> None:
    """Have PostgreSQL number the next row after the last; SQLite does so by itself."""
    if connection.dialect.name != POSTGRESQL.name or "id" not in table.columns:
        return
    sequence = connection.execute(select(func.pg_get_serial_sequence(table.name, "id"))).scalar_one()
    if sequence:
        connection.execute(text(f"SELECT setval('{sequence}', max(id)) FROM {table.name} HAVING count(*) > 0"))
