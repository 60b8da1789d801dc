"""What a schema cannot say about an engine's file: every statement has a source that is named, every rating its proof.

A source is cited as "NAME" or "NAME: where in it", with NAME among the file's `sources`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from planner.engine_schema import ENGINE_SECTIONS, PERFORMANCE_AXES, SERVER_SECTIONS, Engine, Source
from planner.server_schema import Server

NOT_READ = "not read"  # the source of a gap: nothing is claimed
CITING = ("source", "sources")
# What bench reads from a server's page and needs a name for, where the server has such a page.
METRIC_ROLES = (
    "running", "waiting", "kv_use", "preemptions", "prefix_hits", "prefix_queries", "prompt_tokens",
    "generation_tokens", "ttft", "kv_capacity",
)  # fmt: skip

Place = tuple[str | int, ...]


class Fault(NamedTuple):
    """Where in a file something is wrong, what, and the way out."""

    place: Place
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.place))}: {self.what}"


def cited(engine: Engine, citation: str) -> Source | None:
    """The source that a citation names; None for a gap or an unknown name."""
    return engine.sources.get(_name(engine, citation))


def _name(engine: Engine, citation: str) -> str:
    return citation if citation in engine.sources else citation.partition(": ")[0]


def citations(engine: Engine) -> Iterator[tuple[Place, str]]:
    """Every citation of a file with its place."""
    data = engine.model_dump(exclude={"sources", "section_sources"})
    yield from _citations(data, ())
    for section, texts in engine.section_sources.items():
        yield from ((("section_sources", section, i), text) for i, text in enumerate(texts))


def _citations(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in (*CITING, "section_sources"):
                yield from _texts(inner, (*place, key))
            else:
                yield from _citations(inner, (*place, key))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _citations(inner, (*place, i))


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*place, key))
    elif value is not None:
        for i, inner in enumerate(value):
            yield from _texts(inner, (*place, i))


def faults(engine: Engine) -> tuple[Fault, ...]:
    """All that is wrong in one engine's facts, empty when nothing is."""
    found = [*_sourceless(engine), *_unproven(engine), *_metrics((), engine)]
    if engine.llama_server:
        found += _metrics(("llama_server",), engine.llama_server)
    return tuple(found)


def _sourceless(engine: Engine) -> Iterator[Fault]:
    used: set[str] = set()
    for place, text in citations(engine):
        gap = text == NOT_READ and place[0] == "air_gap" and engine.air_gap.works is None
        used.add(_name(engine, text))
        if cited(engine, text) is None and not gap:
            yield Fault(place, f"{text!r} is none of the file's sources.",
                        "Add it to `sources` (address, version, read_on, read), or cite one of them.")  # fmt: skip
    for name in engine.sources:
        if name not in used:
            yield Fault(("sources", name), "is cited nowhere.", "Cite it, or remove it.")
    parts: list[tuple[Place, Server, tuple[str, ...]]] = [((), engine, ENGINE_SECTIONS)]
    if engine.llama_server:
        parts.append((("llama_server",), engine.llama_server, SERVER_SECTIONS))
    for prefix, server, needed in parts:
        for section in needed:
            if not server.section_sources.get(section):
                yield Fault((*prefix, "section_sources", section), "no source.", f"Say where {section} was read.")


def _unproven(engine: Engine) -> Iterator[Fault]:
    for name, axis in engine.axes.items():
        alone = axis.evidence_kind == "documented" and name in PERFORMANCE_AXES and axis.rating is not None
        if alone and not axis.only_documented:
            yield Fault(("axes", name), "a rating of performance that rests on documentation alone, and is not marked.",
                        "Write only_documented: true, or cite code, a report or a measurement.")  # fmt: skip
        elif axis.only_documented and not alone:
            yield Fault(("axes", name, "only_documented"), "is marked, and rests on more than documentation.",
                        "Remove the mark.")  # fmt: skip


def _metrics(place: Place, server: Server) -> Iterator[Fault]:
    if "metrics" in server.endpoints:
        for role in METRIC_ROLES:
            if role not in server.metrics:
                yield Fault((*place, "metrics", role), "no names; an empty list says that the server has none.",
                            f"Add {role}: [] or its series.")  # fmt: skip
    for role in server.metrics_page.read:
        if not server.metrics.get(role):
            yield Fault((*place, "metrics_page", "read", role), "reads a role that has no series.", "Name its series.")
    known = {name for names in server.metrics.values() for name in names}
    for name in server.metrics_page.versions:
        if name not in known:
            yield Fault((*place, "metrics_page", "versions", name), "is no series of `metrics`.", "Correct the name.")
    for name, pattern in server.log_patterns.items():
        if pattern.read(pattern.example) != pattern.expect:
            yield Fault((*place, "log_patterns", name), "does not read its own example.", "Correct regex or expect.")
