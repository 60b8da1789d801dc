"""Engines as facts: how they age, which server a name means, and compute capability as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta

from planner.engine_schema import CAPABILITY, Engine
from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.server_schema import Server

# A set of facts outlives this many expected releases of its engine before it is called stale.
FACTS_OUTLIVE_RELEASES = 3


class Age(Frozen):
    """How old an engine's facts are on a day, and whether its release cadence has overtaken them."""

    days: int
    allowed_days: int | None
    stale: bool
    sentence: str


def capability(text: str) -> tuple[int, int]:
    """Compute capability as numbers that compare: 8.9 is below 12.0. Raises InputError."""
    if not re.match(CAPABILITY, text):
        raise InputError(f"compute capability {text!r} is not of the form 9.0.", fix="Write major.minor.")
    major, minor = text.split(".")
    return int(major), int(minor)


def age(engine: Engine, today: date) -> Age:
    """Age of an engine's facts in days since the version they describe."""
    days = (today - engine.date).days
    if engine.cadence_days is None:
        return Age(days=days, allowed_days=None, stale=False,
                   sentence=f"{engine.name} {engine.version} is {days} days old and no release follows.")  # fmt: skip
    allowed = FACTS_OUTLIVE_RELEASES * engine.cadence_days
    until = engine.date + timedelta(days=allowed)
    return Age(
        days=days, allowed_days=allowed, stale=days > allowed,
        sentence=(
            f"{engine.name} {engine.version} is {days} days old; with a release about every {engine.cadence_days} days "
            f"its facts hold until {until.isoformat()}."
        ),
    )  # fmt: skip


def stale(engine: Engine, today: date) -> bool:
    """Whether more releases than FACTS_OUTLIVE_RELEASES are to be expected since the version that was read."""
    return age(engine, today).stale


def server(engines: Mapping[str, Engine], name: str) -> Server:
    """The engine of that id, or the llama-server that an engine's entry carries. Raises UnknownName."""
    servers: dict[str, Server] = dict(engines)
    servers |= {e.llama_server.id: e.llama_server for e in engines.values() if e.llama_server}
    if name not in servers:
        raise UnknownName.from_known("engine", name, servers)
    return servers[name]
