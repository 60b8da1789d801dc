"""Every error that a person may read.

FliplineError
├── InputError            what came in is wrong: a form, a file, a line, an answer
│   ├── UnknownName       a name that nothing here carries; says which one is near
│   └── SchemaTooNew      written by a newer Flipline than this one
├── ServerError           the server under test is not there, or does not speak as expected
├── BundleError           a run's folder is incomplete or was altered
├── ConflictError         somebody else was faster; nothing was stored
└── NotAllowed            the step needs something first, or a person's consent
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from planner.printable import printable


class FliplineError(Exception):
    """One sentence: what was wrong, where, and the way out."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        place = f"{where}: " if where else ""
        way_out = f" {fix}" if fix else ""
        super().__init__(printable(f"{place}{what}{way_out}"))


class InputError(FliplineError):
    """What came in from outside is wrong."""


class UnknownName(InputError):
    """A name that nothing here carries."""

    @classmethod
    def from_known(cls, kind: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """Build the error for an unknown `name` of a `kind`, with the nearest known names."""
        names = sorted(known)
        near = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
        spelled = next((n for n in names if near and n.lower() == near[0]), None)
        hint = f"Did you mean {spelled!r}?" if spelled else f"Known: {', '.join(names[:12])}."
        return cls(f"unknown {kind} {name!r}.", where=where, fix=hint)


class SchemaTooNew(InputError):
    """Written by a newer Flipline than this one."""


class ServerError(FliplineError):
    """The server under test is not there, or does not speak as expected."""


class BundleError(FliplineError):
    """A run's folder is incomplete or was altered."""


class ConflictError(FliplineError):
    """Somebody else was faster; nothing was stored."""


class NotAllowed(FliplineError):
    """The step needs something first, or a person's consent."""
