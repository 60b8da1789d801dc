"""Where a team's data lives, and the clock: opened once, handed to every use case."""

from __future__ import annotations

import os
import shutil
import time
import tomllib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from db.store import Store, open_store
from planner.catalog import Catalog, load_catalog
from planner.errors import InputError
from planner.printable import printable

ROOT = Path(__file__).resolve().parent.parent
UNFINISHED = ".part-"  # begins the name of a folder that is still being copied
ABANDONED_AFTER_S = 3600
URL_VARIABLE = "FLIPLINE_DATABASE_URL"
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


class Workspace(NamedTuple):
    """Store, catalogue and the folder that keeps bundles and jobs."""

    store: Store
    catalog: Catalog
    home: Path

    @property
    def runs(self) -> Path:
        """Where bundles are kept after they were taken in."""
        return self.home / "runs"

    @property
    def jobs(self) -> Path:
        """Where bench writes while it measures."""
        return self.home / "jobs"


def now() -> datetime:
    """The one place that asks the clock."""
    return datetime.now(UTC)


def signed_by(name: str, where: str) -> str:
    """The name of who does something, as it will stand in the record; raises InputError when there is none."""
    if not printable(name).strip():
        raise InputError("nobody is named.", where=where, fix="Write your name first.")
    if len(name.strip()) > 200:
        raise InputError("the name is longer than 200 characters.", where=where, fix="Shorten it.")
    return name.strip()


def home_folder(home: Path | None = None) -> Path:
    """Where this team's data lives: `home`, else FLIPLINE_HOME, else var/."""
    return (home or Path(os.environ.get("FLIPLINE_HOME") or ROOT / "var")).resolve()


def database_url(home: Path) -> str:
    """Where the data of the workspace at `home` is kept: FLIPLINE_DATABASE_URL, else a file in it."""
    return os.environ.get(URL_VARIABLE) or f"sqlite:///{home / 'flipline.db'}"


def open_catalog(home: Path | None = None) -> Catalog:
    """The catalogue with the own entries of a workspace; what is wrong among them stands in its `refused`."""
    overlay = home_folder(home) / "catalog"
    return load_catalog(overlay=overlay if overlay.is_dir() else None, tolerant=True)


def open_workspace(home: Path | None = None, url: str | None = None) -> Workspace:
    """Open the workspace at `home` (FLIPLINE_HOME, else var/), its database at `url` (FLIPLINE_DATABASE_URL).

    Raises InputError for a folder that cannot be made and a database that is none of ours, SchemaTooNew for one of a
    newer Flipline.
    """
    folder = home_folder(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"cannot be made a folder: {e.strerror}.", where=str(folder),
                         fix="Name a folder you may write to, by --home or FLIPLINE_HOME.") from None  # fmt: skip
    workspace = Workspace(
        open_store(url or database_url(folder)),
        open_catalog(folder),
        folder,
    )
    workspace.runs.mkdir(exist_ok=True)
    workspace.jobs.mkdir(exist_ok=True)
    _sweep(workspace.runs)
    return workspace


def _sweep(runs: Path) -> None:
    """Remove what a process left half copied when it died; what is younger than an hour may still be in the making."""
    for part in runs.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):  # another process sweeps too
            if time.time() - part.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(part, ignore_errors=True)
