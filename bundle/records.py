"""Per-request records: one Parquet file per load point and repeat. Times in seconds after the repeat's t0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from bundle.plausible import must_be_possible, must_fit
from planner.errors import BundleError

Outcome = Literal["ok", "failed", "undetermined"]


class Record(NamedTuple):
    """One request. None is 'did not happen' or 'not known'; chunk lists hold every token-bearing chunk.

    prompt_tokens, output_tokens and cached_tokens come from the server's usage (last value); chunk_tokens are 0
    where the count in a chunk is not known. `chunk_bound` marks chunks whose time is only an upper bound, because the
    kernel had merged them with the next; () stands for none. `json_valid` is set where the answer was to fit a schema;
    0 asked prompt tokens: the prompt came from outside. `undetermined` is a request that we cancelled ourselves,
    or that this client could not send.
    """

    request: int
    cohort: str
    outcome: Outcome
    scheduled_s: float
    dispatched_s: float | None
    sent_s: float | None
    first_byte_s: float | None
    first_token_s: float | None
    first_visible_s: float | None
    last_token_s: float | None
    end_s: float | None
    chunk_s: list[float]
    chunk_tokens: list[int]
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    asked_prompt_tokens: int
    asked_output_tokens: int
    finish_reason: str
    http_status: int | None
    error_kind: str
    error: str
    reconnected: bool
    server_timings: str
    chunk_bound: tuple[bool, ...] = ()
    json_valid: bool | None = None
    connected_s: float | None = None  # when it had its connection: at once where one was open

    @property
    def is_load(self) -> bool:
        """It is one of those that the point counts, not one that keeps up or disturbs the load."""
        return self.cohort in ("load", "victim")


_TYPES = {
    "request": pa.int32(), "cohort": pa.string(), "outcome": pa.string(), "chunk_s": pa.list_(pa.float64()),
    "chunk_tokens": pa.list_(pa.int32()), "finish_reason": pa.string(), "error_kind": pa.string(),
    "error": pa.string(), "reconnected": pa.bool_(), "server_timings": pa.string(),
    "chunk_bound": pa.list_(pa.bool_()), "json_valid": pa.bool_(),
}  # fmt: skip
_COUNTS = (
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "asked_prompt_tokens",
    "asked_output_tokens",
    "http_status",
)
_TYPES |= dict.fromkeys(_COUNTS, pa.int32())
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in Record._fields])
MAY_BE_EMPTY = {"chunk_bound"} | {n for n, kind in get_type_hints(Record).items() if type(None) in get_args(kind)}
TELEMETRY_SCHEMA = pa.schema([("t_s", pa.float64()), ("name", pa.string()), ("value", pa.float64())])


class Sample(NamedTuple):
    """One telemetry reading: seconds after t0, role name as in the manifest, value."""

    t_s: float
    name: str
    value: float


def write_records(path: Path, records: list[Record]) -> None:
    """Write records as Parquet (zstd)."""
    columns = {name: [getattr(r, name) for r in records] for name in Record._fields}
    write_table(path, pa.table(columns, schema=SCHEMA))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table of SCHEMA or TELEMETRY_SCHEMA as it is kept."""
    pq.write_table(table, path, compression="zstd")


def read_records(path: Path) -> list[Record]:
    """Read records.

    Raises BundleError when the file is missing or is not such a table.
    """
    rows = _read(path, SCHEMA, optional=("chunk_bound", "json_valid", "connected_s"))
    return [Record(**row | {"chunk_bound": tuple(row.get("chunk_bound") or ())}) for row in rows]


def write_telemetry(path: Path, samples: list[Sample]) -> None:
    """Write telemetry samples as Parquet."""
    columns = {name: [getattr(s, name) for s in samples] for name in Sample._fields}
    write_table(path, pa.table(columns, schema=TELEMETRY_SCHEMA))


def read_telemetry(path: Path) -> list[Sample]:
    """Read telemetry samples; raises BundleError as read_records does."""
    return [Sample(**row) for row in _read(path, TELEMETRY_SCHEMA)]


def _read(path: Path, schema: pa.Schema, optional: Sequence[str] = ()) -> list[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            must_fit(file.metadata, path)
            table = file.read()
    except FileNotFoundError:
        raise BundleError("the file is missing.", where=str(path), fix="Copy the bundle again, whole.") from None
    except (OSError, pa.ArrowException) as e:
        raise BundleError(f"is not a readable table: {e}.", where=str(path)) from None
    known = [n for n in schema.names if n in table.column_names]
    missing = [n for n in schema.names if n not in known and n not in optional]
    if missing:
        raise BundleError(f"column {missing[0]!r} is missing.", where=str(path))
    twice = next((n for n in known if table.column_names.count(n) > 1), None)
    if twice:
        raise BundleError(f"column {twice!r} stands twice.", where=str(path), fix="Use the original bundle.")
    empty = next((n for n in known if n not in MAY_BE_EMPTY and table[n].null_count), None)
    if empty:
        raise BundleError(f"column {empty!r} has empty cells.", where=str(path), fix="Use the original bundle.")
    columns = {n: _cast(table[n], schema.field(n), path) for n in known}
    must_be_possible(columns, path)
    try:
        rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    except UnicodeDecodeError:
        raise BundleError("holds text that is not UTF-8.", where=str(path), fix="Use the original bundle.") from None
    return rows


def _cast(column: pa.ChunkedArray, field: pa.Field, path: Path) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise BundleError(f"column {field.name!r} holds {column.type}, not {field.type}.", where=str(path),
                          fix="Use the original bundle.") from None  # fmt: skip
