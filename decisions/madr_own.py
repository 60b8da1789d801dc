"""A file that Flipline wrote, read back: what its prose says, field by field, with what only its block can say.

`exact` in the block keeps the fields that the prose cannot carry letter by letter, such as a line break in a title or a
reason without a full stop. They count as long as the prose still reads as they were written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from pydantic import TypeAdapter, ValidationError

from decisions.escaping import unescaped
from decisions.flip_condition import FlipCondition
from decisions.madr_lists import bullets, day_of, spoken
from decisions.madr_reader import MadrFile, Part
from decisions.madr_words import WORDS, Language, Words, part_of
from decisions.record import Adr, AdrText, Consequences, Section
from planner.errors import InputError
from planner.faults import first_fault
from planner.frozen import sha256_of

MAIN = ("context", "drivers", "options", "outcome", "pros", "more")
# Which heading each part of the third level stands under.
BELOW = {"consequences": "outcome", "confirmation": "outcome", "sizing": "outcome", "conditions": "more",
         "evidence": "more", "opinions": "more", "comments": "more", "machine": "more"}  # fmt: skip
_NOTHING = Part(0, "", "", 0)
# What the block holds by key, where it holds it at all; the rows of some lists are mappings.
_SHAPES: dict[str, type] = {"status": str, "candidates": dict, "snapshots": dict, "sizing": list, "supersedes": list,
                            "conditions": list, "evidence": list, "opinions": list}  # fmt: skip
_OF_ROWS = ("conditions", "evidence", "opinions")
_CALLED: dict[type, str] = {str: "text", dict: "a mapping", list: "a list"}
SIDES = (("good", "pros"), ("neutral", "neutral"), ("bad", "cons"))
_CELL = re.compile(r"(?<!\\)\|")
_INPUT = re.compile(r"^(?P<name>.*?) = (?P<value>.*?) \((?P<source>.*)\)$")
_EVIDENCE = re.compile(r"^[a-z-]+: (?P<says>.*?)(?: \(\S+ `[0-9a-f]{12}`\))?$")
_COMMENT = re.compile(r"^(?P<who>.+?), (?P<day>\d{4}-\d{2}-\d{2}): (?P<words>(?s:.*))$")
_AS_WRITTEN = TypeAdapter(tuple[tuple[str, date, str], ...])


def own_fields(file: MadrFile) -> dict[str, Any]:
    """Fields of AdrText as JSON has them; raises InputError for a part of the block that cannot be read."""
    _must_be_in_shape(file.machine or {})
    told_by_prose = prose_fields(file)
    read = _validated(told_by_prose)
    kept = {name: told["is"] for name, told in _exact(file.machine or {}).items()
            if told.get("reads") == sha256_of(read.get(name))}  # fmt: skip
    return {**(read or told_by_prose), **kept}


def _must_be_in_shape(machine: Mapping[str, Any]) -> None:
    for key, shape in _SHAPES.items():
        value, wrong = machine.get(key), ""
        if value is not None and not isinstance(value, shape):
            wrong = f"{key} in the block is not {_CALLED[shape]}."
        elif key in _OF_ROWS and not all(isinstance(row, dict) for row in machine.get(key) or ()):
            wrong = f"an entry of {key} in the block has no fields."
        if wrong:
            raise InputError(wrong, fix="Compare with another exported file.")


def exact_block(adr: Adr, file: MadrFile) -> str:
    """What the block of `file` has to keep of the ADR that it was written from; empty where the prose says it all."""
    said = [[c.author, f"{c.at:%Y-%m-%d}", c.text] for c in adr.comments]
    read = {**_validated(prose_fields(file)), "comments": _comments(file)}
    written = {**adr.text.model_dump(mode="json"), "comments": said}
    lost = {name: {"is": value, "reads": sha256_of(read.get(name))}
            for name, value in written.items() if read.get(name) != value}  # fmt: skip
    return json.dumps(lost, sort_keys=True) if lost else ""  # ASCII, so that nothing in it can end a line


def _validated(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as AdrText would have them; none where they cannot stand together, as two titles that read alike."""
    try:
        return AdrText.model_validate(fields).model_dump(mode="json")
    except ValidationError:
        return {}


