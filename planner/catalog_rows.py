"""Reads models.yaml and gpus.yaml: a schema number and a list of entries with an id each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import InputError, SchemaTooNew
from planner.yaml_files import Place, at_line, line_of, parse_guarded, read_text

CATALOG_SCHEMA = 1


class Rows(NamedTuple):
    """The entries of one file by id, and what is needed to say where one stands."""

    by_id: dict[str, dict[str, Any]]
    order: tuple[str, ...]
    name: str
    key: str
    text: str

    def where(self, id: str, place: Place) -> str:
        """File, line and entry of a field."""
        line = line_of(self.text, (self.key, self.order.index(id), *place))
        return f"{at_line(self.name, line)}, {self.key} {id!r}"


def read_rows(path: Path, key: str, folder: Path) -> Rows:
    """The entries below `key` in a file of `folder`.

    Raises InputError with file and line, SchemaTooNew for a file of a newer Flipline.
    """
    if not path.exists() and not path.is_symlink():
        raise InputError("file not found.", where=str(path), fix="Give the folder that holds the catalogue.")
    text = read_text(path, folder)
    body = parse_guarded(text, path.name)
    if not isinstance(body, dict) or not isinstance(body.get(key), list):
        raise InputError(f"expected 'schema: {CATALOG_SCHEMA}' and a list '{key}'.", where=at_line(path.name, 1),
                         fix="Begin the file with both.")  # fmt: skip
    if body.get("schema") != CATALOG_SCHEMA:
        raise SchemaTooNew(
            f"schema {body.get('schema')!r}; this Flipline reads {CATALOG_SCHEMA}.",
            where=at_line(path.name, line_of(text, ("schema",))), fix="Update Flipline.",
        )  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    for n, row in enumerate(body[key]):
        where = f"{at_line(path.name, line_of(text, (key, n)))}, {key} number {n + 1}" if _odd(row, rows) else ""
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise InputError("every entry needs an id.", where=where, fix="Add 'id: ...'.")
        if row["id"] in rows:
            raise InputError(f"id {row['id']!r} stands twice.", where=where, fix="Keep one of them.")
        rows[row["id"]] = row
    return Rows(rows, tuple(rows), path.name, key, text)


def _odd(row: Any, known: dict[str, dict[str, Any]]) -> bool:
    return not isinstance(row, dict) or not isinstance(row.get("id"), str) or row["id"] in known
