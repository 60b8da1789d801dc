"""How well the catalogue's sources can be found again: which name no address, and which no version, commit or day.

A thin source is told and not refused: what was read was read, and a team can do better in its own entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from planner.catalog import Catalog
from planner.engine_schema import Engine
from planner.gpu_schema import Gpu
from planner.model_schema import Model

# A page, an owner/repository, a site, or a file of this repository.
FINDABLE = re.compile(r"https?://|[\w.-]+/[\w.-]+|\b[\w-]+\.(ai|co|com|dev|fr|io|net|org)\b")
# A commit, an issue or pull request, a release or a day.
DATED = re.compile(r"@[0-9a-f]{7,}|#\d+|\b\d{4}-\d\d-\d\d\b|\bv?\d+\.\d+\.\d+\b|\bbuild \w+")
NOT_NOTED = "not noted"


def thin_sources(found: Catalog) -> Iterator[str]:
    """One line a file and fault, with the entries it concerns."""
    yield from _thin("models.yaml", found.models)
    yield from _thin("gpus.yaml", found.gpus)
    for engine in found.engines.values():
        yield from _unnoted(engine)


def _thin(name: str, entries: Mapping[str, Model] | Mapping[str, Gpu]) -> Iterator[str]:
    lost = [id for id, e in entries.items() if not any(map(FINDABLE.search, e.sources))]
    undated = [id for id, e in entries.items() if id not in lost and not any(map(DATED.search, e.sources))]
    for what, ids in (("no address or repository", lost), ("an address, and no version or day", undated)):
        if ids:
            yield f"{name}: {len(ids)} of {len(entries)} entries name {what}: {', '.join(ids)}."


def _unnoted(engine: Engine) -> Iterator[str]:
    names = [name for name, s in engine.sources.items() if NOT_NOTED in s.version]
    if names:
        yield (
            f"{engine.name}: the version of {len(names)} of {len(engine.sources)} sources was not noted, only the day "
            f"they were read: {', '.join(names)}."
        )