def prose_fields(file: MadrFile) -> dict[str, Any]:
    """What the prose and the block's lists say, without `exact`."""
    words = WORDS[language_of(file)]
    machine = file.machine or {}
    parts = {name: p.markdown for name, p in named_parts(file)}
    fields = {
        "title": unescaped(file.title),
        "context": _block(parts.get("context", ""), words.not_written),
        "drivers": _bullets(parts.get("drivers", "")),
        "options": _options(parts.get("options", ""), file, machine.get("candidates") or {}, words),
        **_outcome(parts.get("outcome", ""), words),
        "consequences": Consequences.model_validate(_sides(parts.get("consequences", ""), words)),
        "confirmation": _block(parts.get("confirmation", "")),
        "sizing": _sizing(parts.get("sizing", ""), machine.get("sizing") or [], words),
        "conditions": _conditions(machine.get("conditions") or []),
        "evidence": _evidence(parts.get("evidence", ""), machine.get("evidence") or []),
        "snapshots": tuple({"kind": k, "sha256": v} for k, v in (machine.get("snapshots") or {}).items()),
        "people": {
            "decided": _listed(file.front.get("decision-makers")), "consulted": _listed(file.front.get("consulted")),
            "informed": _listed(file.front.get("informed")),
        },
        "review_on": _review(parts.get("more", ""), words),
        "tags": _listed(file.front.get("tags")),
        "supersedes": tuple(machine.get("supersedes") or ()),
        "kept": _kept(file),
    }  # fmt: skip
    if not fields["evidence"]:
        fields["evidence_absent"] = _block(parts.get("evidence", ""), words.no_evidence)
    return fields


def named_parts(file: MadrFile) -> Iterator[tuple[str, Part]]:
    """The parts that Flipline writes, each under the heading that it belongs to, with their names."""
    above = None
    for part in file.parts:
        name = part_of(part.heading, ours=True)
        if part.level == 2:
            above = name
        if name in MAIN if part.level == 2 else name in BELOW and part.level == 3 and BELOW[name] == above:
            yield str(name), part


def comments_of(file: MadrFile) -> tuple[tuple[str, date | None, str], ...]:
    """Comments as they were written: author and day, empty where a hand wrote none, and the words."""
    read = _comments(file)
    told = _exact(file.machine or {}).get("comments", {})
    if told.get("reads") == sha256_of(read):
        with suppress(ValidationError):
            return _AS_WRITTEN.validate_python(told["is"])
    return tuple((who, day_of(day), words) for who, day, words in read)


def _comments(file: MadrFile) -> list[list[str]]:
    """Comments as the prose tells them."""
    lines = map(unescaped, spoken(dict(named_parts(file)).get("comments", _NOTHING).markdown))
    told = ((_COMMENT.match(x), x) for x in lines)
    return [[m["who"], m["day"], m["words"]] if m else ["", "", x] for m, x in told]


def accepted_of(file: MadrFile) -> tuple[str, date | None]:
    """By whom and on which day it was accepted, as the prose tells; nobody and None where it was not."""
    more = dict(named_parts(file)).get("more", _NOTHING).markdown
    sentence = re.escape(WORDS[language_of(file)].accepted)
    pattern = sentence.replace(r"\{who\}", "(?P<who>.*)").replace(r"\{day\}", r"(?P<day>\d{4}-\d{2}-\d{2})")
    found = re.search(rf"^{pattern}$", more, re.MULTILINE)
    return (unescaped(found["who"]), day_of(found["day"])) if found else ("", None)


def warnings_of(file: MadrFile) -> tuple[str, ...]:
    """What the outcome quotes beside itself; another quotation is a reader's."""
    outcome = dict(named_parts(file)).get("outcome", _NOTHING).markdown
    return tuple(unescaped(x[2:]) for x in outcome.split("\n") if x.startswith("> Warning: "))


def table_rows(file: MadrFile) -> tuple[tuple[str, ...], ...]:
    """The table of flip conditions, cells as they are written."""
    table = dict(named_parts(file)).get("conditions", _NOTHING).markdown
    lines = [x.strip() for x in table.split("\n") if x.strip().startswith("|")][2:]
    return tuple(tuple(c.strip() for c in _CELL.split(x.strip("|"))) for x in lines)


def option_titles(file: MadrFile) -> tuple[str, ...]:
    """The options as they are listed."""
    return _bullets(dict(named_parts(file)).get("options", _NOTHING).markdown)


def language_of(file: MadrFile) -> Language:
    """The language that a file of ours was written in."""
    return "ja" if any(p.heading == WORDS["ja"].context for p in file.parts) else "en"


def _block(markdown: str, placeholder: str = "") -> str:
    text = unescaped(markdown.strip())
    return "" if text == placeholder else text


def _bullets(markdown: str) -> tuple[str, ...]:
    return tuple(unescaped(x) for x in bullets(markdown)[0])


def _sides(markdown: str, words: Words) -> dict[str, tuple[str, ...]]:
    lines = _bullets(markdown)
    return {side: tuple(x.removeprefix(begins) for x in lines if x.startswith(begins))
            for side, begins in (("good", words.good), ("neutral", words.neutral), ("bad", words.bad))}  # fmt: skip


