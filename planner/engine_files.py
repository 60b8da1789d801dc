"""Reads catalog/engines and the engine files of a team's own folder, which add engines or change stated fields of ours.

Ours must be right and raise. A file of the team's own that is wrong is refused with file, line and way out, and leaves
the rest as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.engine_check import faults
from planner.engine_schema import Engine
from planner.errors import InputError, UnknownName
from planner.faults import first_fault
from planner.yaml_files import Place, at_line, line_of, parse, parse_guarded, read_text

ENGINES = "engines"
SHIPPED = Path(__file__).resolve().parent.parent / "catalog" / ENGINES
FIELDS = "docs/catalog.md lists the fields."
# What we say of a value of ours falls with it: another image has not our digest.
FALLS_WITH = {
    "image": ("image_basis", "image_digest", "image_digest_basis", "image_needs"),
    "image_digest": ("image_digest_basis",),
}  # fmt: skip


def shipped_ids() -> tuple[str, ...]:
    """Ids of our engines, from the names of their files."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def load_engine(path: Path) -> Engine:
    """Read one engine file of ours; raises InputError with file, line, field and fault."""
    text = read_text(path, path.parent)
    return _engine(parse(text, path.name), text, path.name)


def load_engines(root: Path) -> dict[str, Engine]:
    """Read every engine file of a folder, by id; raises InputError for a faulty file, and when there is none."""
    paths = sorted(root.glob("*.yaml"))
    if not paths:
        raise InputError("no engine file here.", where=str(root), fix="Point to the folder catalog/engines.")
    return {e.id: e for e in map(load_engine, paths)}


def own_engines(root: Path, own: Path, ours: Mapping[str, Engine]) -> tuple[dict[str, Engine], list[InputError]]:
    """The engines with those of `own`/engines laid over them, and what was refused.

    `root` is our engines' folder. A file with a known id changes the fields that it states, any other adds an engine.
    """
    found, refused = dict(ours), []
    for path in own_files(own / ENGINES):
        try:
            engine = _own_engine(path, own, root, ours)
            _unused(engine, found, path, own)
            found[engine.id] = engine
        except InputError as e:
            refused.append(e)
    return found, refused


def own_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that are YAML by their name, in order; a broken link is among them."""
    return (p for p in sorted(folder.glob("*")) if p.suffix.lower() in (".yaml", ".yml"))


def _own_engine(path: Path, own: Path, root: Path, ours: Mapping[str, Engine]) -> Engine:
    name = f"{ENGINES}/{path.name}"
    if path.suffix != ".yaml":
        raise InputError("is not read: its name does not end in .yaml.", where=name, fix="Rename it.")
    text = read_text(path, own)
    data = parse_guarded(text, name)
    if not isinstance(data, dict):
        raise InputError("holds no fields.", where=at_line(name, 1), fix=FIELDS)
    if path.stem in ours:
        _rated_with_source(data, text, name)
        data = _over(parse((root / path.name).read_text(encoding="utf-8"), path.name), data)
    engine = _engine(data, text, name)
    known = sorted({axis for e in ours.values() for axis in e.axes})
    for axis in engine.axes:
        if axis not in known:
            near = UnknownName.from_known("criterion", axis, known)
            raise _refused(text, name, ("axes", axis), "is no criterion.", near.fix)
    for fault in faults(engine):
        raise _refused(text, name, fault.place, fault.what, fault.fix)
    return engine


def _engine(data: Any, text: str, name: str) -> Engine:
    try:
        engine = Engine.model_validate(data)
    except ValidationError as e:
        first = e.errors()[0]
        what = first_fault(e)
        if first["type"] == "extra_forbidden":
            what = f"{'.'.join(map(str, first['loc']))}: is no field here."
        raise InputError(what, where=at_line(name, line_of(text, first["loc"])), fix=FIELDS) from None
    if engine.id != Path(name).stem:
        what = f"{engine.id!r} differs from the file's name, so that an id could be used twice."
        raise _refused(text, name, ("id",), what, "Rename one of them.")
    return engine


def _refused(text: str, name: str, place: Place, what: str, fix: str) -> InputError:
    field = ".".join(map(str, place))
    return InputError(f"{field}: {what}", where=at_line(name, line_of(text, place)), fix=fix)


def _rated_with_source(data: dict[str, Any], text: str, name: str) -> None:
    """A rating of the team's own must not borrow our source."""
    axes = data.get("axes")
    for axis, row in axes.items() if isinstance(axes, dict) else ():
        if isinstance(row, dict) and "rating" in row and not {"source", "versions", "read_on"} <= set(row):
            raise _refused(text, name, ("axes", axis, "rating"), "a rating of your own needs its own source.",
                           "State source, versions and read_on beside it.")  # fmt: skip


def _over(ours: Any, own: Any) -> Any:
    """Our values with the stated ones in their place, mapping by mapping; a list is replaced as a whole."""
    if not (isinstance(ours, dict) and isinstance(own, dict)):
        return own
    fallen = {name for key in own for name in FALLS_WITH.get(key, ())}
    kept = {key: value for key, value in ours.items() if key not in fallen}
    return {**kept, **{key: _over(ours.get(key), value) for key, value in own.items()}}


def _unused(engine: Engine, known: Mapping[str, Engine], path: Path, own: Path) -> None:
    """No two servers may answer to one id: bench and the plan know them by it alone."""
    taken = {e.llama_server.id: e.name for e in known.values() if e.llama_server and e.id != engine.id}
    mine: list[tuple[Place, str]] = [(("id",), engine.id)]
    mine += [(("llama_server", "id"), engine.llama_server.id)] if engine.llama_server else []
    for place, id in mine:
        other = taken.get(id) or (known[id].name if id in known and id != engine.id else None)
        if other or [i for _, i in mine].count(id) > 1:
            what = f"{id!r} is used by {other or engine.name} already."
            name = f"{ENGINES}/{path.name}"
            raise _refused(read_text(path, own), name, place, what, "Choose another id, and rename the file.")
