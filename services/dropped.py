"""Files that somebody drops: bundles are found in them, be they zipped, loose or in folders of folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bundle.folder import find_bundles, unpack
from planner.errors import BundleError, FliplineError

ZIP = ".zip"
File = tuple[str, bytes]  # name, with its folders where it was dropped with them, and content


class Found(NamedTuple):
    """A bundle by the name that the person knows, and where it lies now."""

    name: str
    folder: Path


class Broken(NamedTuple):
    """What could not be taken in, by the name that the person knows, and why."""

    name: str
    error: FliplineError


class Dropped(NamedTuple):
    """Bundles that were found, in the order of their names, and archives that could not be opened."""

    found: tuple[Found, ...]
    broken: tuple[Broken, ...]


@contextmanager
def laid_out(files: Sequence[File]) -> Iterator[Dropped]:
    """The bundles among dropped files, on disk for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        yield _of_folder(_written(root / "loose", files), root / "unpacked")


@contextmanager
def in_place(path: Path) -> Iterator[Dropped]:
    """The bundles of a folder or .zip on this machine; raises BundleError when there is nothing at `path`."""
    if not path.exists():
        raise BundleError("is not there.", where=str(path), fix="Name the folder that bench wrote to, or its .zip.")
    with tempfile.TemporaryDirectory() as scratch:
        yield _of_folder(path, Path(scratch)) if path.is_dir() else _of_archives(path.parent, [path], Path(scratch))


def _written(root: Path, files: Iterable[File]) -> Path:
    root.mkdir()
    fix = "Drop the folder that bench wrote to."
    for name, content in files:
        target = root / name
        try:
            if not target.resolve().is_relative_to(root.resolve()) or not Path(name).name:
                raise BundleError("points outside the folder.", where=name, fix=fix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except ValueError:  # a NUL byte, half a character
            raise BundleError("is no name of a file.", where=ascii(name), fix=fix) from None
        except OSError as e:
            raise BundleError(f"cannot be laid out: {e.strerror}.", where=name, fix=fix) from None
    return root


def _of_folder(root: Path, scratch: Path) -> Dropped:
    loose = [Found(_under(root, f) or root.name, f) for f in find_bundles(root)]
    archives = sorted(p for p in root.rglob("*") if p.suffix.lower() == ZIP and p.is_file())
    found, broken = _of_archives(root, archives, scratch)
    return Dropped((*loose, *found), broken)


def _of_archives(root: Path, archives: Sequence[Path], scratch: Path) -> Dropped:
    found: list[Found] = []
    broken: list[Broken] = []
    for i, archive in enumerate(archives):
        name, target = _under(root, archive), scratch / str(i)
        try:
            found += [Found(str(Path(name, _under(target, f))), f) for f in unpack(archive, target)]
        except BundleError as e:
            broken.append(Broken(name, BundleError(e.what, where=name, fix=e.fix)))
    return Dropped(tuple(found), tuple(broken))


def _under(root: Path, path: Path) -> str:
    return "" if path == root else str(path.relative_to(root))


def by_its_name(found: Found, error: FliplineError) -> FliplineError:
    """The same error, said by the name that the person knows and not by where the bundle lies now."""
    inside = Path(error.where).relative_to(found.folder) if error.where.startswith(str(found.folder)) else Path()
    return type(error)(error.what, where=str(Path(found.name) / inside), fix=error.fix)