def _options(listed: str, file: MadrFile, candidates: Mapping[str, str], words: Words) -> tuple[dict[str, Any], ...]:
    found: dict[str, dict[str, Any]] = {}
    under = None
    for part in file.parts:
        under = part_of(part.heading, ours=True) if part.level == 2 else under
        if part.level == 3 and under == "pros":
            sides = _sides(part.markdown, words)
            summary = _block(bullets(part.markdown)[1])
            found[unescaped(part.heading)] = {"summary": summary, **{f: sides[side] for side, f in SIDES}}
    return tuple({"title": t, "candidate": candidates.get(t), **found.get(t, {})} for t in _bullets(listed))


def _outcome(markdown: str, words: Words) -> dict[str, str]:
    lines = markdown.split("\n")
    told = next((x for x in lines if x.startswith(words.chosen)), "")
    headline = next((x[2:-2] for x in lines if x.startswith("**") and x.endswith("**") and len(x) > 4), "")
    chosen, _, because = told.removeprefix(words.chosen).partition(words.because)
    return {"chosen": unescaped(chosen), "outcome": unescaped(because), "headline": unescaped(headline)}


def _sizing(markdown: str, keys: list[Any], words: Words) -> tuple[dict[str, Any], ...]:
    figures: list[dict[str, Any]] = []
    for line in markdown.split("\n"):
        entry = unescaped(line.strip().removeprefix("* "))
        if line.startswith("* **"):
            title, _, value = entry.strip("*").rpartition(": ")
            key = str(keys[len(figures)]) if len(figures) < len(keys) else ""
            figures.append({"key": key, "title": title, "value": value, "formula": "", "inputs": [], "assumptions": [],
                            "band": ""})  # fmt: skip
        elif figures and line.startswith("  * "):
            _figure_line(figures[-1], entry, words)
    return tuple(figures)


def _figure_line(figure: dict[str, Any], entry: str, words: Words) -> None:
    given = _INPUT.match(entry)
    if entry.startswith(words.formula):
        figure["formula"] = entry.removeprefix(words.formula)
    elif entry.startswith(words.assumes):
        figure["assumptions"].append(entry.removeprefix(words.assumes))
    elif entry.startswith(words.known_error):
        figure["band"] = entry.removeprefix(words.known_error)
    elif given:
        figure["inputs"].append(given.groupdict())


def _conditions(block: list[Any]) -> tuple[FlipCondition, ...]:
    return tuple(map(condition_from, block))


def condition_from(row: Mapping[str, Any]) -> FlipCondition:
    """A flip condition from its row in the block; raises InputError with its id."""
    fields = {k: v for k, v in row.items() if k not in ("condition", "state", "forgotten")}
    try:
        if "forgotten" in row:
            return FlipCondition.model_validate({**fields, "forgotten": {"stored": json.loads(str(row["forgotten"]))}})
        if "condition" not in row:
            return FlipCondition.model_validate(fields)
        read = FlipCondition.from_line("read", str(row["condition"]))
        return FlipCondition.model_validate({**fields, "condition": read.condition})
    except InputError as e:
        raise InputError(e.what, where=f"flip condition {row.get('id')}", fix=e.fix) from None
    except ValidationError as e:
        raise InputError(first_fault(e), where=f"flip condition {row.get('id')}") from None
    except ValueError:
        raise InputError("what is kept of it is no JSON.", where=f"flip condition {row.get('id')}") from None


def _evidence(markdown: str, block: list[Any]) -> tuple[dict[str, Any], ...]:
    said = [unescaped(m["says"]) for x in markdown.split("\n") if x.startswith("* ") and (m := _EVIDENCE.match(x[2:]))]
    if len(said) != len(block):
        said = [""] * len(block)
    return tuple({**row, "says": "" if says == row.get("id") else says}
                 for row, says in zip(block, said, strict=True))  # fmt: skip


def _review(markdown: str, words: Words) -> date | None:
    before, _, after = words.review.partition("{day}")
    day = r"(\d{4}-\d{2}-\d{2})"
    found = re.search(rf"^{re.escape(before)}{day}{re.escape(after)}$", markdown, re.MULTILINE)
    return day_of(found[1]) if found else None


def _kept(file: MadrFile) -> tuple[Section, ...]:
    ours = {part.line for _, part in named_parts(file)}
    return tuple(Section(heading=unescaped(p.heading), markdown=p.whole)
                 for p in file.parts if p.level <= 2 and p.line not in ours)  # fmt: skip


def _listed(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _exact(machine: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(str(machine.get("exact") or "{}"))
    except ValueError:
        return {}
    whole = isinstance(found, dict) and all(isinstance(v, dict) and "is" in v for v in found.values())
    return found if whole else {}
