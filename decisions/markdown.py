"""An ADR as Markdown: MADR 4.0 front matter and headings for people, one YAML block for machines.

The same input gives the same bytes: nothing here looks at a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from decisions import escaping
from decisions.chain import GENESIS
from decisions.exports import file_name, sealed
from decisions.flips import FlipVerdict
from decisions.record import Adr, FlipCondition
from planner.metrics import quantity

EXPORT_SCHEMA = 1


class _Link(NamedTuple):
    """One ADR seen from another."""

    words: str
    name: str
    file: str


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
        "block": escaping.block, "clause": escaping.clause, "code": escaping.code, "quoted": escaping.quoted,
        "link": _link,
    }  # fmt: skip
    return environment


_TEMPLATE = _environment().get_template("adr.md.j2")


def to_markdown(
    adr: Adr, flips: Iterable[FlipVerdict] = (), *, head: str = GENESIS, related: Mapping[str, Adr] | None = None,
    files: Mapping[str, str] | None = None, warnings: Iterable[str] = (),
) -> str:  # fmt: skip
    """Write one ADR. `head` is its chain's last hash, `related` the ADRs it supersedes or is superseded by, by id.

    `files` are the names of their files by id, where they are not called by their number. `warnings` are what a reader
    must know beside the outcome (decisions.lint.speed_warnings).

    Without a verdict in `flips` a condition's state reads "not judged".
    """
    others = related or {}
    verdicts = {v.condition: v for v in flips}
    of_conditions = (v.verdict.warning for v in verdicts.values() if v.verdict)
    text = _TEMPLATE.render(
        adr=adr,
        status=_status(adr, others),
        people=(
            ("decision-makers", adr.people.decided),
            ("consulted", adr.people.consulted),
            ("informed", adr.people.informed),
        ),
        links=_links(adr, others, files or {}),
        warnings=dict.fromkeys(w for w in (*warnings, *of_conditions) if w),
        rows=[_row(c, verdicts.get(c.id)) for c in adr.conditions],
        machine=escaping.Safe(_machine(adr, verdicts, head).rstrip("\n")),
    )
    return sealed(_single_blank_lines(text))


def _status(adr: Adr, others: Mapping[str, Adr]) -> str:
    successor = others.get(adr.superseded_by or "")
    return f"superseded by {_reference(successor)}" if successor else str(adr.status)


def _reference(adr: Adr) -> str:
    return f"ADR-{adr.number:04d}" if adr.number else adr.title


def _links(adr: Adr, others: Mapping[str, Adr], files: Mapping[str, str]) -> list[_Link]:
    ids = [("Supersedes", i) for i in adr.supersedes]
    if adr.superseded_by:
        ids.append(("Superseded by", adr.superseded_by))
    return [
        _Link(w, _long_name(others[i]), files.get(i) or file_name(others[i])) if i in others else _Link(w, i, "")
        for w, i in ids
    ]


def _long_name(adr: Adr) -> str:
    return f"{_reference(adr)}: {adr.title}" if adr.number else adr.title


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


def _machine(adr: Adr, verdicts: Mapping[str, FlipVerdict], head: str) -> str:
    conditions = [_condition(c, verdicts.get(c.id)) for c in adr.conditions]
    data = {
        "flipline": EXPORT_SCHEMA, "id": adr.id, "case": adr.case, "number": adr.number, "status": adr.status.value,
        "head": head, "supersedes": list(adr.supersedes), "superseded_by": adr.superseded_by,
        "snapshots": {s.kind: s.sha256 for s in adr.snapshots},
        "conditions": conditions,
        "evidence": [
            {"id": e.id, "kind": e.kind.value, "sha256": e.sha256} | ({"run": e.run} if e.run else {})
            for e in adr.evidence
        ],
    }  # fmt: skip
    kept = {k: _one_line(v) for k, v in data.items() if v not in (None, [], {})}
    return yaml.dump(kept, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _condition(flip: FlipCondition, verdict: FlipVerdict | None) -> dict[str, object]:
    fields = {
        "id": flip.id,
        "statement" if flip.manual else "condition": flip.in_words(),
        "fires_when": flip.fires_when,
        "owner": flip.owner,
        "recheck_on": flip.recheck_on.isoformat() if flip.recheck_on else "",
        "action": flip.action.value,
        "consequence": flip.consequence,
        "retired": flip.retired,
        "state": verdict.state.value if verdict and not flip.retired else "",
    }
    return {k: v for k, v in fields.items() if v not in ("", False)}


def _one_line(value: Any) -> Any:
    """Strings without line breaks at any depth: no line of the block can close its fence."""
    if isinstance(value, str):
        return " ".join(escaping.plain(value).split())
    if isinstance(value, list):
        return [_one_line(v) for v in value]
    return {_one_line(k): _one_line(v) for k, v in value.items()} if isinstance(value, dict) else value


def _single_blank_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1].strip()):
            lines.append(line.rstrip())
    return "\n".join(lines).rstrip("\n") + "\n"
