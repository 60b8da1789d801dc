"""A decision file of another tool: MADR 2 to 4, Nygard and variants. What no field takes is kept as it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from pydantic import ValidationError

from decisions.madr_lists import bullet_of, bullets, day_of, in_words, names, plain_title, targets
from decisions.madr_reader import MadrFile
from decisions.madr_words import part_of, status_of
from decisions.record import AdrText, Consequences, Option, People, Section, Status
from planner.errors import InputError
from planner.faults import first_fault

_CHOSEN = re.compile(
    r"(?:Chosen option|選んだ選択肢)\s*:\s*"
    r'(?:"(?P<quoted>.+?)"|「(?P<kagi>.+?)」|\*\*(?P<bold>.+?)\*\*|(?P<bare>[^,\n]+?))'
    r"(?:\s*[,、]\s*(?:because|理由:|since)\s*(?P<because>.*))?$", re.IGNORECASE | re.DOTALL,
)  # fmt: skip
_SIDE = re.compile(r"^(?P<side>good|neutral|bad)\s*,\s*(?:because|as)\s+(?P<words>.*)$", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"^(?P<name>[A-Za-z][\w /-]{1,30}?)\s*:\s*(?P<value>.*)$", re.DOTALL)
_PREFIX = re.compile(r"^(?:ADR[- ]?)?(\d{1,5})(?:[.:]| -| –)\s*", re.IGNORECASE)
_SUPERSEDES = re.compile(r"\bsuper[sc]edes\b|\breplaces\b|置き換える", re.IGNORECASE)
_SUPERSEDED = re.compile(r"\bsuper[sc]eded\s+by\b|\breplaced\s+by\b|置き換えた", re.IGNORECASE)
_PEOPLE = {
    "decided": ("decision-makers", "deciders", "decision makers", "decider", "author", "authors"),
    "consulted": ("consulted",), "informed": ("informed",),
}  # fmt: skip
_LABELS = ("status", "date", "tags", *(k for keys in _PEOPLE.values() for k in keys))


class Read(NamedTuple):
    """A decision as its file tells it. Links are file names or numbers as text; `status_words` is what stood there.

    `accepted` is by whom and when, `comments` author, day and words, `opinions` as the block has them, in a file that
    Flipline wrote.
    """

    text: AdrText
    status: Status
    status_words: str
    number: int | None
    day: date | None
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    accepted: tuple[str, date | None] = ("", None)
    comments: tuple[tuple[str, date | None, str], ...] = ()
    opinions: tuple[Mapping[str, Any], ...] = ()


class _Foreign:
    """Takes a file of another tool apart, part by part; what is left over is kept."""

    def __init__(self, file: MadrFile) -> None:
        self.file = file
        self.labels: dict[str, str] = {str(k): in_words(v) for k, v in file.front.items()}
        self.fields: dict[str, Any] = {}
        self.options: dict[str, dict[str, Any]] = {}
        self.sides: dict[str, list[str]] = {"good": [], "neutral": [], "bad": []}
        self.kept: list[Section] = []
        self.links = ""
        self.status = ""

    def read(self) -> None:
        """Walk over the parts; what lies inside one that is not understood goes with it."""
        self._keep("Introduction", self._labelled(self.file.preamble))
        under, until = None, 0  # the part of the second level, and the level of one that is kept whole
        for part in self.file.parts:
            if until and part.level > until:
                continue
            named, until = part_of(part.heading, ours=False), 0
            under = named if part.level <= 2 else under
            take = getattr(self, f"_{named}", None)
            if under == "pros" and part.level >= 3:
                self._option(part.heading, part.markdown)
            elif named and take:
                take(part.heading, part.markdown)
            else:
                until = part.level if part.level > 1 else 0
                self.kept.append(Section(heading=part.heading, markdown=part.whole if until else part.markdown))

    def _labelled(self, markdown: str) -> str:
        """Read `* Status: accepted` and the like; give back the rest."""
        rest = []
        for line in markdown.split("\n"):
            label = _LABEL.match((bullet_of(line) or line).strip())
            name = label["name"].strip().lower() if label else ""
            if label and name in _LABELS and name not in self.labels:
                self.labels[name] = re.sub(r"<!--.*?-->", "", label["value"]).strip()
            else:
                rest.append(line)
        return "\n".join(rest)

    def _keep(self, heading: str, markdown: str) -> None:
        """What a part holds beyond what its field takes."""
        if re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL).strip():
            also = heading if part_of(heading, ours=True) in (None, "links") else f"Also under {heading}"
            self.kept.append(Section(heading=also, markdown=markdown.strip("\n")))

    def _text(self, field: str, heading: str, markdown: str) -> None:
        if field in self.fields:
            self._keep(heading, markdown)
        elif markdown.strip():
            self.fields[field] = markdown.strip()

    def _context(self, heading: str, markdown: str) -> None:
        self._text("context", heading, markdown)

    def _confirmation(self, heading: str, markdown: str) -> None:
        self._text("confirmation", heading, markdown)

    def _drivers(self, heading: str, markdown: str) -> None:
        found, rest = bullets(markdown)
        self.fields["drivers"] = (*self.fields.get("drivers", ()), *found)
        self._keep(heading, rest)

    def _options(self, heading: str, markdown: str) -> None:
        found, rest = bullets(markdown)
        for title in found:
            self.options.setdefault(plain_title(title)[:300], {})
        self._keep(heading, rest)

    def _outcome(self, heading: str, markdown: str) -> None:
        paragraphs = re.split(r"\n\s*\n", markdown.strip())
        at = next((i for i, p in enumerate(paragraphs) if re.match(r"(Chosen option|選んだ選択肢)\s*:", p)), None)
        chosen = _CHOSEN.match(paragraphs[at]) if at is not None else None
        if chosen is None or at is None:
            self._text("outcome", heading, markdown)
            return
        named = next(g for g in (chosen["quoted"], chosen["kagi"], chosen["bold"], chosen["bare"]) if g)
        self.fields["chosen"] = plain_title(named)[:300]
        rest = [*paragraphs[:at], *([chosen["because"]] if chosen["because"] else []), *paragraphs[at + 1 :]]
        self._text("outcome", heading, "\n\n".join(rest))

    def _consequences(self, heading: str, markdown: str, side: str = "neutral") -> None:
        found, rest = bullets(markdown)
        for words in found:
            told = _SIDE.match(words)
            self.sides[told["side"].lower() if told else side].append(told["words"] if told else words)
        for paragraph in filter(None, (p.strip() for p in re.split(r"\n\s*\n", rest))):
            if found or re.search(r"^\s*(```|~~~|\||#|<)", paragraph, re.MULTILINE):
                self._keep(heading, paragraph)
            else:
                self.sides[side].append(paragraph)

    def _good(self, heading: str, markdown: str) -> None:
        self._consequences(heading, markdown, "good")

    def _bad(self, heading: str, markdown: str) -> None:
        self._consequences(heading, markdown, "bad")

    def _neutral(self, heading: str, markdown: str) -> None:
        self._consequences(heading, markdown, "neutral")

    def _pros(self, heading: str, markdown: str) -> None:
        self._keep(heading, markdown)

    def _option(self, heading: str, markdown: str) -> None:
        title = plain_title(heading)[:300]
        same = next((t for t in self.options if t.casefold() == title.casefold()), title)
        option = self.options.setdefault(same, {})
        found, rest = bullets(markdown)
        for words in found:
            told = _SIDE.match(words)
            field = {"good": "pros", "bad": "cons"}.get(told["side"].lower(), "neutral") if told else "neutral"
            option[field] = (*option.get(field, ()), told["words"] if told else words)
        option["summary"] = "\n\n".join(x for x in (option.get("summary", ""), rest.strip()) if x)

    def _links(self, heading: str, markdown: str) -> None:
        self.links += f"\n{markdown}"
        self._keep(heading, markdown)

    def _more(self, heading: str, markdown: str) -> None:
        self._links(heading, markdown)

    def _status(self, heading: str, markdown: str) -> None:
        self.links += f"\n{markdown}"
        lines = [x.strip() for x in markdown.split("\n") if x.strip() and not x.strip().startswith("<!--")]
        self.status = self.status or (lines[0].lstrip("*+- ") if lines else "")
        one_word = len(lines) == 1 and re.fullmatch(r"\W*\w+\W*", lines[0])
        self._keep("Status history", "" if one_word else "\n".join(lines))

    def _date(self, heading: str, markdown: str) -> None:
        self.labels.setdefault("date", markdown.strip())


def foreign_text(file: MadrFile, where: str) -> Read:
    """The text of a file of another tool; raises InputError where a field cannot stand."""
    read = _Foreign(file)
    read.read()
    numbered = _PREFIX.match(file.title)
    words = read.labels.get("status") or read.status
    fields: dict[str, Any] = {
        **read.fields,
        "title": plain_title(file.title[numbered.end() :] if numbered else file.title) or file.title,
        "options": tuple(Option(title=title, **parts) for title, parts in read.options.items() if title),
        "consequences": Consequences(**{side: tuple(found) for side, found in read.sides.items()}),
        "people": {who: names(next((read.labels[k] for k in keys if read.labels.get(k)), ""))
                   for who, keys in _PEOPLE.items()},
        "tags": names(read.labels.get("tags", "")),
        "kept": (*read.kept, *_other_fields(file.front)),
    }  # fmt: skip
    try:
        fields["people"] = People.model_validate(fields["people"])
        text = AdrText.model_validate(fields)
    except ValidationError as e:
        raise InputError(first_fault(e), where=where, fix="Shorten it, or write it as its template has it.") from None
    linked = f"{words}\n{read.links}"
    return Read(
        text, status_of(words) or Status.PROPOSED, words, int(numbered[1]) if numbered else None,
        day_of(read.labels.get("date")), targets(linked, _SUPERSEDES), targets(linked, _SUPERSEDED),
    )  # fmt: skip


def _other_fields(front: dict[str, Any]) -> tuple[Section, ...]:
    """Front matter that no field takes, as it would be written again."""
    other = "\n".join(f"{k}: {in_words(v)}" for k, v in front.items() if k not in (*_LABELS, "title"))
    return (Section(heading="Front matter", markdown=f"```\n{other}\n```"),) if other else ()
