"""Errors of the database as ours: what, where, the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError

from db.dialects import WAIT_MS
from planner.errors import ConflictError, FliplineError, InputError


class _Fault(NamedTuple):
    """What a SQLSTATE or words of the driver mean; {fault} is the first line of its message."""

    kind: type[FliplineError]
    what: str
    fix: str
    where: str = ""  # else the URL


_NOT_THERE = _Fault(InputError, "names something that is not stored here.", "Store the case, run or ADR first.",
                    "database")  # fmt: skip
_BUSY = _Fault(ConflictError, f"another process has been writing for {WAIT_MS // 1000} s.", "Try again in a moment.",
               "database")  # fmt: skip
_TAKEN = _Fault(ConflictError, "a stored row stands in the way ({fault}); nothing was stored.",
                "Reload and look at what is there.", "database")  # fmt: skip
_NO_RIGHT = _Fault(InputError, "this role may not do that ({fault}).",
                   "Ask the owner of the database for the right to create and write its tables.")  # fmt: skip
_READ_ONLY = _Fault(InputError, "can only be read ({fault}).", "Use the primary server, and a role that may write.")
_PASSWORD = _Fault(InputError, "refuses the user or the password.", "Check both in the URL.")
_NO_DATABASE = _Fault(InputError, "there is no such database.", "Have it made: CREATE DATABASE with ENCODING 'UTF8'.")
_FULL = _Fault(InputError, "takes no more ({fault}).", "Ask its administrator for connections or room.")
_DISK = _Fault(InputError, "cannot be read or written ({fault}).", "Make room on its disk, and see that it is sound.")
_UNREACHABLE = _Fault(InputError, "cannot be reached ({fault}).", "Check host, port and network, and that it runs.")
_NO_FILE = _Fault(InputError, "is not a Flipline database: {fault}.", "Choose another file.")
_UNFIT = _Fault(InputError, "holds what the database cannot keep ({fault}).", "Remove control characters.", "text")
_UNUSABLE = _Fault(InputError, "cannot be used: {fault}.", "Check the URL or path, and its permissions.")
# By the first characters of a SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html); the first that fits.
_STATES = {
    "23503": _NOT_THERE, "23": _TAKEN, "22": _UNFIT, "55P03": _BUSY, "40": _BUSY, "42501": _NO_RIGHT,
    "25006": _READ_ONLY, "53": _FULL, "57P": _UNREACHABLE, "08": _UNREACHABLE, "28": _PASSWORD, "3D": _NO_DATABASE,
}  # fmt: skip
# What a connection is refused for carries no SQLSTATE, and SQLite has none at all; the first that fits.
_WORDS = {
    "FOREIGN KEY constraint": _NOT_THERE,
    "constraint failed": _TAKEN,
    "is append-only": _TAKEN,
    "is locked": _BUSY,
    "readonly database": _READ_ONLY,
    "database or disk is full": _FULL,
    "disk I/O error": _DISK,
    "file is not a database": _NO_FILE,
    "cannot contain NUL": _UNFIT,
    "authentication failed": _PASSWORD,
    "no password supplied": _PASSWORD,
    "no pg_hba.conf entry": _PASSWORD,
    "role .* does not exist": _PASSWORD,
    "database .* does not exist": _NO_DATABASE,
    "too many clients|remaining connection slots": _FULL,
    "connection|server closed|consuming input|resolve host": _UNREACHABLE,
}  # fmt: skip


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the database as ours; `where` is the URL without its password."""
    try:
        yield
    except FliplineError:
        raise
    except DBAPIError as e:
        raise _ours(_cause(e), where) from e


def _cause(e: DBAPIError) -> DBAPIError:
    """What went wrong first: SQLite undoes all when its disk is full, so that leaving a savepoint fails after it."""
    before: BaseException | None = e
    while before is not None and "no such savepoint" in str(e.orig):
        before = before.__context__
        e = before if isinstance(before, DBAPIError) else e
    return e


def _ours(e: DBAPIError, where: str) -> FliplineError:
    message, state = str(e.orig).strip(), getattr(e.orig, "sqlstate", None)
    if state:
        fault = next((f for sign, f in _STATES.items() if state.startswith(sign)), _UNUSABLE)
    else:
        fault = next((f for sign, f in _WORDS.items() if re.search(sign, message)), _UNUSABLE)
    first = message.split("\n")[0].rstrip(".")
    return fault.kind(fault.what.format(fault=first), where=fault.where or where, fix=fault.fix)
