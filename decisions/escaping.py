"""User text into Markdown, YAML and file names, so that nothing in it becomes structure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from planner.printable import printable

# Backslash escapes of CommonMark and GFM (2.4): each of these can begin or end structure anywhere in a line.
_SPECIAL = re.compile(r"([\\`*\[\]|~&#$])")
# < only where a tag, comment, autolink or entity may begin, so that "<= 2 s" stays readable.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# _ inside a word is never emphasis, so that metric names stay readable.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
# Seven < and a space begin the mark of an unfinished merge, which no file of ours may seem to hold.
_LINE_START = re.compile(r"^(?=[-+=>]|<{7} )|^(\d{1,9})(?=[.)](?:\s|$))")
_SLUG_LENGTH = 60


class Safe(str):
    """Text that is structure on purpose and is not escaped again."""


def inline(text: object) -> Safe:
    """Any value as literal text on one line; what is Safe already is left alone."""
    if isinstance(text, Safe):
        return text
    line = " ".join(printable(str(text)).split())
    line = _SPECIAL.sub(r"\\\1", line)
    line = _TAG.sub(r"\\<", line)
    line = _UNDERSCORE.sub(r"\\_", line)
    return Safe(_LINE_START.sub(lambda m: f"{m[1]}\\" if m[1] else "\\", line))


def block(text: str, otherwise: str = "") -> Safe:
    """Paragraphs of literal text: blank lines separate them, each line is escaped by itself."""
    paragraphs = re.split(r"\n\s*\n", printable(text).strip())
    written = "\n\n".join("\n".join(filter(None, map(inline, p.split("\n")))) for p in paragraphs)
    return Safe(written or otherwise)


def entry(text: str) -> Safe:
    """Literal text in an entry of a list: lines stay lines (hard breaks, CommonMark 6.7), paragraphs stay apart."""
    paragraphs = re.split(r"\n\s*\n", printable(text).strip())
    return Safe("\n\n  ".join("\\\n  ".join(filter(None, map(inline, p.split("\n")))) for p in paragraphs))


def clause(text: str) -> Safe:
    """One line without its full stop, to stand inside a sentence."""
    return Safe(inline(text).rstrip(".。 ") or "no reason was written down")


def code(text: str) -> Safe:
    """A code span that holds the text literally, in a table cell too."""
    line = " ".join(printable(text).split()).replace("|", r"\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if "`" in line else ""
    return Safe(f"{fence}{pad}{line}{pad}{fence}")


def quoted(value: str | Sequence[str]) -> Safe:
    """A double-quoted YAML string, or a flow list of them."""
    if isinstance(value, str):
        return Safe(json.dumps(" ".join(printable(value).split()), ensure_ascii=False).replace("\x7f", ""))
    return Safe(f"[{', '.join(quoted(v) for v in value)}]")


_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def unescaped(text: str) -> str:
    """What a reader of Markdown sees where `inline` or `block` wrote."""
    return _ESCAPED.sub(r"\1", text)


def slug(title: str) -> str:
    """Lower-case words joined by dashes, letters of every script kept; `decision` when nothing is left."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", printable(title)).lower())
    found = ""
    for word in words:
        if found and len(found) + 1 + len(word) > _SLUG_LENGTH:
            break
        found = f"{found}-{word}" if found else word[:_SLUG_LENGTH]
    return found or "decision"
