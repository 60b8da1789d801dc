"""Markdown files that somebody brings: a folder, a .zip or single files, each with its name and its bytes."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from planner.errors import InputError

MOST_FILES = 20_000
MOST_BYTES = 2 * 2**20
MOST_BYTES_IN_ALL = 200 * 2**20
_NOT_OURS = {".git", "node_modules", ".venv", "__pycache__"}


class Brought(NamedTuple):
    """One file: its name below the folder, its bytes, and where it lies, if it lies on this machine."""

    name: str
    body: bytes
    path: Path | None = None

    def text(self) -> str:
        """Its text; raises InputError with the line for what is no UTF-8, or too large for a decision."""
        if len(self.body) > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES // 2**20} MiB.", where=self.name,
                             fix="A decision is a page or two.")  # fmt: skip
        try:
            return self.body.decode("utf-8-sig")
        except UnicodeDecodeError as e:
            line = self.body[: e.start].count(b"\n") + 1
            raise InputError("is not UTF-8 text.", where=f"{self.name}, line {line}", fix="Save it as UTF-8.") from None


def brought(path: Path) -> tuple[Brought, ...]:
    """The Markdown files at a path in the order of their names; raises InputError where there are none."""
    if path.is_dir():
        found = _limited(_folder(path), path)
    elif path.suffix.lower() == ".zip" and path.is_file():
        found = unzipped(path.name, path.read_bytes())
    elif path.is_file():
        found = (Brought(path.name, _beginning(path), path),)
    else:
        raise InputError("is not there.", where=str(path), fix="Name a folder, a .zip or a .md file.")
    if not found:
        raise InputError("holds no Markdown file.", where=str(path), fix="Choose the folder of the decisions.")
    return found


def unzipped(name: str, body: bytes) -> tuple[Brought, ...]:
    """The Markdown files of an archive; raises InputError for what is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            entries = [i for i in archive.infolist() if i.filename.lower().endswith(".md") and not i.is_dir()]
            return _limited((Brought(i.filename, _entry(archive, i)) for i in
                             sorted(entries, key=lambda i: i.filename)), Path(name))  # fmt: skip
    except UnicodeDecodeError:
        raise InputError("holds a file whose name cannot be read.", where=name, fix="Zip the folder again.") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error, lzma.LZMAError) as e:
        raise InputError(f"cannot be opened: {e}.", where=name, fix="Zip the folder again, without a password.") from e


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:  # what is larger is refused by its text, and never read whole
        return stream.read(MOST_BYTES + 1)


def _folder(root: Path) -> Iterator[Brought]:
    for path in sorted(root.rglob("*.md")):
        inside = path.relative_to(root)
        if not _NOT_OURS & set(inside.parts) and path.is_file():
            name = inside.as_posix().encode(errors="backslashreplace").decode()  # a name may be no text at all
            yield Brought(name, _beginning(path), path)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MOST_BYTES + 1)


def _limited(files: Iterable[Brought], where: Path) -> tuple[Brought, ...]:
    found, size = [], 0
    for file in files:
        found.append(file)
        size += len(file.body)
        if len(found) > MOST_FILES or size > MOST_BYTES_IN_ALL:
            limit = f"{MOST_FILES:,} Markdown files" if len(found) > MOST_FILES else (
                f"{MOST_BYTES_IN_ALL // 2**20} MiB of Markdown")  # fmt: skip
            raise InputError(f"holds more than {limit}.", where=str(where),
                             fix="Choose the folder of the decisions alone.")  # fmt: skip
    return tuple(found)
