"""An exported file that somebody edited, as in the review of a pull request, comes back as typed edits.

Nothing is dropped in silence: the file is read, what was read is written again, and what stands on one side only was
not understood and is refused. A refused file changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import unified_diff
from typing import Any, NamedTuple

from pydantic import ValidationError

from decisions.edits import Amended, Commented, ConditionAdded, ConditionRetired, Edit, RecheckMoved, ReviewMoved
from decisions.escaping import unescaped
from decisions.flip_condition import FlipCondition
from decisions.madr_own import (
    BELOW,
    comments_of,
    condition_from,
    language_of,
    named_parts,
    option_titles,
    table_rows,
    warnings_of,
)
from decisions.madr_reader import MadrFile, read_madr
from decisions.madr_text import text_of
from decisions.madr_words import WORDS, Language
from decisions.markdown import to_markdown
from decisions.record import Adr, AdrText, Status
from planner.errors import InputError
from planner.faults import first_fault
from planner.printable import printable

# Fields that follow from runs and other records; a hand cannot set them.
_NOT_BY_HAND = {"evidence": "figures come from bundles", "snapshots": "they are stored bytes",
                "sizing": "they are computed", "supersedes": "a superseding draft is begun in Flipline"}  # fmt: skip
_COMPUTED = (2, 3)  # columns of the table that a verdict fills: state and room left
_SAME_IN_THE_BLOCK = ("flipline", "id", "case", "number", "status", "superseded_by", "opinions")


class CameBack(NamedTuple):
    """What a file asks for: edits in their order, or why it is refused, with the difference to what was exported."""

    edits: tuple[Edit, ...]
    refused: tuple[str, ...]
    difference: str


def came_back(
    text: str, base: Adr, now: Adr, *, at: datetime, author: str, reason: str = "", where: str = "file"
) -> CameBack:  # fmt: skip
    """What an edited file asks for; `base` is the ADR as it was exported, `now` as it stands.

    What is in the record already asks for nothing. Raises InputError for a file that cannot be read.
    """
    file = read_madr(text, where)
    language = language_of(file)
    exported = to_markdown(base, warnings=warnings_of(file), language=language)
    mine = read_madr(exported)
    edited = text_of(file, where).text.model_copy(update={"conditions": _conditions(file, mine, base, where)})
    comments = _comments(file, base)
    changed = tuple(name for name in AdrText.model_fields if getattr(edited, name) != getattr(base, name))
    asked = _Asked(base, now, edited, at, author, reason)
    edits = (*asked.edits(changed), *asked.comments(comments.new))
    asked.refused += [f"a comment stays as it was written: {_few(x.split())}." for x in comments.gone]
    refused = (*_refused_in_block(file, mine), *asked.refused, *_not_understood(file, base, edited, language))
    shown = "\n".join(unified_diff(_shown(exported), _shown(text), "exported", where, n=1, lineterm=""))
    return CameBack((), refused, shown) if refused else CameBack(edits, (), shown)


class _Asked:
    """Turns changed fields into edits, as far as the status permits."""

    def __init__(self, base: Adr, now: Adr, edited: AdrText, at: datetime, author: str, reason: str) -> None:
        self.base, self.now, self.edited = base, now, edited
        self.common: dict[str, Any] = {"at": at, "author": author, "reason": reason}
        self.refused: list[str] = []

    def edits(self, changed: Iterable[str]) -> tuple[Edit, ...]:
        """The edits that changed fields ask for."""
        by_hand = []
        for name in changed:
            if name in _NOT_BY_HAND:
                self.refused.append(f"{name} cannot be changed by hand: {_NOT_BY_HAND[name]}.")
            elif getattr(self.now, name) != getattr(self.edited, name):
                by_hand.append(name)
        if self.now.status is Status.PROPOSED:
            return self._amended(by_hand)
        return tuple(edit for name in by_hand for edit in self._added(name))

    def comments(self, said: Iterable[str]) -> tuple[Edit, ...]:
        """Comments that the record does not have yet."""
        since = Counter(_bare(c.text) for c in self.now.comments[len(self.base.comments) :])
        asked = []
        for words in said:
            if since[_bare(words)] > 0:
                since[_bare(words)] -= 1
            else:
                asked.append(Commented(**self.common, text=words))
        return tuple(asked)

    def _amended(self, names: list[str]) -> tuple[Edit, ...]:
        for name in names:
            if getattr(self.now, name) != getattr(self.base, name):
                self.refused.append(f"{name} was changed in the log too since the file was written.")
        if not names or self.refused:
            return ()
        fields = self.now.text.model_dump() | {name: getattr(self.edited, name) for name in names}
        try:
            return (Amended(**self.common, text=AdrText.model_validate(fields)),)
        except ValidationError as e:
            self.refused.append(first_fault(e))
            return ()

    def _added(self, name: str) -> Iterator[Edit]:
        """What an accepted ADR still takes: conditions added or retired, another review date."""
        if self.now.status is Status.ACCEPTED and name == "review_on" and self.edited.review_on:
            yield ReviewMoved(**self.common, review_on=self.edited.review_on)
        elif self.now.status is Status.ACCEPTED and name == "conditions":
            yield from self._flips()
        else:
            self.refused.append(f"{name} of an ADR that is {self.now.status} does not change: write it as a comment, "
                                "or begin a draft that supersedes it.")  # fmt: skip

    def _flips(self) -> Iterator[Edit]:
        was, stand = ({c.id: c for c in adr.conditions} for adr in (self.base, self.now))
        wanted = {c.id: c for c in self.edited.conditions}
        for id, flip in wanted.items():
            if flip == was.get(id):  # as it was written: what happened to it in the log since stays
                continue
            if id not in stand:
                yield ConditionAdded(**self.common, condition=flip)
            elif flip.retired and not stand[id].retired:
                yield self._retired(id)
            elif flip.recheck_on and flip == stand[id].model_copy(update={"recheck_on": flip.recheck_on}) != stand[id]:
                why = str(self.common["reason"]) or "moved in the exported file"
                yield RecheckMoved(**{**self.common, "reason": why}, condition=id, recheck_on=flip.recheck_on)
            elif flip.model_copy(update={"retired": stand[id].retired}) != stand[id]:
                self.refused.append(f"flip condition {id} does not change once accepted: retire it, and add another.")
        for id in (c.id for c in self.base.active_conditions if c.id not in wanted):
            if id in stand and not stand[id].retired:
                yield self._retired(id)

    def _retired(self, id: str) -> ConditionRetired:
        why = str(self.common["reason"]) or "taken out of the exported file"
        return ConditionRetired(**{**self.common, "reason": why}, condition=id)


def _conditions(file: MadrFile, mine: MadrFile, base: Adr, where: str) -> tuple[FlipCondition, ...]:
    """Flip conditions as edited in the block or in the table, which both show them."""
    block = text_of(file, where).text.conditions
    rows, before = _written_rows(file), _written_rows(mine)
    if rows == before:
        return block
    table = tuple(_from_row(row, dict(zip(before, base.conditions, strict=False)).get(row), base, i)
                  for i, row in enumerate(rows))  # fmt: skip
    if block not in (base.conditions, table):
        raise InputError("the table of conditions and the block say different things.", where=where,
                         fix="Edit one of the two.")  # fmt: skip
    twice = next((id for id, n in Counter(c.id for c in table).items() if n > 1), None)
    if twice is not None:
        raise InputError(f"two rows of the table say the same condition, {twice}.", where=where,
                         fix="Change the condition of one, or take it out.")  # fmt: skip
    return table


def _written_rows(file: MadrFile) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(c for i, c in enumerate(row) if i not in _COMPUTED) for row in table_rows(file))


def _from_row(row: tuple[str, ...], same: FlipCondition | None, base: Adr, i: int) -> FlipCondition:
    """A row of the table: the condition that it stood for, else the one in its place, with what its cells say."""
    if same is not None:
        return same
    cells = ["" if c in ("–", "") else unescaped(c) for c in (*row, *[""] * 5)[:5]]
    line, fires_when, owner, recheck, consequence = cells
    line = row[0].strip("`").strip().replace(r"\|", "|")
    held = next((c for c in base.conditions if c.in_words() == line), None)
    manual = fires_when == "is so"
    fields: dict[str, Any] = {
        "id": held.id if held else _id_of(line, base, i), "statement" if manual else "condition": line,
        "fires_when": "holds" if manual else fires_when, "owner": owner, "recheck_on": recheck or None,
        "consequence": consequence,
    }  # fmt: skip
    if held:
        fields |= {"action": held.action.value, "retired": held.retired}
    return condition_from(fields)


def _id_of(line: str, base: Adr, i: int) -> str:
    words = "-".join(w for w in "".join(c if c.isascii() and c.isalnum() else " " for c in line.lower()).split())
    taken = {c.id for c in base.conditions}
    short = words[:40].strip("-") or "condition"
    return short if short not in taken else f"{short}-{i + 1}"


class _Comments(NamedTuple):
    """Comments that a hand wrote, in their order, and those of the record that it changed or took out."""

    new: tuple[str, ...]
    gone: tuple[str, ...]


def _comments(file: MadrFile, base: Adr) -> _Comments:
    left = Counter(_bare(f"{c.author}, {c.at:%Y-%m-%d}: {c.text}") for c in base.comments)
    new = []
    for who, day, words in comments_of(file):
        entry = _bare(f"{who}, {day}: {words}" if who else words)
        if left[entry] > 0:
            left[entry] -= 1
        else:
            new.append(f"{who}: {words}" if who else words)
    return _Comments(tuple(new), tuple(left.elements()))


def _bare(words: str) -> str:
    """Words as a file can hold them at all, however its lines are broken."""
    return " ".join(printable(words).split())


def _refused_in_block(file: MadrFile, mine: MadrFile) -> Iterator[str]:
    theirs, ours = file.machine or {}, mine.machine or {}
    for key in _SAME_IN_THE_BLOCK:
        if theirs.get(key) != ours.get(key):
            yield f"{key} in the block is {theirs.get(key)!r}, and was {ours.get(key)!r}: a hand cannot change it."
    titles = option_titles(file)
    orphans = [t for t in theirs.get("candidates") or {} if t not in titles]
    if orphans and set(titles) - set(option_titles(mine)):  # renamed; one that is gone needs no candidate
        yield f"candidates in the block name {orphans[0]!r}, which is no option any more: rename it there too."
    words, was = str(file.front.get("status") or ""), str(mine.front.get("status") or "")
    if words != was and not (was == "superseded" and words.startswith("superseded by ")):
        yield f"status is {words!r}, and was {was!r}: it changes in Flipline, where acceptance checks what is missing."


def _not_understood(file: MadrFile, base: Adr, edited: AdrText, language: Language) -> Iterator[str]:
    """Words that were read back from nowhere, or that were lost: reading and writing again has to give the same."""
    whole = base.model_copy(update={name: getattr(edited, name) for name in AdrText.model_fields})
    again = read_madr(to_markdown(whole, warnings=warnings_of(file), language=language))
    theirs, ours = Counter(_told(file)), Counter(_told(again))
    added, gone = list((theirs - ours).elements()), list((ours - theirs).elements())
    if added:
        yield f"nothing takes these words where they stand: {_few(added)}."
    if gone:
        yield f"these words cannot be taken out: {_few(gone)}."


def _few(words: list[str]) -> str:
    return " ".join(words[:12]).rstrip(".") + (" ..." if len(words) > 12 else "")


def _told(file: MadrFile) -> Iterator[str]:
    """Every word of a file but what is written anew each time: links' names, charts, verdicts, comments, the block."""
    yield from unescaped(file.title).split()
    yield from _words(file.preamble)
    for key in ("decision-makers", "consulted", "informed", "tags"):
        value = file.front.get(key) or ()
        yield from (word for v in (value if isinstance(value, list) else [value]) for word in str(v).split())
    yield from (f"front matter {key}" for key in file.front.keys() - _FRONT)
    named = {part.line: name for name, part in named_parts(file)}
    listed = option_titles(file)  # which say already what the headings of options without pros and cons say
    for part in file.parts:
        name = named.get(part.line)
        repeats = part.level == 3 and name is None and unescaped(part.heading) in listed
        if not repeats and (name not in BELOW or name in _BELOW_WITH_FIELDS):
            yield from (name.split() if name else unescaped(part.heading).split())
        if name == "machine":
            yield from _words(_FOR_MACHINES.sub("", part.markdown.partition("```yaml\n")[0]))
        elif name != "comments":
            anew = _ANEW.get(name or "")
            yield from _words("\n".join(x for x in part.markdown.split("\n") if not (anew and anew.match(x))))


_LINKS = tuple(f"* {verb}" for w in WORDS.values() for verb in (w.supersedes, w.superseded_by))
_FOR_MACHINES = re.compile("|".join(re.escape(w.for_machines) for w in WORDS.values()))
# Lines of a part that are written anew each time: the table, of which cells are read, and charts.
_ANEW = {"conditions": re.compile(r"\s*\|"), "evidence": re.compile(r"!\[.*\]\(<.*\.svg>\)$")}
_BELOW_WITH_FIELDS = ("consequences", "confirmation", "sizing", "evidence", "opinions")
_FRONT = {"status", "date", "decision-makers", "consulted", "informed", "tags"}


def _words(markdown: str) -> Iterator[str]:
    for line in markdown.split("\n"):
        link = next((verb for verb in _LINKS if line.startswith(verb)), None)
        words = unescaped(link or line).split()  # what a link is called depends on the folder, that it is there not
        yield from ("*", *words[1:]) if words[:1] in (["-"], ["+"]) else words


def _shown(text: str) -> list[str]:
    """The lines that a person may compare."""
    lines = (x.rstrip() for x in text.replace("\r\n", "\n").split("\n"))
    return [x for x in lines if x and not x.startswith(("text_sha256:", "head:", "exact:", "date:"))]
