"""Whether a value fits a JSON schema, for the keywords that answers are asked to fit; others are refused by name.

The keywords mean what JSON Schema 2020-12 says; annotations (title, description, ...) are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from planner.errors import InputError, UnknownName

_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "format"})
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool)) or (isinstance(v, float) and v.is_integer()),
}


def _same(a: Any, b: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(v, b[k]) for k, v in a.items())
    return bool(a == b)


def _of(kind: str, test: Callable[[Any, Any], bool]) -> Callable[[Any, Any, dict[str, Any]], bool]:
    """A test that only values of one type have to pass, as the standard has it."""
    return lambda value, wanted, _: not _TYPES[kind](value) or test(value, wanted)


def _types(value: Any, wanted: Any, _: dict[str, Any]) -> bool:
    return any(_TYPES[t](value) for t in (wanted if isinstance(wanted, list) else [wanted]))


def _additional(value: Any, wanted: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    return all(fits(v, wanted) for k, v in value.items() if k not in schema.get("properties", {}))


_KEYWORDS: dict[str, Callable[[Any, Any, dict[str, Any]], bool]] = {
    "type": _types,
    "enum": lambda v, wanted, _: any(_same(v, w) for w in wanted),
    "const": lambda v, wanted, _: _same(v, wanted),
    "properties": _of("object", lambda v, wanted: all(fits(v[k], s) for k, s in wanted.items() if k in v)),
    "required": _of("object", lambda v, wanted: all(k in v for k in wanted)),
    "additionalProperties": _additional,
    "minProperties": _of("object", lambda v, wanted: len(v) >= wanted),
    "maxProperties": _of("object", lambda v, wanted: len(v) <= wanted),
    "items": _of("array", lambda v, wanted: all(fits(x, wanted) for x in v)),
    "minItems": _of("array", lambda v, wanted: len(v) >= wanted),
    "maxItems": _of("array", lambda v, wanted: len(v) <= wanted),
    "minLength": _of("string", lambda v, wanted: len(v) >= wanted),
    "maxLength": _of("string", lambda v, wanted: len(v) <= wanted),
    "pattern": _of("string", lambda v, wanted: re.search(wanted, v) is not None),
    "minimum": _of("number", lambda v, wanted: v >= wanted),
    "maximum": _of("number", lambda v, wanted: v <= wanted),
    "exclusiveMinimum": _of("number", lambda v, wanted: v > wanted),
    "exclusiveMaximum": _of("number", lambda v, wanted: v < wanted),
    "anyOf": lambda v, wanted, _: any(fits(v, s) for s in wanted),
    "oneOf": lambda v, wanted, _: sum(fits(v, s) for s in wanted) == 1,
    "allOf": lambda v, wanted, _: all(fits(v, s) for s in wanted),
    "not": lambda v, wanted, _: not fits(v, wanted),
}
_ONE_SCHEMA, _SCHEMAS = ("items", "additionalProperties", "not"), ("anyOf", "oneOf", "allOf")


def fits(value: Any, schema: Any) -> bool:
    """Whether a parsed value fits a schema that `check_schema` let through."""
    if isinstance(schema, bool):
        return schema
    return all(_KEYWORDS[k](value, wanted, schema) for k, wanted in schema.items() if k in _KEYWORDS)


def check_schema(schema: Any, *, where: str) -> None:
    """Refuse a schema that could not be checked; raises InputError or UnknownName with the keyword."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise InputError(f"a JSON schema is an object, not {schema!r}.", where=where)
    for name, wanted in schema.items():
        if name in _ANNOTATIONS:
            continue
        if name not in _KEYWORDS:
            raise UnknownName.from_known("JSON schema keyword", name, _KEYWORDS, where=where)
        if not _well_formed(name, wanted):
            raise InputError(f"JSON schema: {name} cannot be {wanted!r}.", where=where)
        inner = [wanted] if name in _ONE_SCHEMA else list(wanted) if name in _SCHEMAS else []
        for s in [*inner, *(wanted.values() if name == "properties" else ())]:
            check_schema(s, where=where)


def _well_formed(name: str, wanted: Any) -> bool:
    if name == "type":
        names = wanted if isinstance(wanted, list) else [wanted]
        return bool(names) and all(isinstance(t, str) and t in _TYPES for t in names)
    if name == "pattern":
        return isinstance(wanted, str) and _compiles(wanted)
    if name == "properties":
        return isinstance(wanted, dict)
    if name == "required":
        return isinstance(wanted, list) and all(isinstance(k, str) for k in wanted)
    if name in ("enum", *_SCHEMAS):
        return isinstance(wanted, list) and bool(wanted)
    return not name.lower().startswith(("min", "max", "exclusive")) or _TYPES["number"](wanted)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
