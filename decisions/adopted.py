"""Decisions out of other people's files as records: links resolved at both ends, numbers kept, the way each one went.

What a file tells is a state, not a history: the edits say when it was decided and that it came from that file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from decisions.edits import Accepted, Amended, Commented, Created, Deprecated, Edit, Proposed, Rejected, Superseded
from decisions.madr_foreign import Read
from decisions.madr_lists import day_of
from decisions.opinions import Approved, Objected, ObjectionAnswered
from decisions.record import AdrText, Status

_DECIDED = (Status.ACCEPTED, Status.SUPERSEDED, Status.DEPRECATED)


class Found(NamedTuple):
    """A decision that was read from a file, and the id that it has or gets."""

    id: str
    file: str
    read: Read

    @property
    def number(self) -> int | None:
        """Its number: the file's own, else the one in its name."""
        digits = self.file.rsplit("/", 1)[-1].split("-", 1)[0]
        return self.read.number or (int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None)


class Links(NamedTuple):
    """What supersedes what, by id: `by` is the successor of an ADR, `of` what an ADR supersedes."""

    by: Mapping[str, str]
    of: Mapping[str, tuple[str, ...]]


def linked(found: Iterable[Found]) -> Links:
    """Resolve links by file name or number; one end is enough, and nothing supersedes what supersedes it."""
    decisions = list(found)
    named = {f.file.rsplit("/", 1)[-1]: f.id for f in decisions} | {f.id: f.id for f in decisions}
    numbered = {str(f.number): f.id for f in reversed(decisions) if f.number is not None}  # MADR's own begin with 0000
    by: dict[str, str] = {}

    def resolved(reference: str) -> str | None:
        return named.get(reference) or numbered.get(reference)

    def link(old: str | None, new: str | None) -> None:
        if old and new and old != new and old not in by and not _leads_to(by, new, old):
            by[old] = new

    of: dict[str, list[str]] = {}
    for f in decisions:
        for reference in f.read.superseded_by:
            link(f.id, resolved(reference))
    for f in decisions:
        for reference in (*f.read.supersedes, *f.read.text.supersedes):
            old = resolved(reference)
            if f.read.status in _DECIDED:
                link(old, f.id)
            elif old:  # a proposal replaces nothing yet
                of.setdefault(f.id, []).append(old)
    for old, new in by.items():
        of.setdefault(new, []).append(old)
    return Links(by, {id: tuple(dict.fromkeys(olds)) for id, olds in of.items()})


def _leads_to(by: Mapping[str, str], start: str, end: str) -> bool:
    while start in by:
        start = by[start]
        if start == end:
            return True
    return start == end


def edits_of(found: Found, links: Links, number: int, *, case: str, by: str, at: datetime) -> tuple[Edit, ...]:
    """The record of one decision; `number` is the one it gets where it was ever accepted.

    `at` stands in where the file names no day.
    """
    read = found.read
    day = _moment(read.day, at)
    source = f"imported from {found.file}"
    supersedes = tuple(dict.fromkeys((*read.text.supersedes, *links.of.get(found.id, ()))))
    text = read.text.model_copy(update={"supersedes": supersedes})
    common: dict[str, Any] = {"at": day, "author": by, "reason": source}
    edits: list[Edit] = [Created(**common, adr=found.id, case=case, text=text), Proposed(**common)]
    edits += _opinions(read.opinions, text, day, common)
    status = Status.SUPERSEDED if found.id in links.by else read.status
    who, when = read.accepted
    decided = _moment(when, day)
    if status in _DECIDED:
        author = who or ", ".join(read.text.people.decided)[:200] or by
        edits.append(Accepted(at=decided, author=author, reason=source, number=number))
    edits += [Commented(at=_moment(on, day), author=name or by, text=words) for name, on, words in read.comments]
    if status is Status.REJECTED:
        edits.append(Rejected(**common))
    elif status is Status.SUPERSEDED and found.id in links.by:
        edits.append(Superseded(**common, by=links.by[found.id]))
    elif status in (Status.SUPERSEDED, Status.DEPRECATED):
        lost = f": {read.status_words}, which is not here" if status is Status.SUPERSEDED else ""
        edits.append(Deprecated(**{**common, "reason": f"{source}{lost}"}))
    return tuple(edits)


def _opinions(
    told: Iterable[Mapping[str, Any]], text: AdrText, otherwise: datetime, common: Mapping[str, Any]
) -> Iterator[Edit]:  # fmt: skip
    """Who approved and who objected; what was said of a text before an amendment stands before one."""
    rows = tuple(told)
    amended = max((n for n, o in enumerate(rows) if o.get("outdated")), default=None)
    for n, o in enumerate(rows):
        yield from _opinion(o, _moment(day_of(o.get("day")), otherwise))
        if n == amended:
            yield Amended(**common, text=text)


def _opinion(o: Mapping[str, Any], at: datetime) -> Iterator[Edit]:
    who, reason = str(o.get("author", "")), str(o.get("reason", ""))
    yield (Objected if o.get("stance") == "objects" else Approved)(at=at, author=who, reason=reason)
    if o.get("answer"):
        yield ObjectionAnswered(at=at, author=str(o.get("answered_by", "")), objector=who, reason=str(o["answer"]))


def numbers(found: Iterable[Found], taken: Collection[int]) -> dict[str, int]:
    """A number for each decision: its own where that is free, else the next after all others."""
    decisions = list(found)
    used = set(taken)
    given: dict[str, int] = {}
    for f in decisions:
        if f.number and f.number not in used:
            given[f.id] = f.number
            used.add(f.number)
    following = max(used, default=0)
    for f in decisions:
        if f.id not in given:
            following += 1
            given[f.id] = following
    return given


def _moment(day: date | None, otherwise: datetime) -> datetime:
    return datetime.combine(day, time(), UTC) if day else otherwise
