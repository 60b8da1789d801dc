"""One repeat of a kept bundle, read on demand: only its own file, and of it only the columns that are asked.

The latencies are those of bundle/samples.py, on whole columns instead of records; a test holds the two together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bundle.folder import file_sha256
from bundle.manifest import Repeat
from bundle.records import SCHEMA
from db.runs import Run
from planner.errors import BundleError
from services.evidence import manifest_of
from services.workspace import Workspace

SCALARS = (
    "request", "cohort", "outcome", "scheduled_s", "dispatched_s", "first_token_s", "last_token_s", "end_s",
    "prompt_tokens", "output_tokens", "cached_tokens", "finish_reason", "http_status", "error_kind", "error",
)  # fmt: skip
CHUNKS = ("request", "cohort", "outcome", "chunk_s", "chunk_bound")
LOAD = ("load", "victim")  # the cohorts that a point counts


def requests(ws: Workspace, run: Run, repeat: Repeat) -> pd.DataFrame:
    """One row a request by its schedule, with ttft_ms and e2e_ms.

    Raises BundleError when the file is gone or altered.
    """
    frame = _table(_verified(ws, run, repeat.records), SCALARS).to_pandas()
    frame["ttft_ms"] = (frame.first_token_s - frame.scheduled_s) * 1000
    frame["e2e_ms"] = (frame.last_token_s - frame.scheduled_s) * 1000
    return frame.sort_values(["scheduled_s", "request"], ignore_index=True)


def token_gaps(ws: Workspace, run: Run, repeat: Repeat) -> tuple[pd.DataFrame, int]:
    """Gaps between tokens of the counted requests, and how many were left out as upper bounds.

    The frame has request, outcome, end_s (when the gap ended) and gap_ms, of each request by time. One row group is
    read after the other, so that memory is that of one. Raises BundleError as requests() does.
    """
    with pq.ParquetFile(_verified(ws, run, repeat.records)) as file:
        known = [c for c in CHUNKS if c in file.schema_arrow.names]
        groups = [gaps(file.read_row_group(i, columns=known)) for i in range(file.num_row_groups)]
    frames = [frame for frame, _ in groups] or [gaps(SCHEMA.empty_table())[0]]
    return pd.concat(frames, ignore_index=True), sum(left_out for _, left_out in groups)


def server_metrics(ws: Workspace, run: Run, repeat: Repeat) -> pd.DataFrame:
    """What the server said of itself in time: t_s, name, value; empty where it said nothing."""
    if repeat.telemetry is None:
        return pd.DataFrame({"t_s": pd.Series(dtype=float), "name": pd.Series(dtype=str),
                             "value": pd.Series(dtype=float)})  # fmt: skip
    return _table(_verified(ws, run, repeat.telemetry), ("t_s", "name", "value")).to_pandas()


def gaps(table: pa.Table) -> tuple[pd.DataFrame, int]:
    """Every gap between two tokens of the counted requests, and how many are left out: those that touch merged chunks.

    The table has CHUNKS; the frame is that of token_gaps().
    """
    table = table.filter(pc.is_in(table["cohort"], pa.array(LOAD)))
    times, lengths = _flat(table["chunk_s"])
    row = np.repeat(np.arange(len(lengths)), lengths)
    follows = np.zeros(len(times), bool)  # has a chunk before it in the same request
    follows[1:] = row[1:] == row[:-1]
    merged = _merged(table, lengths)
    spoiled = merged.copy()
    spoiled[1:] |= merged[:-1] & follows[1:]
    kept = np.flatnonzero(follows & ~spoiled)
    frame = pd.DataFrame({
        "request": table["request"].to_numpy()[row[kept]],
        "outcome": table["outcome"].to_numpy(zero_copy_only=False)[row[kept]],
        "end_s": times[kept], "gap_ms": (times[kept] - times[kept - 1]) * 1000,
    })  # fmt: skip
    return frame, int(follows.sum()) - len(kept)


def _merged(table: pa.Table, lengths: np.ndarray) -> np.ndarray:
    """Which chunks belong to a group that the kernel merged: those marked as upper bounds, and the one after each."""
    bound = np.zeros(int(lengths.sum()), bool)
    if "chunk_bound" in table.column_names:
        marks, marked = _flat(table["chunk_bound"])
        begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths
        place = np.repeat(begins - np.concatenate([[0], np.cumsum(marked)[:-1]]), marked) + np.arange(len(marks))
        inside = place < np.repeat(begins + lengths, marked)
        bound[place[inside].astype(int)] = marks[inside]
    after = np.zeros_like(bound)
    after[1:] = bound[:-1]
    starts = np.cumsum(lengths)[:-1]
    after[starts[starts < len(after)]] = False  # what the request before ended with is none of this one's
    return bound | after


def _flat(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a list column one after another, and how many each row has."""
    lists = column.combine_chunks()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    return values, pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)


def _verified(ws: Workspace, run: Run, name: str) -> Path:
    path = ws.runs / run.path / name
    expected = manifest_of(run).files.get(name)
    if not path.is_file() or file_sha256(path) != expected:
        raise BundleError(f"{name} is missing in the kept bundle or was altered.", where=run.id,
                          fix="Take the bundle in again.")  # fmt: skip
    return path


def _table(path: Path, columns: tuple[str, ...]) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns=[c for c in columns if c in file.schema_arrow.names])
    except (OSError, pa.ArrowInvalid) as e:
        raise BundleError(f"is not a readable table: {e}.", where=path.name) from None
