"""A metric that this Flipline does not know any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner import metrics


@contextmanager
def forgotten(metric: str) -> Iterator[None]:
    """Take it out of the table while the block runs; the table comes back in its order, which the docs follow."""
    tables = (metrics.METRICS, metrics._BY_NAME)
    kept = [dict(table) for table in tables]
    for table in tables:
        del table[metric]
    try:
        yield
    finally:
        for table, rows in zip(tables, kept, strict=True):
            table.clear()
            table.update(rows)
