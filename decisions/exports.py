"""Exported files in a folder that others write to as well: whose they are, whether edited, how ours are named.

A file of ours ends with the SHA-256 of its own text without that line, so that an edit by hand is seen anywhere. So
does a picture.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import PurePath, PurePosixPath
from typing import NamedTuple

from decisions import escaping
from decisions.madr_reader import machine_block
from decisions.record import Adr, AdrText

_SEAL = re.compile(r"^text_sha256: (?P<hash>[0-9a-f]{64})\n(?=```\n*\Z)", re.MULTILINE)
# The first pictures said who wrote them and no more.
_SIGNED = re.compile(r"<!-- written by Flipline(?:, (?P<hash>[0-9a-f]{64}))? -->\n\Z")
# As others number too, 7_x.md and 10000-x.md; a day before a title is no number.
_NUMBER = re.compile(r"^(\d{1,5})[-_. ](?!\d\d-\d\d)")


def sealed(text: str) -> str:
    """The text with its hash as the last line of the machine block that ends it."""
    end = text.rindex("```")
    return f"{text[:end]}text_sha256: {_hash(text)}\n{text[end:]}"


class Export(NamedTuple):
    """A file that Flipline wrote: of which ADR, and whether it is as it was written."""

    adr: str
    untouched: bool


def read_export(text: str) -> Export | None:
    """What a file is; None for one that Flipline did not write."""
    block = machine_block(text)
    if block is None:
        return None
    seal = _SEAL.search(text)
    untouched = seal is not None and seal["hash"] == _hash(text[: seal.start()] + text[seal.end() :])
    return Export(str(block.get("id", "")), untouched)


def signed(svg: str) -> str:
    """A picture with who wrote it, and its hash, as the last line."""
    text = f"{svg.rstrip()}\n"
    return f"{text}<!-- written by Flipline, {_hash(text)} -->\n"


def untouched_picture(text: str) -> bool | None:
    """Whether a picture is as Flipline wrote it; None for one that it did not write."""
    found = _SIGNED.search(text)
    return found and found["hash"] in (None, _hash(text[: found.start()]))


def foreign_id(case: str, name: str) -> str:
    """The id of a decision that others wrote, in a case: the same file gives the same id, however often it comes in."""
    return f"file-{hashlib.sha256(f'{case}/{name}'.encode(errors='backslashreplace')).hexdigest()[:24]}"


def is_foreign(id: str) -> bool:
    """Whether a decision came out of a file that others wrote."""
    return id.startswith("file-")


def other_foreign_ids(case: str, name: str, path: PurePath | None) -> tuple[str, ...]:
    """Ids that the same file has when it is brought from a folder further in or out, or in an archive.

    `name` is the file's below the folder that is brought now, `path` where it lies, if it lies on this machine.
    """
    ways = [
        parts[n:] for parts in (PurePosixPath(name).parts, path.parts[1:] if path else ()) for n in range(len(parts))
    ]
    return tuple(foreign_id(case, "/".join(way)) for way in dict.fromkeys(ways) if "/".join(way) != name)


def same_decision(adr: Adr, text: AdrText) -> bool:
    """Whether a file that came another way before is that decision, and not another folder's of the same name."""
    return (adr.title, adr.context, adr.outcome) == (text.title, text.context, text.outcome)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def file_name(adr: Adr, number: int | None = None) -> str:
    """NNNN-title-with-dashes.md by `number`, else the ADR's own; without either the words alone."""
    words, n = escaping.slug(adr.title), number or adr.number
    return f"{n:04d}-{words}.md" if n else f"{words}.md"


def number_of(file: str) -> int | None:
    """The number that a file's name begins with."""
    found = _NUMBER.match(file)
    return int(found[1]) if found else None


def file_names(adrs: Iterable[Adr], present: Mapping[str, Export | None], reserved: Iterable[int]) -> dict[str, str]:
    """File name by ADR id in a folder that holds `present`: the one it has there, else its number, else the next free.

    `reserved` are the numbers of all ADRs, written there or not. A proposal, which has no number yet, gets a free one.
    """
    has = {export.adr: name for name, export in reversed(list(present.items())) if export}
    taken = {n for name in present if (n := number_of(name))}
    free = count(max(taken | set(reserved), default=0) + 1)
    names = {}
    for adr in adrs:
        if adr.id in has or file_name(adr) in present:
            names[adr.id] = has.get(adr.id) or file_name(adr)
        else:
            names[adr.id] = file_name(adr, next(free) if adr.number is None or adr.number in taken else None)
    return names
