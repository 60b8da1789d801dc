"""The decision log searched and filtered: all words, best field first, by what is written and by how it stands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple

from decisions.flips import FlipState
from decisions.record import Adr, Status
from planner.condition_line import format_condition
from planner.errors import UnknownName
from services.due import due_of
from services.workspace import Workspace, now

Flips = Literal["fired", "near"]
_TERM = re.compile(r'"([^"]*)"|(\S+)')
_NUMBER = re.compile(r"(?:adr-?)?0*(\d{1,6})", re.IGNORECASE)


class Field(NamedTuple):
    """A part of an ADR that is searched, what a word in it counts, its texts, and all of them as they are searched."""

    name: str
    weight: int
    texts: tuple[str, ...]
    even: str


class Hit(NamedTuple):
    """An ADR that has every word; `fields` are where they stand, the one that counts most first."""

    adr: Adr
    weight: int
    fields: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """What the log is filtered by; None or empty lets everything through.

    `year` is that of the acceptance; `due` a day: what should have been looked at by then; `owner` looks after a
    condition.
    """

    words: str = ""
    case: str | None = None
    status: Status | None = None
    tag: str | None = None
    owner: str | None = None
    flips: Flips | None = None
    due: date | None = None
    year: int | None = None


class Choices(NamedTuple):
    """What occurs in the log, to choose from."""

    tags: tuple[str, ...]
    owners: tuple[str, ...]
    years: tuple[int, ...]


def terms(words: str) -> tuple[str, ...]:
    """The words of a query, and phrases between quotes, as they are searched."""
    return tuple(found for m in _TERM.finditer(_even(words)) if (found := (m[1] or m[2] or "").strip(' "')))


def search(
    ws: Workspace, words: str = "", *, case: str | None = None, status: Status | None = None, tag: str | None = None,
    owner: str | None = None, fired: bool = False, near: bool = False, due: date | None = None,
    year: int | None = None,
) -> tuple[Hit, ...]:  # fmt: skip
    """ADRs of the store that have every word and pass every filter, as `found_in` orders them.

    `case` is an id or slug; raises UnknownName.
    """
    id = ws.store.cases.get(case).id if case else None
    flips: Flips | None = "fired" if fired else "near" if near else None
    wanted = Wanted(words, id, status, tag, owner, flips, due, year)
    return found_in(ws.store.adrs.all(), wanted, near=near_ids(ws) if near else frozenset())


def found_in(adrs: Iterable[Adr], wanted: Wanted, near: frozenset[str] = frozenset()) -> tuple[Hit, ...]:
    """ADRs that have every word and pass every filter: best first where words are given, else newest first.

    `near` are ids of ADRs with a condition that is near.
    """
    asked = terms(wanted.words)
    kept = [a for a in adrs if _passes(a, wanted, near)]
    hits = [hit for a in reversed(kept) if (hit := _hit(a, asked))]
    return tuple(sorted(hits, key=lambda h: -h.weight)) if asked else tuple(hits)


def near_ids(ws: Workspace) -> frozenset[str]:
    """ADRs in force with a condition that was near when it was judged last."""
    adrs = {a.id: a for a in ws.store.adrs.all(status=Status.ACCEPTED)}
    return frozenset(
        adr
        for case in {a.case for a in adrs.values()}
        for (adr, condition), judged in ws.store.verdicts.latest(case).items()
        if adr in adrs and judged.state == FlipState.NEAR and not adrs[adr].condition(condition).retired
    )


def choices(adrs: Iterable[Adr]) -> Choices:
    """Tags, owners and years that occur."""
    listed = list(adrs)
    return Choices(
        tags=tuple(sorted({t for a in listed for t in a.tags}, key=str.casefold)),
        owners=tuple(sorted({o for a in listed for o in owners(a)}, key=str.casefold)),
        years=tuple(sorted({a.accepted_at.year for a in listed if a.accepted_at}, reverse=True)),
    )


def owners(adr: Adr) -> tuple[str, ...]:
    """Who looks after the conditions that are not retired."""
    return tuple(dict.fromkeys(c.owner for c in adr.active_conditions if c.owner))


def due_on(adr: Adr) -> date | None:
    """The first day on which somebody promised to look again; None once it is closed."""
    return next((d.on for d in due_of((adr,), date.max, 0)), None)


def find_adr(ws: Workspace, name: str) -> Adr:
    """The ADR of that id or number, as in 7, 0007 or ADR-0007; raises UnknownName."""
    adrs = ws.store.adrs.all()
    number = _NUMBER.fullmatch(name.strip())
    for a in adrs:
        if a.id == name.strip() or (number and a.number == int(number[1])):
            return a
    known = (f"ADR-{a.number:04d}" if a.number else a.id for a in adrs)
    raise UnknownName.from_known("ADR", name, known)


def excerpt(adr: Adr, words: str, around: int = 60) -> str:
    """The best place outside the title where the first word stands, with some text around it; else empty."""
    for term in terms(words)[:1]:
        best = next((f for f in _indexed(adr)[1:] if term in f.even), None)
        for text in best.texts if best else ():
            shown = unicodedata.normalize("NFKC", " ".join(text.split()))
            if m := re.search(re.escape(term), shown, re.IGNORECASE):
                begin, end = max(0, m.start() - around), m.end() + around
                return ("…" if begin else "") + shown[begin:end] + ("…" if end < len(shown) else "")
    return ""


def _passes(adr: Adr, wanted: Wanted, near: frozenset[str]) -> bool:
    return all((
        wanted.case is None or adr.case == wanted.case,
        wanted.status is None or adr.status is wanted.status,
        wanted.tag is None or wanted.tag in adr.tags,
        wanted.owner is None or wanted.owner in owners(adr),
        wanted.flips != "fired" or adr.waits,
        wanted.flips != "near" or adr.id in near,
        wanted.due is None or bool(due_of((adr,), wanted.due, 0)),
        wanted.year is None or (adr.accepted_at is not None and adr.accepted_at.year == wanted.year),
    ))  # fmt: skip


def _hit(adr: Adr, asked: Sequence[str]) -> Hit | None:
    """A hit when every term stands somewhere; each counts by the best field that has it."""
    if not asked:
        return Hit(adr, 0)
    weight, where = 0, dict[str, None]()
    indexed = _indexed(adr)
    for term in asked:
        best = next((f for f in indexed if term in f.even), None)
        if best is None:
            return None
        weight += best.weight
        where[best.name] = None
    return Hit(adr, weight, tuple(where))


# An ADR is read for searching once, until its content is another one; kept by id, compared by content.
_INDEX: dict[str, tuple[Adr, tuple[Field, ...]]] = {}
_LARGEST_INDEX = 20_000  # ADRs


def _indexed(adr: Adr) -> tuple[Field, ...]:
    kept = _INDEX.get(adr.id)
    if kept and (kept[0] is adr or kept[0] == adr):
        return kept[1]
    if len(_INDEX) >= _LARGEST_INDEX:
        _INDEX.clear()
    fields = tuple(Field(name, weight, texts, _even("\n".join(texts))) for name, weight, texts in _parts(adr))
    _INDEX[adr.id] = adr, fields
    return fields


def _parts(adr: Adr) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """What is searched, with its weight, the most telling first: the title has to stay the first."""
    options = (part for o in adr.options for part in (o.title, o.summary, *o.pros, *o.neutral, *o.cons))
    people = (*adr.people.decided, *adr.people.consulted, *adr.people.informed, adr.accepted_by, *owners(adr))
    follows = adr.consequences
    conditions = (
        part
        for c in adr.conditions
        for part in (c.id, c.statement, format_condition(c.condition) if c.condition else "", c.consequence)
    )
    return (
        ("title", 9, (f"ADR-{adr.number:04d}" if adr.number else "", adr.title)),
        ("tags", 7, adr.tags),
        ("headline", 6, (adr.headline,)),
        ("chosen option", 5, (adr.chosen, adr.outcome)),
        ("options", 4, tuple(options)),
        ("conditions", 4, tuple(conditions)),
        ("drivers", 3, adr.drivers),
        ("context", 3, (adr.context,)),
        ("consequences", 3, (*follows.good, *follows.neutral, *follows.bad)),
        ("people", 3, people),
        ("confirmation", 2, (adr.confirmation, adr.evidence_absent)),
        ("comments", 1, tuple(part for c in adr.comments for part in (c.author, c.text))),
    )


def _even(text: str) -> str:
    """Text as it is searched: full and half width alike, upper and lower case alike, line breaks as spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def today() -> date:
    """The day against which what is due is held."""
    return now().date()


def as_rows(hits: Iterable[Hit], slugs: Mapping[str, str]) -> list[dict[str, object]]:
    """Hits as plain values, for JSON and tables; `slugs` are cases by id."""
    return [
        {
            "id": h.adr.id, "number": h.adr.number, "title": h.adr.title, "status": h.adr.status.value,
            "case": slugs.get(h.adr.case, h.adr.case), "headline": h.adr.headline, "tags": list(h.adr.tags),
            "accepted_by": h.adr.accepted_by, "accepted_at": h.adr.accepted_at, "due_on": due_on(h.adr),
            "fired": [f.condition for f in h.adr.fires if h.adr.waits], "found_in": list(h.fields),
        }
        for h in hits
    ]  # fmt: skip
