"""Taking bundles in: verified, kept, summarised, stored whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bundle.folder import bundle_sha256, find_bundles, open_bundle, unpack
from bundle.manifest import MANIFEST
from bundle.summary import RunData, evidence_of, read_run, summarise
from db.runs import Run, TakenIn
from planner.condition_line import format_condition, parse_condition
from planner.conditions import Condition, Evidence, Kind
from planner.errors import BundleError
from services.workspace import Workspace, now


def take_in(
    ws: Workspace, case: str, folder: Path, author: str, conditions: Sequence[Condition] = (),
    service_levels: Sequence[Condition] = (),
) -> TakenIn:  # fmt: skip
    """Verify one bundle, keep a copy, and store its run and evidence: all or nothing.

    Raises BundleError for a bundle that is incomplete or altered.
    """
    data = read_run(folder)
    evidence = list(evidence_of(data, tuple(conditions), tuple(service_levels)))
    kept = _keep(ws, folder, data.sha256)
    return ws.store.runs.take_in(
        _run(case, data, kept, author), evidence, {data.manifest.contract.material_hash(): data.manifest.contract}
    )


def take_in_all(
    ws: Workspace, case: str, root: Path, author: str, conditions: Sequence[Condition] = (),
    service_levels: Sequence[Condition] = (),
) -> tuple[TakenIn, ...]:  # fmt: skip
    """Take in every bundle under a folder, all or none; raises BundleError when there is none."""
    found = find_bundles(root)
    if not found:
        raise BundleError("holds no bundle.", where=str(root), fix="Choose the folder that bench wrote to.")
    for folder in found:
        open_bundle(folder)
    with ws.store.transaction():
        return tuple(take_in(ws, case, f, author, conditions, service_levels) for f in found)


def take_in_zip(
    ws: Workspace, case: str, name: str, content: bytes, author: str, conditions: Sequence[Condition] = (),
    service_levels: Sequence[Condition] = (),
) -> tuple[TakenIn, ...]:  # fmt: skip
    """Take in an uploaded .zip of bundles."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "upload.zip"
        archive.write_bytes(content)
        try:
            unpack(archive, Path(scratch) / "bundles")
        except BundleError as e:
            raise BundleError(e.what, where=name, fix=e.fix) from None
        return take_in_all(ws, case, Path(scratch) / "bundles", author, conditions, service_levels)


def _keep(ws: Workspace, folder: Path, sha256: str) -> Path:
    """Copy a bundle into the workspace; the copy appears whole or not at all."""
    target = ws.runs / sha256[:16]
    if not target.is_dir():
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=ws.runs))
        shutil.copytree(folder, part, dirs_exist_ok=True)
        part.rename(target)
    return target


def _run(case: str, data: RunData, kept: Path, author: str) -> Run:
    m = data.manifest
    fired = tuple(dict.fromkeys(f"{r.point.name}: {f}" for r in data.repeats for f in r.findings))
    return Run(
        sha256=data.sha256, id=m.id, case=case, plan_sha256=m.plan_sha256, candidate=m.candidate, stage=m.stage,
        start=m.start, kind=Kind(m.kind), status=m.status, created_at=m.created_at, findings=m.findings + fired,
        manifest=(kept / MANIFEST).read_bytes(), path=kept.name, imported_at=now(), imported_by=author,
    )  # fmt: skip


def read_kept(ws: Workspace, run: Run) -> RunData:
    """Read a kept bundle again, verified; raises BundleError when it was altered since."""
    folder = ws.runs / run.path
    if not folder.is_dir() or bundle_sha256(folder) != run.sha256:
        raise BundleError("the kept bundle is missing or was altered.", where=run.id, fix="Take it in again.")
    return read_run(folder)


def counted_for(
    ws: Workspace, runs: Sequence[Run], evidence: Sequence[Evidence], conditions: Sequence[Condition]
) -> tuple[Evidence, ...]:
    """The same evidence with every asked threshold counted: bundles are summarised again where one is missing."""
    asked = {
        (c.metric, c.statistic, c.threshold, c.comparison)
        for c in conditions
        if c.comparison in ("<=", ">=") and c.statistic.startswith("p") and not c.over
    }
    missing = {
        e.id
        for e in evidence
        for m, s, threshold, op in asked
        if e.kind in (Kind.MEASURED, Kind.SIMULATED)
        and (e.metric, e.statistic) == (m, s)
        and e.beyond(threshold, op) is None
    }
    if not missing:
        return tuple(evidence)
    lines = tuple(sorted({format_condition(c) for c in conditions}))
    again: dict[str, Evidence] = {}
    for run in runs:
        if any(i.startswith(run.sha256[:12]) for i in missing):
            again |= {e.id: e for e in _summary(ws.runs / run.path, run.sha256, lines)}
    return tuple(again[e.id].model_copy(update={"spoiled_by": e.spoiled_by}) if e.id in missing and e.id in again else e
                 for e in evidence)  # fmt: skip


@lru_cache(maxsize=64)
def _summary(folder: Path, sha256: str, lines: tuple[str, ...]) -> tuple[Evidence, ...]:
    """Keyed by the bundle's hash too: another bundle in the same place is another summary."""
    return tuple(summarise(folder, [parse_condition(line) for line in lines]))
