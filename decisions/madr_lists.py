"""Lists, names, days and links in the Markdown of a decision file."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from typing import Any

from decisions.escaping import unescaped

_BULLET = re.compile(r"^ {0,3}[*+-][ \t]+(?P<words>.*)$")
_DAY = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b")
LONGEST_LINE = 2_000  # of a title as it is read; a title has 300 characters at most
_TARGET = re.compile(
    r"\]\(<?([^)>\s#]{1,300}\.md)>?[^)]{0,300}\)|\bADR[- ]?(\d{1,5})\b|(?<![\w-])(\d{4})(?![\w-])", re.IGNORECASE
)


def bullet_of(line: str) -> str | None:
    """The words of a list's entry; None for another line."""
    found = _BULLET.match(line)
    return found["words"].strip() if found else None


def bullets(markdown: str) -> tuple[tuple[str, ...], str]:
    """The entries of a list, continued lines joined, and what else stands there."""
    found: list[str] = []
    rest: list[str] = []
    inside = gap = False
    for line in markdown.split("\n"):
        words = bullet_of(line)
        if words is not None:
            found.append(words)
            inside = True
        elif inside and line.strip() and (line[0] in " \t" or not gap):
            nested = bullet_of(line.strip()) is not None
            found[-1] += f"{chr(10) if nested else ' '}{line.strip()}"
        else:
            rest.append(line.rstrip())
            inside = inside and not line.strip()
        gap = not line.strip()
    return tuple(found), "\n".join(rest).strip("\n")


def spoken(markdown: str) -> tuple[str, ...]:
    """What people said, an entry or a paragraph each: a hard break is a line of it, what is indented belongs to it."""
    said: list[str] = []
    inside = gap = False
    for line in markdown.split("\n"):
        belongs = inside and line.startswith(("  ", "\t"))
        entry = None if belongs else _BULLET.match(line)
        if not line.strip():
            gap = True
            continue
        if entry or not said or (gap and not belongs):
            said.append((entry["words"] if entry else line).lstrip())
            inside = entry is not None
        else:
            above, broken = _unbroken(said[-1])
            nested = bullet_of(line.strip()) is not None
            between = "\n" if broken or nested else " "
            said[-1] = f"{said[-1].rstrip()}\n\n{line.lstrip()}" if gap else f"{above}{between}{line.lstrip()}"
        gap = False
    return tuple(x for words in said if (x := words.rstrip()))


def _unbroken(line: str) -> tuple[str, bool]:
    """A line without its hard break, and whether it had one: a backslash that none escapes, or two blanks."""
    bare = line.rstrip()
    escaping = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return (bare[:-1], True) if escaping and bare == line else (bare, line.endswith("  "))


def targets(markdown: str, verb: re.Pattern[str]) -> tuple[str, ...]:
    """Files and numbers that lines with the verb name, behind it."""
    told = ((line, m.end()) for line in markdown.split("\n") if (m := verb.search(line)))
    links = (link for line, end in told for link in _TARGET.finditer(line, end))
    return tuple(dict.fromkeys(m[1].rsplit("/", 1)[-1] if m[1] else str(int(m[2] or m[3])) for m in links))


def plain_title(title: str) -> str:
    """A title without links and emphasis."""
    words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", unescaped(title[:LONGEST_LINE]))
    return " ".join(re.sub(r"(\*\*|__|`)", "", words).split())


def in_words(value: Any) -> str:
    """A value of front matter as one line."""
    if isinstance(value, list | tuple):
        return ", ".join(in_words(v) for v in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else str(value)


def names(words: str) -> tuple[str, ...]:
    """Names between commas; what a template asks for in braces is none."""
    found = (re.sub(r"[*_`]|^\[|\]$", "", n).strip()[:200] for n in re.split(r"[,;、\n]", words))
    return tuple(dict.fromkeys(n for n in found if n and not n.startswith("{")))


def day_of(value: Any) -> date | None:
    """The first day that a value names, year first; None for none."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    found = _DAY.search(str(value or ""))
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None
