"""Whether the tables of a bundle can be what a client saw: figures from them decide, and a hash proves no truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from planner.errors import BundleError

# A load point has a million requests at most (planner/loads.py), and as many again may keep it up or disturb it. A
# table of equal rows packs into next to nothing, so that its size on disk says nothing about the memory it takes.
MOST_ROWS, MOST_VALUES = 2_000_000, 300_000_000
FURTHEST_S = 1e8  # three years from the beginning of a repeat
SLACK_S = 1.0  # a request that ends before it begins, by more than clocks differ
OUTCOMES = ("ok", "failed", "undetermined")
COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens", "asked_prompt_tokens", "asked_output_tokens")
ORDER = (("scheduled_s", "first_token_s"), ("scheduled_s", "end_s"), ("first_token_s", "last_token_s"),
         ("dispatched_s", "first_token_s"), ("dispatched_s", "end_s"))  # fmt: skip
Columns = Mapping[str, pa.ChunkedArray]


def must_fit(metadata: Any, path: Path) -> None:
    """Raise BundleError, before anything is read, for a table that no run writes."""
    values = sum(
        group.column(j).num_values
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for j in range(group.num_columns)
    )
    if metadata.num_rows > MOST_ROWS or values > MOST_VALUES:
        raise BundleError(f"holds {metadata.num_rows:,} rows with {values:,} values, more than a repeat can have.",
                          where=str(path), fix="Use the original bundle.")  # fmt: skip


def must_be_possible(columns: Columns, path: Path) -> None:
    """Raise BundleError for a value that no client can have seen."""
    fault = next(_faults(columns), None)
    if fault:
        raise BundleError(fault, where=str(path), fix="Use the original bundle.")


def _faults(columns: Columns) -> Iterator[str]:
    for name, column in columns.items():
        flat = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if flat is not column and flat.null_count:
            yield f"column {name!r} has empty places in its lists."
        if name.endswith("_s") and _any(pc.invert(pc.less_equal(pc.abs(flat), FURTHEST_S))):
            yield f"column {name!r} holds what is no time of this run."
        if name == "value" and _any(pc.invert(pc.is_finite(flat))):
            yield f"column {name!r} holds what is no number."
        if name in (*COUNTS, "chunk_tokens") and _any(pc.less(flat, 0)):
            yield f"column {name!r} holds less than 0."
    if "outcome" not in columns:
        return
    if _any(pc.invert(pc.is_in(columns["outcome"], pa.array(OUTCOMES)))):
        yield f"column 'outcome' holds something other than {', '.join(OUTCOMES)}."
    for before, after in ORDER:
        if _any(pc.less(columns[after], pc.subtract(columns[before], SLACK_S))):
            yield f"column {after!r} lies before {before!r} in some rows."
    lengths = pc.list_value_length(columns["chunk_s"])
    if _any(pc.not_equal(pc.list_value_length(columns["chunk_tokens"]), lengths)):
        yield "columns 'chunk_s' and 'chunk_tokens' differ in length."
    if "chunk_bound" in columns and _any(pc.greater(pc.list_value_length(columns["chunk_bound"]), lengths)):
        yield "column 'chunk_bound' is longer than 'chunk_s'."


def _any(found: pa.ChunkedArray) -> bool:
    return bool(pc.any(found).as_py())
