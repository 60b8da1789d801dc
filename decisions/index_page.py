"""The page that lists the decisions of a folder: number, title, status, date, what would change it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from decisions.escaping import Safe, inline
from decisions.exports import sealed
from decisions.madr_words import Language
from decisions.record import Adr

_WORDS: dict[Language, tuple[str, str, tuple[str, ...], str]] = {
    "en": ("Decisions", "Written by Flipline; a decision opens with its link.",
           ("Number", "Decision", "Status", "Date", "Flip conditions", "Links"), "superseded by"),
    "ja": ("決定の一覧", "Flipline が書いた一覧。リンクから決定を開ける。",
           ("番号", "決定", "状態", "日付", "覆す条件", "関連"), "置き換えた決定:"),
}  # fmt: skip

# What would end a link or a cell, and bytes of a name that are no text.
_IN_NO_TARGET = re.compile("[<>|\\\\\x00-\x1f\ud800-\udfff]")


class Listed(NamedTuple):
    """One row: an ADR, its file in this folder, and the states of its flip conditions."""

    adr: Adr
    file: str
    states: tuple[str, ...]


class Other(NamedTuple):
    """A decision that others wrote into the folder."""

    file: str
    title: str
    status: str
    day: str


def index_page(rows: Iterable[Listed], others: Iterable[Other] = (), *, language: Language = "en") -> str:
    """The page as Markdown, by file name; the same rows give the same bytes."""
    title, words, columns, by = _WORDS[language]
    listed = list(rows)
    files = {row.adr.id: row for row in listed}
    lines = {row.file: _row(row, files, by) for row in listed}
    lines |= {o.file: _cells(_number(o.file), _link(o.title, o.file), inline(o.status) or "–", o.day or "–", "–", "–")
              for o in others}  # fmt: skip
    table = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(lines[name] for name in sorted(lines))]
    return sealed(
        "\n".join((f"# {title}", "", words, "", *table, "", "```yaml", "flipline: 1", "index: true", "```", ""))
    )


def _row(row: Listed, files: Mapping[str, Listed], by: str) -> str:
    adr = row.adr
    successor = files.get(adr.superseded_by or "")
    links = f"{by} {_link(_short(successor), successor.file)}" if successor else "–"
    counted = Counter(row.states)
    states = ", ".join(f"{n} {state}" for state, n in sorted(counted.items())) or "–"
    day = f"{adr.updated_at:%Y-%m-%d}" if adr.updated_at else "–"
    return _cells(_number(row.file), _link(adr.title, row.file), adr.status, day, states, links)


def _number(file: str) -> str:
    return file[:4] if file[:4].isdigit() else "–"


def _short(row: Listed) -> str:
    return f"ADR-{_number(row.file)}" if row.file[:4].isdigit() else row.adr.title


def _link(words: str, file: str) -> Safe:
    target = _IN_NO_TARGET.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode(errors="surrogateescape")), file)
    return Safe(f"[{inline(words) or '–'}](<{target}>)")


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
