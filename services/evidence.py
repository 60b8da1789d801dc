"""Taking bundles in: verified, kept, summarised, stored whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bundle.folder import bundle_sha256, find_bundles, open_bundle
from bundle.manifest import MANIFEST, Manifest
from bundle.migrate import read_manifest
from bundle.run_data import RunData, read_run
from bundle.summary import evidence_of
from db.runs import Run, TakenIn
from planner.conditions import Condition, Kind
from planner.errors import BundleError, FliplineError
from services.workspace import UNFINISHED, Workspace, now


def take_in(
    ws: Workspace, case: str, folder: Path, author: str, conditions: Sequence[Condition] = (),
    service_levels: Sequence[Condition] = (),
) -> TakenIn:  # fmt: skip
    """Verify one bundle, keep a copy, and store its run and evidence: all or nothing.

    Raises BundleError for a bundle that is incomplete or altered.
    """
    data = read_run(folder)
    evidence = list(evidence_of(data, tuple(conditions), tuple(service_levels)))
    contracts = {e.contract: data.manifest.contract for e in evidence if e.contract}
    with ws.store.transaction():
        kept = _keep(ws, folder, data.sha256)
        return ws.store.runs.take_in(_run(case, data, kept, author), evidence, contracts)


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


def _keep(ws: Workspace, folder: Path, sha256: str) -> Path:
    """Copy a bundle into the workspace, whole or not at all: a good copy stays, a damaged one is replaced.

    What is new goes again when the open transaction is undone. Raises BundleError when the copy cannot be made.
    """
    target = ws.runs / sha256[:16]
    stood = target.exists()  # asked before the copying: what appears meanwhile is somebody else's good copy
    if _is_whole(target, sha256):
        return target
    scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=ws.runs))
    try:
        _copy_sealed(folder, scratch / "new")
        if stood and not _is_whole(target, sha256):
            target.rename(scratch / "damaged")
        (scratch / "new").rename(target)
        if not stood:
            ws.store.when_undone(lambda: shutil.rmtree(target, ignore_errors=True))
    except OSError as e:
        if not _is_whole(target, sha256):  # else somebody else was faster, with the same bytes
            raise BundleError(f"cannot be kept: {e.strerror or e}.", where=str(folder),
                              fix=f"Make room in {ws.runs}, or make it writable.") from e  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _copy_sealed(folder: Path, target: Path) -> None:
    """Copy what the seal covers; what else lies there, or where a link leads, was not looked at."""
    for name in (MANIFEST, *open_bundle(folder).files):
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, file)


def _is_whole(folder: Path, sha256: str) -> bool:
    try:
        return (folder / MANIFEST).is_file() and bundle_sha256(folder) == sha256 and bool(open_bundle(folder))
    except (FliplineError, OSError):
        return False


def _run(case: str, data: RunData, kept: Path, author: str) -> Run:
    m = data.manifest
    fired = tuple(dict.fromkeys(f"{r.point.name}: {f}" for r in data.repeats for f in r.findings))
    return Run(
        sha256=data.sha256, id=m.id, case=case, plan_sha256=m.plan_sha256, candidate=m.candidate, stage=m.stage,
        start=m.start, kind=Kind(m.kind), status=m.status, created_at=m.created_at, findings=m.findings + fired,
        manifest=(kept / MANIFEST).read_bytes(), path=kept.name, imported_at=now(), imported_by=author,
    )  # fmt: skip


def manifest_of(run: Run) -> Manifest:
    """The manifest of a run as it is stored; raises BundleError for one that cannot be read."""
    return _manifest(run.manifest, f"run {run.id}")


@lru_cache(maxsize=512)
def _manifest(body: bytes, where: str) -> Manifest:
    return read_manifest(body, where)


def read_kept(ws: Workspace, run: Run) -> RunData:
    """Read a kept bundle again, verified; raises BundleError when it was altered since."""
    return _read_kept(ws.runs / run.path, run.sha256, run.id)


def _read_kept(folder: Path, sha256: str, name: str) -> RunData:
    if not (folder / MANIFEST).is_file() or bundle_sha256(folder) != sha256:
        raise BundleError("the kept bundle is missing or was altered.", where=name, fix="Take it in again.")
    return read_run(folder)
