"""Many values made at once, without Python's garbage collector walking over them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made before the young are walked, walks of the young before the middle, and of the middle before all.
_SELDOM = (10_000, 20, 20)


def collect_seldom() -> None:
    """For a process that serves pages: all that lives is walked once in dozens of answers.

    The figures of a large case are 0.4 s of a walk, in which nobody is served.
    """
    gc.set_threshold(*_SELDOM)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector, which would walk everything that is made several times while none of it is waste."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
