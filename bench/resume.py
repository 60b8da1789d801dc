"""What earlier runs of the same plan left in a folder, and what of it need not be made again.

Not repeated: a sealed bundle, and every point whose repeats had all ended in a start that was interrupted, by a person
or by kill -9. Such a start is sealed as a bundle of its own, because a bundle is one engine start: when bench ends, a
server of ours ends too, and its KV capacity and its warm caches with it. Repeated: the point that was under way, whole,
because its repeats belong to one warm-up; and start and preflight, because the remaining points meet a new start.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from bench.bundling import recover
from bench.engines import STOP_GRACE_S
from bench.lease import SUFFIX, alive, clean_up, read_lease
from bundle.folder import open_bundle
from bundle.manifest import CANCELLED, MANIFEST, Manifest
from planner.errors import BundleError, InputError, NotAllowed
from planner.poc import Plan


class Kept(NamedTuple):
    """What is there of one job: its final bundle, or those of interrupted starts with the points that they finished."""

    done: Manifest | None
    parts: tuple[Path, ...]
    points: frozenset[str]
    spent_s: float


def kept_of(plan: Plan, folder: Path) -> Kept:
    """Look at a job's folder and at those of its interrupted starts; an interrupted one is sealed and set aside.

    Raises InputError when the folder holds a bundle of another plan, BundleError when its bundle was altered.
    """
    if not (folder / MANIFEST).is_file() and folder.is_dir():
        recover(folder)
    done = None
    if (folder / MANIFEST).is_file():
        manifest = open_bundle(folder)
        if manifest.plan_sha256 != plan.sha256():
            raise InputError(f"holds {folder.name} of another plan.", where=str(folder.parent),
                             fix="Choose an empty folder.")  # fmt: skip
        if manifest.status == CANCELLED:
            set_aside(folder)
        else:
            done = manifest
    parts = {p: m for p in sorted(folder.parent.glob(f"{folder.name}.interrupted-*")) if (m := _part(plan, p))}
    points = frozenset(name for m in parts.values() for name in _finished_points(plan, m))
    spent_s = sum(_seconds(m) for m in (done, *parts.values()) if m)
    return Kept(done, tuple(parts), points, spent_s)


def _seconds(manifest: Manifest) -> float:
    if manifest.spent_s is not None:
        return manifest.spent_s
    return (datetime.fromisoformat(manifest.finished_at) - datetime.fromisoformat(manifest.created_at)).total_seconds()


def _part(plan: Plan, folder: Path) -> Manifest | None:
    try:
        manifest = open_bundle(folder)
    except BundleError:  # without a seal, or altered: nothing in it counts
        return None
    return manifest if manifest.plan_sha256 == plan.sha256() else None


def _finished_points(plan: Plan, manifest: Manifest) -> list[str]:
    ended = [r.load_point for r in manifest.repeats if r.stop_reason != CANCELLED]
    return [p.name for p in manifest.points if ended.count(p.name) >= plan.repeats]


def set_aside(folder: Path) -> None:
    """Keep what an interrupted run left in a folder beside it, under another name."""
    n = 1
    while (aside := folder.with_name(f"{folder.name}.interrupted-{n}")).exists():
        n += 1
    folder.rename(aside)


def fresh_folder(folder: Path) -> Path:
    """An empty folder of that name."""
    if folder.exists():
        set_aside(folder)
    folder.mkdir(parents=True)
    return folder


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Hold a folder of results for one run; the kernel lets it go however bench ends.

    Two at once would offer the sum of both loads to a server that each attached to, and write over each other's files.
    Raises NotAllowed while another bench holds it.
    """
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        raise NotAllowed("another bench is measuring into this folder.", where=str(out),
                         fix="Wait for it, or choose another folder.") from None  # fmt: skip
    except OSError:
        pass  # a file system that knows no locks
    try:
        yield
    finally:
        os.close(folder)


def end_leftovers(out: Path) -> list[str]:
    """End servers that a bench which was killed left running from this folder, and say so in one sentence each.

    Only what is proved to be ours is ended. Raises NotAllowed while the bench that started one is alive.
    """
    said = []
    for path in sorted(out.glob(f"*/*{SUFFIX}")):
        lease = read_lease(path)
        if lease and alive(lease.bench):
            raise NotAllowed(f"another bench (process {lease.bench.pid}) is measuring into this folder.",
                             where=str(out), fix="Wait for it, or choose another folder.")  # fmt: skip
        said += [f"leftover: ended {what}, which a bench that was killed had left."
                 for what in clean_up(path, STOP_GRACE_S)]  # fmt: skip
    return said
