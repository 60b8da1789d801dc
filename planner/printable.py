"""Text from outside as it may be printed: nothing in it moves a cursor, colours a line or turns words around."""

from __future__ import annotations

import re

# C0 and C1 but tab and line feed, lone surrogates, and the marks that reorder text (Unicode bidirectional algorithm).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_END = re.compile("\r\n?|[\u2028\u2029\x85]")


def printable(text: str) -> str:
    """Without control characters, lone surrogates and marks that reorder text; line ends become \\n."""
    return _UNPRINTABLE.sub("", _LINE_END.sub("\n", text))
