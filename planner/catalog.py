"""Facts about models, accelerators and engines, read from catalog/*.yaml and from a team's own folder.

A gap in the facts is None here and is asked for where it is needed; nothing is guessed while reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from planner.catalog_rows import Rows, read_rows
from planner.engine_facts import server
from planner.engine_files import ENGINES, load_engines, own_engines
from planner.engine_schema import Engine
from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.model_schema import Model
from planner.server_schema import Server

REPOSITORY_CATALOG = Path(__file__).resolve().parent.parent / "catalog"


class Refusal(Frozen):
    """What of a team's own entries was left out: where, what is wrong there, and the way out."""

    where: str
    what: str
    fix: str

    @classmethod
    def of(cls, error: InputError) -> Refusal:
        """The refusal that an error tells of."""
        return cls(where=error.where, what=error.what, fix=error.fix)

    @property
    def sentence(self) -> str:
        """All three as one line."""
        return f"{self.where}: {self.what} {self.fix}".rstrip()


class Catalog(Frozen):
    """All facts by id, with the look-ups that name what is near when a name is unknown.

    `refused` is what a team's own folder holds that could not be taken in; the rest is usable.
    """

    models: Mapping[str, Model]
    gpus: Mapping[str, Gpu]
    engines: Mapping[str, Engine] = {}
    refused: tuple[Refusal, ...] = ()

    def model(self, id: str) -> Model:
        """The model with this id, whatever the capitals. Raises UnknownName."""
        return self.models[_find("model", id, {i: i for i in self.models})]

    def gpu(self, name: str) -> Gpu:
        """The accelerator with this id or alias, whatever the capitals. Raises UnknownName."""
        names = {alias: g.id for g in self.gpus.values() for alias in (*g.aliases, g.name, g.id)}
        return self.gpus[_find("GPU", name, names)]

    def engine(self, id: str) -> Engine:
        """The engine with this id. Raises UnknownName."""
        return self.engines[_find("engine", id, {i: i for i in self.engines})]


def _find(kind: str, name: str, known: Mapping[str, str]) -> str:
    for spelled, id in known.items():
        if spelled.lower() == name.strip().lower():
            return id
    raise UnknownName.from_known(kind, name, known, where="catalogue")


Entry = TypeVar("Entry", Model, Gpu)
OWN_FILES = ("models.yaml", "gpus.yaml")


def load_catalog(root: Path | None = None, overlay: Path | None = None, *, tolerant: bool = False) -> Catalog:
    """Read models, accelerators and engines from `root` (default: the repository's catalog folder).

    `overlay` is a folder with own models.yaml, gpus.yaml or engines/*.yaml: an entry with a known id changes the fields
    that it states, one with a new id is added. The result is kept until a file changes. Raises InputError with file,
    line and field; with `tolerant`, what is wrong in the overlay is left out and stands in `refused` instead.
    """
    folder = root or REPOSITORY_CATALOG
    paths = [f / name for f in (folder, overlay) if f for name in OWN_FILES]
    paths += [p for f in (folder, overlay) if f for p in sorted((f / ENGINES).glob("*"))]
    found = _load(folder, overlay, tuple(map(_stamp, paths)))
    if found.refused and not tolerant:
        raise InputError(found.refused[0].what, where=found.refused[0].where, fix=found.refused[0].fix)
    return found


def facts_to_carry(engines: Mapping[str, Engine], name: str) -> Server | None:
    """What a plan has to tell bench about a server; None where the shipped catalogue says the same.

    Raises UnknownName.
    """
    ours = load_catalog().engines
    known = {**ours, **{e.llama_server.id: e.llama_server for e in ours.values() if e.llama_server}}
    found = server(engines, name)
    if known.get(name) == found:
        return None
    return Server.model_validate(found.model_dump(include=set(Server.model_fields)))


def _stamp(path: Path) -> tuple[str, int]:
    return str(path), path.stat().st_mtime_ns if path.exists() else 0


@lru_cache(maxsize=8)
def _load(folder: Path, overlay: Path | None, stamps: tuple[tuple[str, int], ...]) -> Catalog:
    refused: list[InputError] = []
    models = _merged(Model, "models", folder, overlay, refused)
    gpus = _merged(Gpu, "gpus", folder, overlay, refused)
    engines = load_engines(folder / ENGINES) if (folder / ENGINES).is_dir() else {}
    if overlay and engines:
        engines, wrong = own_engines(folder / ENGINES, overlay, engines)
        refused += wrong
    return Catalog(models=models, gpus=gpus, engines=engines, refused=tuple(Refusal.of(e) for e in refused))


def _merged(
    kind: type[Entry], key: str, folder: Path, overlay: Path | None, refused: list[InputError]
) -> dict[str, Entry]:
    ours = read_rows(folder / f"{key}.yaml", key, folder)
    found = {id: _entry(kind, row, ours) for id, row in ours.by_id.items()}
    own = overlay / f"{key}.yaml" if overlay else None
    if own is None or not (own.exists() or own.is_symlink()):
        return found
    try:
        rows = read_rows(own, key, own.parent)
    except InputError as e:
        refused.append(e)
        return found
    for id, row in rows.by_id.items():
        try:
            found[id] = _entry(kind, {**ours.by_id.get(id, {}), **row}, rows)
        except InputError as e:
            refused.append(e)
    return found


def _entry(kind: type[Entry], row: dict[str, Any], rows: Rows) -> Entry:
    try:
        return kind.model_validate(row)
    except ValidationError as e:
        fault = e.errors()[0]
        field = ".".join(str(part) for part in fault["loc"]) or "entry"
        message = fault["msg"].removeprefix("Value error, ").rstrip(".")
        raise InputError(
            f"{field}: {message}.", where=rows.where(row["id"], fault["loc"]),
            fix="Correct the field; null means unknown.",
        ) from None  # fmt: skip
