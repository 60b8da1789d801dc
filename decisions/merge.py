"""Two people wrote on the same text: what only one changed merges by itself, what both changed is a person's choice.

Lists merge entry by entry: options, conditions and evidence by their names, lines (drivers, pros, people) as sets that
both may add to and take from. Nothing that somebody wrote is lost: it stands in the text, or in a clash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from decisions.record import AdrText

Side = Literal["mine", "theirs"]
_NAMED: Mapping[str, Callable[[Any], str]] = {
    "options": lambda option: option.title, "conditions": lambda flip: flip.id, "evidence": lambda piece: piece.id,
}  # fmt: skip
_PARTS = ("consequences", "people")  # fields whose own fields are lists of lines
_LINES = ("drivers", "tags", "supersedes")


class Clash(NamedTuple):
    """What both changed, each in another way; None where it was taken out."""

    field: str
    base: Any
    mine: Any
    theirs: Any


class Merged(NamedTuple):
    """The text with both people's changes; where they clash it has the side that was chosen, else mine.

    `clashes` are all that were found, `taken` the fields that came from them alone.
    """

    text: AdrText
    clashes: tuple[Clash, ...]
    taken: tuple[str, ...]


def merge(base: AdrText, mine: AdrText, theirs: AdrText, choices: Mapping[str, Side] | None = None) -> Merged:
    """Join two texts that both began as `base`; `choices` are sides by the field of a clash."""
    merger = _Merger(choices or {})
    fields = {
        name: merger.field(name, getattr(base, name), getattr(mine, name), getattr(theirs, name))
        for name in AdrText.model_fields
    }
    return Merged(AdrText(**fields), tuple(merger.clashes), tuple(merger.taken))


class _Merger:
    def __init__(self, choices: Mapping[str, Side]) -> None:
        self._choices = choices
        self.clashes: list[Clash] = []
        self.taken: list[str] = []

    def field(self, name: str, base: Any, mine: Any, theirs: Any) -> Any:
        if mine == theirs or theirs == base:
            return mine
        if mine == base:
            self.taken.append(name)
            return theirs
        if name in _NAMED:
            return tuple(self._entries(name, base, mine, theirs))
        if name in _PARTS:
            parts = type(base).model_fields
            return type(base)(**{
                p: self.field(f"{name}.{p}", getattr(base, p), getattr(mine, p), getattr(theirs, p)) for p in parts
            })  # fmt: skip
        if name in _LINES or name.partition(".")[0] in _PARTS:
            joined = _joined_lines(base, mine, theirs)
            if joined is not None:
                self.taken.append(name)
                return joined
        return self._chosen(Clash(name, base, mine, theirs))

    def _entries(self, name: str, base: Any, mine: Any, theirs: Any) -> Iterator[Any]:
        """Named entries in their order, then what only I have."""
        was, my, their = ({_NAMED[name](entry): entry for entry in side} for side in (base, mine, theirs))
        for key in dict.fromkeys((*their, *my)):
            merged = self._entry(f"{name}: {key}", was.get(key), my.get(key), their.get(key))
            if merged is not None:
                yield merged

    def _entry(self, name: str, base: Any, mine: Any, theirs: Any) -> Any:
        if mine == theirs or theirs == base:
            return mine
        if mine == base:
            self.taken.append(name)
            return theirs
        return self._chosen(Clash(name, base, mine, theirs))

    def _chosen(self, clash: Clash) -> Any:
        self.clashes.append(clash)
        return clash.theirs if self._choices.get(clash.field) == "theirs" else clash.mine


def _joined_lines(base: tuple[str, ...], mine: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...] | None:
    """Lines with what each side added and took out; None where both touched the same line, or one moved lines."""
    gone_here, gone_there = set(base) - set(mine), set(base) - set(theirs)
    if gone_here & gone_there or any(_moved(base, side) for side in (mine, theirs)):
        return None
    kept = [line for line in theirs if line not in gone_here]
    return (*kept, *(line for line in mine if line not in base and line not in theirs))


def _moved(base: tuple[str, ...], side: tuple[str, ...]) -> bool:
    return [x for x in base if x in side] != [x for x in side if x in base]
