"""A bundle as a folder: sealed by the hashes in its manifest, verified before anything is believed."""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from bundle.manifest import MANIFEST, Manifest
from bundle.migrate import read_manifest
from planner.errors import BundleError

MOST_MEMBERS = 100_000  # of an archive
# A bundle is Parquet, which hardly shrinks, and logs, which shrink twenty times. Small archives are let pass.
LARGEST_RATIO, SMALL_BYTES = 100, 256 * 2**20
LONGEST_NAME = 200


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Hash every file in the folder into the manifest and write it last, in one rename."""
    files = {
        str(p.relative_to(folder)): file_sha256(p)
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != MANIFEST and not p.name.endswith(".part")
    }
    sealed = manifest.model_copy(update={"files": files})
    part = folder / f"{MANIFEST}.part"
    part.write_text(sealed.model_dump_json(indent=1), encoding="utf-8")
    part.replace(folder / MANIFEST)
    return sealed


def open_bundle(folder: Path) -> Manifest:
    """Read and verify a bundle.

    Raises BundleError naming the missing or altered file, SchemaTooNew for a newer format.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise BundleError("is not a bundle: manifest.json is missing.", where=str(folder),
                          fix="Choose the folder that bench wrote for one start.")  # fmt: skip
    manifest = read_manifest(path.read_bytes(), str(folder))
    _fits_together(manifest, str(folder))
    for name, expected in manifest.files.items():
        if not name.isprintable() or any(len(part.encode()) > 255 for part in PurePosixPath(name).parts):
            raise BundleError(f"{name[:80]!r} cannot be the name of a file.", where=str(folder),
                              fix="Use the original bundle.")  # fmt: skip
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()):
            raise BundleError(f"{name} points outside the bundle.", where=str(folder))
        if not file.is_file():
            raise BundleError(f"{name} is missing.", where=str(folder), fix="Copy the bundle again, whole.")
        if file_sha256(file) != expected:
            raise BundleError(f"{name} was altered after the run.", where=str(folder), fix="Use the original bundle.")
    return manifest


def _fits_together(m: Manifest, where: str) -> None:
    """What a manifest names is in it, once: load points among its points, files with a hash; its times are times."""
    points = {p.name for p in m.points}
    for what, names in (("point", [p.name for p in m.points]),
                        ("repeat", [f"{r.load_point} {r.repeat}" for r in m.repeats])):  # fmt: skip
        twice = next((name for name, n in Counter(names).items() if n > 1), None)
        if twice:
            raise BundleError(f"{what} {twice} stands twice.", where=where, fix="Use the original bundle.")
    if not m.candidate.isprintable() or len(m.candidate) > LONGEST_NAME:
        raise BundleError(f"{m.candidate[:80]!r} cannot be the name of a candidate.", where=where,
                          fix="Use the original bundle.")  # fmt: skip
    for what, named in (("repeat", m.repeats), ("figure", m.figures)):
        for item in named:
            if item.load_point not in points:
                raise BundleError(f"a {what} names load point {item.load_point!r}, which is not among the points.",
                                  where=where, fix="Use the original bundle.")  # fmt: skip
    for repeat in m.repeats:
        for name in (repeat.records, repeat.telemetry, repeat.quality):
            if name is not None and name not in m.files:
                raise BundleError(f"{name} is not listed with a hash.", where=where, fix="Use the original bundle.")
    for field, text in (("created_at", m.created_at), ("finished_at", m.finished_at)):
        if _moment(text) is None:
            raise BundleError(f"{field} {text!r} is no time with its time zone.", where=where,
                              fix="Use the original bundle.")  # fmt: skip


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):  # the first and the last day of the calendar have no UTC everywhere
        return None


def bundle_sha256(folder: Path) -> str:
    """Identity of a bundle: the hash of its manifest, which holds the hashes of all files."""
    return file_sha256(folder / MANIFEST)


def find_bundles(root: Path) -> list[Path]:
    """All bundle folders at or under `root`, in name order."""
    return sorted(p.parent for p in root.rglob(MANIFEST))


def unpack(archive: Path, target: Path) -> list[Path]:
    """Unpack a .zip of one or more bundles and return their folders.

    Raises BundleError for something that is no zip, a damaged or encrypted one, one that unpacks to far more than any
    bundle does, or a member that would land outside.
    """
    way_out = "Zip the folder that bench wrote."
    try:
        with zipfile.ZipFile(archive) as z:
            _must_be_of_a_size(z, archive)
            for info in z.infolist():
                if not (target / info.filename).resolve().is_relative_to(target.resolve()):
                    raise BundleError(f"{info.filename} points outside the archive.", where=archive.name)
            z.extractall(target)
    except zipfile.BadZipFile as e:
        what = "is not a zip archive." if "not a zip" in str(e) else f"is damaged: {e}."
        raise BundleError(what, where=archive.name, fix=way_out) from None
    except (zlib.error, lzma.LZMAError, EOFError) as e:
        raise BundleError(f"is damaged: {e}.", where=archive.name, fix=way_out) from None
    except NotImplementedError as e:
        raise BundleError(f"is packed in a way that is not read here: {e}.", where=archive.name, fix=way_out) from None
    except RuntimeError:  # what zipfile raises for a password
        raise BundleError("is encrypted.", where=archive.name, fix="Zip it without a password.") from None
    except OSError as e:
        raise BundleError(f"cannot be unpacked: {e.strerror or e}.", where=archive.name, fix=way_out) from None
    except ValueError:
        raise BundleError("holds a file whose name cannot be read.", where=archive.name, fix=way_out) from None
    found = find_bundles(target)
    if not found:
        raise BundleError("holds no bundle.", where=archive.name, fix=way_out)
    return found


def _must_be_of_a_size(z: zipfile.ZipFile, archive: Path) -> None:
    """Refuse what would fill the disk; a member gives no more bytes than it states, or it is damaged."""
    members, size = z.infolist(), archive.stat().st_size
    unpacked = sum(info.file_size for info in members)
    if not all(info.filename for info in members):
        raise BundleError("holds a file without a name.", where=archive.name, fix="Zip the folder that bench wrote.")
    if len(members) > MOST_MEMBERS:
        raise BundleError(f"holds {len(members):,} files.", where=archive.name, fix="Zip bundles alone.")
    if unpacked > max(SMALL_BYTES, LARGEST_RATIO * size):
        raise BundleError(f"would unpack from {size / 1e6:,.1f} to {unpacked / 1e6:,.0f} MB, which no bundle does.",
                          where=archive.name, fix="Zip the folder that bench wrote.")  # fmt: skip


def pack(folders: list[Path], archive: Path) -> None:
    """Write bundles into one .zip."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        for folder in folders:
            for p in sorted(folder.rglob("*")):
                if p.is_file():
                    z.write(p, f"{folder.name}/{p.relative_to(folder)}")
