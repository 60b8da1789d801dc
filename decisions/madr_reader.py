"""A decision file as it stands: front matter, title, sections. MADR 2 to 4, Nygard and whatever lies between.

Nothing is interpreted here and nothing is lost: decisions/madr_text.py says what the parts mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from planner.errors import InputError
from planner.yaml_files import parse_plain

LARGEST_CHARACTERS, MOST_HEADINGS = 2_000_000, 2_000
_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})(?P<info>.*)$")
_HEADING = re.compile(r"^ {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<words>.*?))?(?:[ \t]+#+)?[ \t]*$")
_COMMENT = re.compile(r"^ {0,3}<!--")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-{2,})[ \t]*$")
_NO_PARAGRAPH = re.compile(r"^(?: {4}|\t| {0,3}(?:[-*+>|#<]|\d+[.)]\s|$))")
# The middle mark, seven =, is not looked for: it underlines a heading too, and never stands alone.
CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
_MACHINE = re.compile(r"^```yaml\n(?P<block>(?:(?!```).*\n)+)```\n*\Z", re.MULTILINE)


class Part(NamedTuple):
    """A heading and what stands under it up to the next; `whole` goes on to the next of its own level or above.

    `line` counts from 1.
    """

    level: int
    heading: str
    markdown: str
    line: int
    whole: str = ""


class MadrFile(NamedTuple):
    """A file taken apart; `machine` is the block of a file that Flipline wrote, `preamble` what precedes sections."""

    title: str
    front: dict[str, Any]
    preamble: str
    parts: tuple[Part, ...]
    machine: dict[str, Any] | None


def read_madr(text: str, where: str = "file") -> MadrFile:
    """Take a decision file apart, with any line ends, with or without front matter and a last line end.

    Raises InputError, with the line, for front matter that cannot be read, an unfinished merge, or no title.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(text) > LARGEST_CHARACTERS:
        raise InputError(f"has {len(text):,} characters.", where=where, fix="A decision is a page or two.")
    marker = next((i for i, x in enumerate(lines, 1) if CONFLICT.match(x)), None)
    if marker:
        raise InputError("holds the marks of an unfinished merge.", where=f"{where}, line {marker}",
                         fix="Finish the merge first.")  # fmt: skip
    front, begin = _front_matter(lines, where)
    parts = _parts(lines, begin, where)
    at = next((i for i, p in enumerate(parts) if p.level == 1), None)
    title = parts[at].heading if at is not None else str(front.get("title") or "")
    if not title.strip():
        raise InputError("has no title.", where=f"{where}, line {begin + 1}", fix="Begin it with '# Title'.")
    before = parts[0].markdown if not parts[0].level else ""
    preamble = "\n\n".join(x for x in (before, parts[at].markdown if at is not None else "") if x)
    sections = tuple(p for i, p in enumerate(parts) if p.level and i != at)
    return MadrFile(title, front, preamble, sections, machine_block("\n".join(lines)))


def machine_block(text: str) -> dict[str, Any] | None:
    """The YAML block that ends a file of ours; None for a file that Flipline did not write."""
    found = _MACHINE.search(text)
    try:
        data = parse_plain(found["block"]) if found else None
    except ValueError:
        return None
    return data if isinstance(data, dict) and "flipline" in data else None


def _front_matter(lines: list[str], where: str) -> tuple[dict[str, Any], int]:
    """The fields, and the index of the first line after them."""
    mark = lines[0].rstrip()
    if mark not in ("---", "+++"):
        return {}, 0
    end = next((i for i, x in enumerate(lines[1:], 1) if x.rstrip() in ({"---", "..."} if mark == "---" else {"+++"})),
               None)  # fmt: skip
    if end is None:
        if mark == "---" and not re.match(r"^\s*[\w-]+\s*:", lines[1] if len(lines) > 1 else ""):
            return {}, 1  # a rule across the page, not front matter
        raise InputError("begins front matter that nothing ends.", where=f"{where}, line 1",
                         fix=f"Close it with a line {mark}.")  # fmt: skip
    block = "\n".join(lines[1:end])
    try:
        data = parse_plain(block) if mark == "---" else tomllib.loads(block)
    except (ValueError, RecursionError) as e:
        place = getattr(e, "problem_mark", None)
        line = f", line {place.line + 2}" if place else ", line 1"
        raise InputError("front matter cannot be read.", where=f"{where}{line}",
                         fix="Quote values that hold ': '.") from None  # fmt: skip
    if data is not None and not isinstance(data, dict):
        raise InputError("front matter holds no fields.", where=f"{where}, line 1", fix="Write 'status: accepted'.")
    return {str(k).strip().lower(): v for k, v in (data or {}).items()}, end + 1


class Heading(NamedTuple):
    """A heading's place: it takes the lines from `first` up to `below`, as indexes."""

    level: int
    words: str
    first: int
    below: int


def _parts(lines: list[str], begin: int, where: str) -> list[Part]:
    """What stands before the first heading (level 0), then each heading with its text."""
    found = [Heading(0, "", begin, begin), *islice(headings(lines, begin), MOST_HEADINGS + 1)]
    if len(found) > MOST_HEADINGS:
        raise InputError(f"has more than {MOST_HEADINGS:,} headings.", where=where, fix="A decision is a page or two.")
    ends = [h.first for h in found[1:]] + [len(lines)]
    return [
        Part(h.level, h.words, _between(lines, h.below, ends[i]), h.first + 1, _between(lines, h.below, next(
            (other.first for other in found[i + 1 :] if other.level <= h.level), len(lines))))
        for i, h in enumerate(found)
    ]  # fmt: skip


def _between(lines: list[str], first: int, end: int) -> str:
    return "\n".join(lines[first:end]).strip("\n")


def headings(lines: list[str], begin: int = 0) -> Iterator[Heading]:
    """Headings in both forms; code fences and comments hide what looks like one."""
    hidden, above = Hidden(), ""
    for i, line in enumerate(lines[begin:], begin):
        covered = hidden.takes(line)
        heading = None if covered else _HEADING.match(line)
        if heading:
            yield Heading(len(heading["marks"]), (heading["words"] or "").strip(), i, i + 1)
        elif not covered and _UNDERLINE.match(line) and not _NO_PARAGRAPH.match(above):
            yield Heading(1 if line.strip().startswith("=") else 2, above.strip(), i - 1, i + 1)
        above = "" if covered or heading else line


class Hidden:
    """Whether a line lies inside a code fence or an HTML comment, where nothing is a heading."""

    def __init__(self) -> None:
        self.fence = ""
        self.comment = False

    def takes(self, line: str) -> bool:
        """Read the next line and say whether it is hidden; the lines of a fence itself are."""
        if self.fence:
            mark = _FENCE.match(line)
            if mark and mark["marks"].startswith(self.fence) and not mark["info"].strip():
                self.fence = ""
            return True
        if self.comment:
            self.comment = "-->" not in line
            return True
        mark = _FENCE.match(line)
        if mark and not (mark["marks"][0] == "`" and "`" in mark["info"]):
            self.fence = mark["marks"]
            return True
        # amid a line, escaped, or as code it hides no heading (CommonMark 4.6)
        self.comment = bool(_COMMENT.match(line)) and "-->" not in line
        return self.comment

    @property
    def closing(self) -> str:
        """What ends whatever is open."""
        return self.fence or ("-->" if self.comment else "")
