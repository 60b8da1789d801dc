"""The database that a workspace keeps its data in: what it is, whether it is whole, and how it moves to another."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from db.engines import file_of, shown
from db.store import Content, Description, open_store
from decisions.chain import Broken
from planner.errors import InputError, NotAllowed
from services.workspace import database_url, home_folder


class Checked(NamedTuple):
    """A database, and the first broken link of every record that has one."""

    description: Description
    broken: tuple[Broken, ...]


class Moved(NamedTuple):
    """What was copied from where to where. `runs` is the folder of the bundles, which stay in it."""

    source: str
    target: str
    content: Content
    runs: Path


def check_database(home: Path | None = None, url: str | None = None) -> Checked:
    """Open the database of a workspace, or the one at `url`, and verify its log.

    Raises InputError where there is none.
    """
    where = url or database_url(home_folder(home))
    _must_be_there(where)
    store = open_store(where)
    try:
        return Checked(store.description(), store.adrs.verify())
    finally:
        store.close()


def move_database(home: Path | None, to: str, source: str | None = None) -> Moved:
    """Copy everything from a workspace's database, or the one at `source`, into an empty one; the old one stays.

    Raises InputError where there is no database to copy, NotAllowed when the target is not empty, the log is broken or
    a job is running.
    """
    folder = home_folder(home)
    old_url = source or database_url(folder)
    _must_be_there(old_url)
    if file_of(to) == "":
        raise InputError("is in memory, and gone when this command ends.", where=shown(to), fix="Name a file.")
    if shown(old_url) == shown(to) or _same_file(file_of(old_url), file_of(to)):
        raise NotAllowed("is the database that the data is in.", where=shown(to),
                         fix="Name another one, or the old one with --from.")  # fmt: skip
    old = open_store(old_url)
    try:
        new = open_store(to)
        try:
            return Moved(old.url, new.url, old.copy_to(new), folder / "runs")
        finally:
            new.close()
    finally:
        old.close()


def _must_be_there(url: str) -> None:
    path = file_of(url)
    if path is not None and not Path(path).is_file():
        raise InputError("there is no such file.", where=path or shown(url),
                         fix="Name the database, or the workspace with --home.")  # fmt: skip


def _same_file(one: str | None, other: str | None) -> bool:
    """Whether two paths lead to the same file, by whatever way."""
    return bool(one and other and Path(other).exists() and Path(one).samefile(other))
