"""YAML from outside, read so that no file can harm: where it may lie, how large and how deep it may be, and which line.

Aliases are refused, because a few of them unfold into gigabytes; a key that stands twice is refused, because YAML would
silently keep the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from planner.errors import InputError

LARGEST_FILE_BYTES = 1_000_000  # the largest of ours has 50 kB
DEEPEST = 20
DEEPEST_OF_ALL, MOST_VALUES = 100, 1_000_000

Place = Sequence[str | int]


def at_line(name: str, line: int) -> str:
    """Where something stands, for an error."""
    return f"{name}, line {line}"


def read_text(path: Path, folder: Path) -> str:
    """The text of a file of `folder`.

    Raises InputError for one that leads out of the folder, is no plain file, too large, or not text in UTF-8.
    """
    name = path.relative_to(folder).as_posix()
    try:
        if not path.resolve(strict=True).is_relative_to(folder.resolve()):
            raise InputError("leads out of its folder.", where=name, fix=f"Put the file itself into {folder}.")
        if not path.is_file():
            raise InputError("is not a plain file.", where=name, fix="Remove it, or put a YAML file there.")
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise InputError(
                f"has {size:,} bytes; a catalogue file has {LARGEST_FILE_BYTES:,} at most.",
                where=name, fix="Keep only the entries that you need.",
            )  # fmt: skip
        return path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=name, fix="Check the file and its rights.") from e
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix="Save it as UTF-8.") from None


def parse(text: str, name: str) -> Any:
    """The values of one YAML document; raises InputError with file and line."""
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        raise InputError(
            f"is not readable as YAML: {e.problem or e.context}.",
            where=at_line(name, mark.line + 1) if mark else name, fix="Correct that line.",
        ) from None  # fmt: skip
    except (yaml.YAMLError, ValueError, OverflowError) as e:  # a date such as 2026-13-01, a number of 5,000 digits
        fault = " ".join(str(e).split())[:200]
        raise InputError(f"is not readable as YAML: {fault}.", where=name, fix="Correct the value.") from None


def parse_plain(text: str) -> Any:
    """Values of YAML out of a file that anybody may have written; anchors may stand, but nothing unfolds.

    Raises ValueError for what is no YAML, uses an alias or is nested too deep; `problem_mark` says where it is known.
    """
    try:
        if "*" in text and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, Loader=yaml.CSafeLoader)):
            raise ValueError("uses an alias (*)")
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as e:
        raise NoYaml(getattr(e, "problem_mark", None)) from None
    except (RecursionError, OverflowError) as e:
        raise ValueError(str(e)) from None


class NoYaml(ValueError):
    """What cannot be read as YAML, and where."""

    def __init__(self, problem_mark: Any) -> None:
        super().__init__("is not readable as YAML")
        self.problem_mark = problem_mark


def must_not_unfold(value: Any, name: str) -> None:
    """Raise InputError for values that are nested too deep, hold themselves, or unfold to more than any file of ours.

    Aliases share what they stand for: it is counted as often as it would be written out, without writing it out.
    """
    sizes: dict[int, int] = {}

    def size(node: Any, depth: int) -> int:
        if not isinstance(node, dict | list):
            return 1
        if depth > DEEPEST_OF_ALL or sizes.get(id(node)) == 0:
            raise InputError(f"is nested deeper than {DEEPEST_OF_ALL} levels.", where=name, fix="Write it flatter.")
        if id(node) not in sizes:
            sizes[id(node)] = 0  # open: who meets it again is inside it
            inside = node.values() if isinstance(node, dict) else node
            sizes[id(node)] = 1 + sum(size(child, depth + 1) for child in inside)
        return sizes[id(node)]

    if size(value, 0) > MOST_VALUES:
        raise InputError(f"unfolds to more than {MOST_VALUES:,} values.", where=name,
                         fix="Write the values out where they are needed.")  # fmt: skip


def parse_guarded(text: str, name: str) -> Any:
    """As `parse`, for a file that somebody else wrote: aliases, deep nesting and doubled keys are refused first."""
    _check_events(text, name)
    return parse(text, name)


def _check_events(text: str, name: str) -> None:
    """Walk the parser's events, which hold one token at a time whatever the file unfolds to."""
    open_nodes: list[set[str] | None] = []  # keys of an open mapping, None for a list
    at_key: list[bool] = []
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = (event.start_mark.line if event.start_mark else 0) + 1
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise InputError("uses an anchor or alias (& or *).", where=at_line(name, line),
                                 fix="Write the value out where it is needed.")  # fmt: skip
            if isinstance(event, yaml.CollectionEndEvent):
                open_nodes.pop()
                at_key.pop()
            elif isinstance(event, yaml.NodeEvent):
                if open_nodes and (keys := open_nodes[-1]) is not None:
                    if at_key[-1] and isinstance(event, yaml.ScalarEvent):
                        if event.value in keys:
                            raise InputError(f"{event.value!r} stands twice.", where=at_line(name, line),
                                             fix="Keep one of them.")  # fmt: skip
                        keys.add(event.value)
                    at_key[-1] = not at_key[-1]
                if isinstance(event, yaml.CollectionStartEvent):
                    open_nodes.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
                    at_key.append(True)
            if len(open_nodes) > DEEPEST:
                raise InputError(f"is nested deeper than {DEEPEST} levels.", where=at_line(name, line),
                                 fix="Write it flatter.")  # fmt: skip
    except yaml.YAMLError:
        parse(text, name)  # says what is wrong and on which line


def line_of(text: str, place: Place) -> int:
    """The line, from 1, of a field; of the nearest field around it that exists, when it is missing."""
    node = yaml.compose(text, Loader=yaml.CSafeLoader)
    line = node.start_mark.line if node else 0
    for part in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if found is None:
                continue  # a discriminator of the schema, or a missing field
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1
