"""The judged items of quality sets, read from kept bundles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from bundle.manifest import MANIFEST
from bundle.migrate import read_manifest
from bundle.quality import Judged, items_of, read_quality
from db.runs import Run
from planner.conditions import Evidence
from planner.errors import BundleError, FliplineError
from planner.known import Known
from services.workspace import Workspace


def with_items(ws: Workspace, runs: Iterable[Run], known: Known) -> Known:
    """The same figures with the items of every pass rate: those stored before items were kept get them from the bundle.

    A figure whose bundle is gone or altered stays without.
    """
    by_source = {r.sha256[:12]: r for r in runs}
    found: dict[str, tuple[tuple[str, bool], ...]] = {}
    rates = known.of_metric("pass_rate")
    for e in rates:
        if not e.items and e.source in by_source:
            try:
                found[e.id] = items_of(judged_items(ws, by_source, e))
            except FliplineError:
                continue
    if not found:
        return known
    with_them = [e.model_copy(update={"items": found[e.id]}) if e.id in found else e for e in rates]
    return known.with_metrics({"pass_rate": with_them})


def judged_items(ws: Workspace, runs: Mapping[str, Run], e: Evidence) -> tuple[Judged, ...]:
    """The judged items behind one figure, `runs` by its source; none where it came from no bundle.

    Raises BundleError when they were altered or are gone.
    """
    run = runs.get(e.source)
    return _of_repeat(ws.runs / run.path, run.manifest, e.load_point or "", e.repeat or 1) if run else ()


@lru_cache(maxsize=256)
def _of_repeat(folder: Path, manifest: bytes, point: str, repeat: int) -> tuple[Judged, ...]:
    read = read_manifest(manifest, where=MANIFEST)
    name = next((r.quality for r in read.repeats if (r.load_point, r.repeat) == (point, repeat)), None)
    if name is None:
        return ()
    path = folder / name
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != read.files.get(name):
        raise BundleError("the judged items are missing or were altered.", where=str(path), fix="Take it in again.")
    return read_quality(path)
