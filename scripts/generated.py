"""Documents with generated blocks between markers: fill them in, or say whether they are current."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def render(text: str, blocks: Mapping[str, str]) -> str:
    """The document with its blocks filled in."""
    for name, body in blocks.items():
        pattern = rf"<!-- {name} -->\n.*?<!-- /{name} -->"
        text = re.sub(pattern, lambda _, n=name, b=body: f"<!-- {n} -->\n{b}\n<!-- /{n} -->", text, flags=re.DOTALL)
    return text


def write_or_check(path: Path, blocks: Mapping[str, str]) -> None:
    """Write the document anew; with --check on the command line, exit 1 where it is not current."""
    old = path.read_text(encoding="utf-8")
    new = render(old, blocks)
    if "--check" in sys.argv:
        sys.exit(0 if new == old else f"docs/{path.name} is not current: run python {sys.argv[0]}")
    path.write_text(new, encoding="utf-8")
