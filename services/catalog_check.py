"""Is the catalogue whole: every file readable, every statement with its source, no name that leads nowhere, how old."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from planner.catalog import REPOSITORY_CATALOG, Catalog, load_catalog
from planner.engine_check import faults
from planner.engine_facts import age
from planner.engine_files import ENGINES
from planner.engine_schema import Engine
from planner.errors import FliplineError
from planner.launch_recipes import RECIPES
from planner.plan_file import plan_from_yaml
from planner.quantization import quantization
from planner.requirements import Requirements
from planner.weighting import CRITERIA
from planner.yaml_files import parse_guarded, read_text
from services.cases import requirements_from
from services.catalog_sources import thin_sources
from services.shipped import CASES, imported_rows


class CatalogCheck(NamedTuple):
    """What was found: `broken` has to be mended; `stale` and `aside` are to be known; `current` is in order."""

    counts: str
    broken: tuple[str, ...]
    stale: tuple[str, ...]
    aside: tuple[str, ...]
    current: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """One line per finding, the worst first."""
        yield self.counts
        for word, found in (("BROKEN", self.broken), ("STALE", self.stale), ("note", self.aside),
                            ("current", self.current)):  # fmt: skip
            yield from (f"{word} {line}" for line in found)


def check_catalog(home: Path, today: date, root: Path = REPOSITORY_CATALOG, cases: Path = CASES) -> CatalogCheck:
    """Check our catalogue with a workspace's own entries, and the shipped cases that refer to it."""
    own = home / "catalog"
    try:
        found = load_catalog(root, own if own.is_dir() else None, tolerant=True)
    except FliplineError as e:
        return CatalogCheck("The catalogue cannot be read.", (str(e),), (), (), ())
    ages = [age(e, today) for e in found.engines.values()]
    counts = (
        f"{len(found.models)} models, {len(found.gpus)} GPUs, {len(found.engines)} engines can be read"
        f"{f', own entries from {own} included' if own.is_dir() else ''}."
    )
    return CatalogCheck(
        counts,
        broken=(*(r.sentence for r in found.refused), *_in_text(root), *_in_engines(found.engines),
                *_in_recipes(found.engines), *_in_cases(found, cases)),
        stale=tuple(a.sentence for a in ages if a.stale),
        aside=(*_worth_knowing(found.engines), *thin_sources(found)),
        current=tuple(a.sentence for a in ages if not a.stale),
    )  # fmt: skip


def _in_text(root: Path) -> Iterator[str]:
    """Our engine files are read fast; here they are held to what is asked of a team's own: no key twice, no alias."""
    for path in sorted((root / ENGINES).glob("*.yaml")):
        try:
            parse_guarded(read_text(path, root), path.name)
        except FliplineError as e:
            yield str(e)


def _in_engines(engines: Mapping[str, Engine]) -> Iterator[str]:
    rated = {axis for e in engines.values() for axis in e.axes}
    for criterion in CRITERIA:
        if criterion not in rated:
            yield f"planner/weighting.py: weighs {criterion!r}, which no engine rates."
    for engine in engines.values():
        name = f"{engine.id}.yaml"
        yield from (f"{name}: {fault} {fault.fix}" for fault in faults(engine))
        for s in engine.formats.substitutes:
            if engine.formats.support(s.weight_format, s.becomes) is None:
                yield f"{name}: formats.substitutes: {s.becomes} in {s.weight_format} is no format that it reads."


def _in_recipes(engines: Mapping[str, Engine]) -> Iterator[str]:
    """Launch recipes name roles; each must be a parameter with a flag in its server's file."""
    servers = {**engines, **{e.llama_server.id: e.llama_server for e in engines.values() if e.llama_server}}
    for id, recipe in RECIPES.items():
        if id not in servers:
            yield f"planner/launch_recipes.py: starts {id!r}, which the catalogue does not have."
            continue
        for step in recipe.steps:
            parameter = servers[id].parameters.get(step.role)
            if parameter is None or not (parameter.switch_off if step.off else parameter.flag):
                yield f"{id}: parameters.{step.role}: its launch recipe needs a flag, and there is none."


def _worth_knowing(engines: Mapping[str, Engine]) -> Iterator[str]:
    criteria = sorted({axis for e in engines.values() for axis in e.axes})
    for engine in engines.values():
        missing = (a for a in criteria if a not in engine.axes)
        yield from (f"{engine.name}: {a} is not rated, so it counts as unknown." for a in missing)
        for name, axis in engine.axes.items():
            if engine.version not in axis.versions.split(" to "):
                yield f"{engine.name}: {name} was read of {axis.versions}; the file describes {engine.version}."


def _in_cases(found: Catalog, cases: Path) -> Iterator[str]:
    for path in sorted(cases.glob("*.yaml")):
        try:
            data: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
            r = requirements_from(data["requirements"])
            yield from (f"{path.name}: {fault}" for fault in _in_requirements(found, r))
            plan = path.with_suffix("") / "plan.yaml"
            candidates = set(found.engines)
            if plan.is_file():
                body = plan_from_yaml(plan.read_text(encoding="utf-8"), where=plan.name)
                candidates |= {c.id for c in body.candidates}
            for name in dict.fromkeys(row["candidate"] for row in imported_rows(data)):
                if name not in candidates:
                    yield f"{path.name}: imported: unknown candidate {name!r}."
        except FliplineError as e:
            yield f"{path.name}: {e}"


def _in_requirements(found: Catalog, r: Requirements) -> Iterator[str]:
    lookups: list[tuple[Callable[[str], object], str]] = [
        *((found.model, p.model) for p in r.model_plans), *((quantization, p.quantization) for p in r.model_plans),
        *((found.gpu, h.gpu) for h in r.hardware), *((found.engine, e) for e in [r.current_engine] if e),
    ]  # fmt: skip
    for look_up, name in lookups:
        try:
            look_up(name)
        except FliplineError as e:
            yield str(e)
