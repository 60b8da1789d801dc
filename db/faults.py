"""Errors of the database as ours: what, where, the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError

from db.dialects import WAIT_MS
from planner.errors import ConflictError, FliplineError, InputError


class _Fault(NamedTuple):
    """What a SQLSTATE, or words in the driver's message, mean; {fault} is the first line of that message."""

    sign: str
    kind: type[FliplineError]
    what: str
    fix: str


_NOT_THERE = _Fault("", InputError, "names something that is not stored here.", "Store the case, run or ADR first.")
_BUSY = _Fault("", ConflictError, f"another process has been writing for {WAIT_MS // 1000} s.", "Try again in a moment.")
_NO_RIGHT = _Fault("", InputError, "the role may not do this ({fault}).",
                   "Ask the database's owner for the right to create and write its tables.")  # fmt: skip
_READ_ONLY = _Fault("", InputError, "can only be read ({fault}).", "Use the primary server, and a role that may write.")
_PASSWORD = _Fault("", InputError, "refuses the user or the password.", "Check both in FLIPLINE_DATABASE_URL.")
_NO_DATABASE = _Fault("", InputError, "there is no such database.",
                      "Have it made: CREATE DATABASE with ENCODING 'UTF8'.")  # fmt: skip
_FULL = _Fault("", InputError, "takes no more connections or has no more room ({fault}).", "Ask its administrator.")
_UNREACHABLE = _Fault("", InputError, "cannot be reached ({fault}).", "Check host, port and network, and that it runs.")
# SQLSTATE by its first characters (postgresql.org/docs/current/errcodes-appendix.html), longest first
_STATES = (
    _NOT_THERE._replace(sign="23503"),
    _BUSY._replace(sign="55P03"), _BUSY._replace(sign="40"),
    _NO_RIGHT._replace(sign="42501"),
    _READ_ONLY._replace(sign="25006"),
    _FULL._replace(sign="53"),
    _UNREACHABLE._replace(sign="57P"), _UNREACHABLE._replace(sign="08"),
)  # fmt: skip
# What a connection is refused for has no SQLSTATE, and SQLite has none at all.
_WORDS = (
    _NOT_THERE._replace(sign="FOREIGN KEY"),
    _BUSY._replace(sign="database is locked"), _BUSY._replace(sign="database table is locked"),
    _READ_ONLY._replace(sign="attempt to write a readonly database"),
    _PASSWORD._replace(sign="authentication failed"), _PASSWORD._replace(sign="no password supplied"),
    _PASSWORD._replace(sign="no pg_hba.conf entry"),
    _FULL._replace(sign="too many clients"), _FULL._replace(sign="remaining connection slots"),
    _FULL._replace(sign="database or disk is full"),
    _UNREACHABLE._replace(sign="connection failed"), _UNREACHABLE._replace(sign="connection is bad"),
    _UNREACHABLE._replace(sign="connection timeout"), _UNREACHABLE._replace(sign="server closed the connection"),
    _UNREACHABLE._replace(sign="consuming input failed"), _UNREACHABLE._replace(sign="failed to resolve host"),
    _UNREACHABLE._replace(sign="connection is lost"),
)  # fmt: skip


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the database as ours; `where` is the URL without its password."""
    try:
        yield
    except FliplineError:
        raise
    except DBAPIError as e:
        raise _ours(e, where) from e


def _ours(e: DBAPIError, where: str) -> FliplineError:
    message = str(e.orig)
    first = message.strip().split("\n")[0]
    state = getattr(e.orig, "sqlstate", None)
    if state is None and _missing_database(message):
        return _said(_NO_DATABASE, first, where)
    for fault in _STATES:
        if state and state.startswith(fault.sign):
            return _said(fault, first, where)
    for fault in _WORDS:
        if not state and fault.sign in message:
            return _said(fault, first, where)
    if isinstance(e, IntegrityError):
        return ConflictError(f"a stored row stands in the way ({first}); nothing was stored.", where="database",
                             fix="Reload and look at what is there.")  # fmt: skip
    if isinstance(e, DataError):
        return InputError(f"holds what the database cannot keep ({first}).", where="text",
                          fix="Remove control characters and shorten it.")  # fmt: skip
    if isinstance(e, DatabaseError) and "file is not a database" in message:
        return InputError(f"is not a Flipline database: {first}.", where=where, fix="Choose another file.")
    return InputError(f"cannot be used: {first}.", where=where, fix="Check the URL or path, and its permissions.")


def _missing_database(message: str) -> bool:
    return 'database "' in message and '" does not exist' in message


def _said(fault: _Fault, message: str, where: str) -> FliplineError:
    place = "database" if fault in (_STATES[0], _WORDS[0]) or fault.kind is ConflictError else where
    return fault.kind(fault.what.format(fault=message), where=place, fix=fault.fix)
