"""An ADR as Markdown: MADR 4.0 front matter and headings for people, one YAML block for machines.

The same input gives the same bytes: nothing here looks at a clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from decisions import escaping
from decisions.chain import GENESIS
from decisions.exports import file_name, number_of, sealed
from decisions.flip_condition import FlipCondition
from decisions.flips import FlipVerdict
from decisions.madr_own import exact_block
from decisions.madr_reader import CONFLICT, Hidden, headings, read_madr
from decisions.madr_words import WORDS, Language, Words
from decisions.record import Adr, Opinion
from planner.condition_line import EVERY_POINT
from planner.conditions import Context
from planner.frozen import canonical_json
from planner.metrics import quantity
from planner.printable import printable

EXPORT_SCHEMA = 1


class _Link(NamedTuple):
    """One ADR seen from another."""

    words: str
    name: str
    file: str


class Chart(NamedTuple):
    """A picture beside the file: its name there, and what it says to who cannot see it."""

    file: str
    words: str


class _Row(NamedTuple):
    """One flip condition as people read it."""

    line: str
    fires_when: str
    state: str
    room: str
    owner: str
    recheck: str
    consequence: str


def _link(link: _Link) -> escaping.Safe:
    return escaping.Safe(f"[{escaping.inline(link.name)}](<{link.file}>)" if link.file else escaping.inline(link.name))


def _environment() -> Environment:
    # autoescape is for HTML; here `finalize` escapes every value for Markdown unless it is Safe
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=False, finalize=escaping.inline,
    )  # fmt: skip
    environment.filters |= {
        "block": escaping.block, "clause": escaping.clause, "code": escaping.code, "entry": escaping.entry,
        "quoted": escaping.quoted, "link": _link, "safe": escaping.Safe,
    }  # fmt: skip
    return environment


_HIGH_HEADING = re.compile(r"^( {0,3})#{1,2}([ \t]|$)")
_TEMPLATE = _environment().get_template("adr.md.j2")


def to_markdown(
    adr: Adr, flips: Iterable[FlipVerdict] = (), *, head: str = GENESIS, related: Mapping[str, Adr] | None = None,
    files: Mapping[str, str] | None = None, warnings: Iterable[str] = (), language: Language = "en",
    charts: Sequence[Chart] = (), context: Context | None = None,
) -> str:  # fmt: skip
    """Write one ADR. `head` is its chain's last hash, `related` the ADRs it supersedes or is superseded by, by id.

    `files` are the names of their files by id, where they are not called by their number. `warnings` are what a reader
    must know beside the outcome (decisions.lint.speed_warnings). `context` is what the conditions are judged in: what
    of it they need goes into the block, for who judges without a database.

    Without a verdict in `flips` a condition's state reads "not judged".
    """
    others, w = related or {}, WORDS[language]
    verdicts = {v.condition: v for v in flips}
    of_conditions = (v.verdict.warning for v in verdicts.values() if v.verdict)
    marks = [f"\0{i}\0" for i in range(len(adr.kept) + 1)]  # control characters: no text can hold one
    text = _TEMPLATE.render(
        adr=adr,
        w=w,
        marks=marks,
        title=escaping.inline(adr.title) or "–",  # a title of blanks alone: without a heading nobody reads the file
        charts=charts,
        kept=[part.heading for part in adr.kept],
        status=_status(adr, others, files or {}),
        people=(
            ("decision-makers", adr.people.decided),
            ("consulted", adr.people.consulted),
            ("informed", adr.people.informed),
        ),
        accepted=w.accepted.format(who=adr.accepted_by, day=f"{adr.accepted_at:%Y-%m-%d}") if adr.accepted_at else "",
        review=w.review.format(day=adr.review_on),
        links=_links(adr, others, files or {}, w),
        warnings=dict.fromkeys(x for x in (*warnings, *of_conditions) if x),
        rows=[_row(c, verdicts.get(c.id)) for c in adr.conditions],
    )
    whole = _single_blank_lines(text)
    for mark, part in zip(marks, adr.kept, strict=False):
        whole = whole.replace(mark, _contained(part.markdown))
    fields = _machine(adr, verdicts, head, context)
    read = read_madr(whole.replace(marks[-1], _yaml(fields)))
    exact = exact_block(adr, read)
    return sealed(whole.replace(marks[-1], _yaml(fields | ({"exact": exact} if exact else {}))))


def _contained(markdown: str) -> str:
    """A kept part that stays under its heading: what it opens is closed, a heading as high as ours is lowered.

    A space before what looks like the mark of a merge lets the file be read again.
    """
    lines = [f" {line}" if CONFLICT.match(line) else line for line in printable(markdown).split("\n")]
    for heading in headings(lines):
        if heading.level <= 2 and heading.below - heading.first == 1:
            lines[heading.first] = _HIGH_HEADING.sub(r"\1###\2", lines[heading.first])
        elif heading.level <= 2:
            lines[heading.below - 1] = f"\\{lines[heading.below - 1].strip()}"
    hidden = Hidden()
    for line in lines:
        hidden.takes(line)
    return "\n".join((*lines, hidden.closing) if hidden.closing else lines)


def _status(adr: Adr, others: Mapping[str, Adr], files: Mapping[str, str]) -> str:
    successor = others.get(adr.superseded_by or "")
    return f"superseded by {_reference(successor, files)}" if successor else str(adr.status)


def _reference(adr: Adr, files: Mapping[str, str]) -> str:
    """How an ADR is called in the folder that it is written to, where another file may have its number."""
    number = number_of(files.get(adr.id, "")) or adr.number
    return f"ADR-{number:04d}" if number else adr.title


def _links(adr: Adr, others: Mapping[str, Adr], files: Mapping[str, str], w: Words) -> list[_Link]:
    ids = [(w.supersedes, i) for i in adr.supersedes]
    if adr.superseded_by:
        ids.append((w.superseded_by, adr.superseded_by))
    return [
        _Link(verb, _long_name(others[i], files), files.get(i) or file_name(others[i]))
        if i in others
        else _Link(verb, i, "")
        for verb, i in ids
    ]


def _long_name(adr: Adr, files: Mapping[str, str]) -> str:
    called = _reference(adr, files)
    return f"{called}: {adr.title}" if called != adr.title else called


def _row(flip: FlipCondition, verdict: FlipVerdict | None) -> _Row:
    state = "retired" if flip.retired else verdict.state.value if verdict else "not judged"
    room = "–"
    if verdict and verdict.distance is not None and not flip.retired:
        room = quantity(verdict.distance, verdict.unit)
        if verdict.relative_distance is not None:
            room += f" ({verdict.relative_distance:.0%})"
    return _Row(
        line=flip.in_words(), fires_when="is so" if flip.manual else flip.fires_when, state=state, room=room,
        owner=flip.owner or "–", recheck=flip.recheck_on.isoformat() if flip.recheck_on else "–",
        consequence=flip.consequence or "–",
    )  # fmt: skip


def _machine(
    adr: Adr, verdicts: Mapping[str, FlipVerdict], head: str, context: Context | None
) -> dict[str, object]:  # fmt: skip
    data = {
        "flipline": EXPORT_SCHEMA, "id": adr.id, "case": adr.case, "number": adr.number, "status": adr.status.value,
        "head": head, "supersedes": list(adr.supersedes), "superseded_by": adr.superseded_by,
        "snapshots": {s.kind: s.sha256 for s in adr.snapshots},
        "candidates": {o.title: o.candidate for o in adr.options if o.candidate},
        "conditions": [_condition(c, verdicts.get(c.id)) for c in adr.conditions],
        "judged_in": _judged_in(adr, context),
        "evidence": [
            {"id": e.id, "kind": e.kind.value, "sha256": e.sha256} | ({"run": e.run} if e.run else {})
            for e in adr.evidence
        ],
        "sizing": [figure.key for figure in adr.sizing],
        "opinions": [_opinion(o) for o in adr.opinions],
    }  # fmt: skip
    return {k: _one_line(v) for k, v in data.items() if v not in (None, [], {})}


def _judged_in(adr: Adr, context: Context | None) -> dict[str, object]:
    """The load points and contracts that the conditions speak of, and what goodput is counted under."""
    asked = [c.condition for c in adr.active_conditions if c.condition]
    if context is None or not asked:
        return {}
    names = {n for c in asked for n in (c.candidate, c.over) if n}
    points = {p for c in asked for p in c.load_points}
    known = context.points or {}
    wanted = sorted(known if EVERY_POINT in points else points & known.keys())
    found = {
        "decided": {
            n: context.decided[n].model_dump(mode="json", exclude_defaults=True)
            for n in sorted(names & context.decided.keys())
        },
        "points": {p: known[p].model_dump(mode="json", exclude_defaults=True) for p in wanted},
        "service_levels": context.service_levels if any(c.metric == "goodput" for c in asked) else None,
    }
    return {k: v for k, v in found.items() if v}


def _yaml(fields: Mapping[str, object]) -> str:
    text = yaml.dump(dict(fields), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return str(text).rstrip("\n")


def _condition(flip: FlipCondition, verdict: FlipVerdict | None) -> dict[str, object]:
    fields = {
        "id": flip.id,
        "statement" if flip.manual else "condition": _one_line(flip.in_words()) or "–",
        "forgotten": canonical_json(flip.forgotten.stored) if flip.forgotten else "",
        "fires_when": flip.fires_when,
        "owner": flip.owner,
        "recheck_on": flip.recheck_on.isoformat() if flip.recheck_on else "",
        "action": flip.action.value,
        "consequence": flip.consequence,
        "retired": flip.retired,
        "state": verdict.state.value if verdict and not flip.retired else "",
    }
    return {k: v for k, v in fields.items() if v not in ("", False)}


def _opinion(opinion: Opinion) -> dict[str, object]:
    fields = opinion.model_dump(mode="json", exclude={"at"}) | {"day": f"{opinion.at:%Y-%m-%d}"}
    return {k: v for k, v in fields.items() if v not in ("", False)}


def _one_line(value: Any) -> Any:
    """Strings without line breaks at any depth: no line of the block can close its fence."""
    if isinstance(value, str):
        return " ".join(printable(value).split())
    if isinstance(value, list):
        return [_one_line(v) for v in value]
    return {_one_line(k): _one_line(v) for k, v in value.items()} if isinstance(value, dict) else value


def _single_blank_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1].strip()):
            lines.append(line.rstrip())
    return "\n".join(lines).rstrip("\n") + "\n"
