"""docs/catalog.md is the schema: its tables are written from it, and its examples are read by it."""

from __future__ import annotations

import re

import yaml

from planner import engine_schema, server_schema
from planner.engine_schema import Axis, Engine, Source
from planner.frozen import Frozen
from planner.server_schema import Server
from services.workspace import ROOT

TEXT = (ROOT / "docs" / "catalog.md").read_text(encoding="utf-8")


def test_every_field_of_an_engine_file_stands_in_the_document_and_no_other() -> None:
    part = TEXT.split("<!-- engines -->")[1].split("<!-- /engines -->")[0]
    listed = {name: set(re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE))
              for name, body in re.findall(r"#### (\w+)\n(.*?)(?=\n#### |\Z)", part, re.DOTALL)}  # fmt: skip
    assert listed["Server"] == set(Server.model_fields)
    assert listed["Engine"] == set(Engine.model_fields) - set(Server.model_fields)
    assert listed["Axis"] == set(Axis.model_fields)
    assert listed["Source"] == set(Source.model_fields)


def test_no_field_of_an_engine_file_is_read_by_nobody() -> None:
    # What no code reads is no fact but ballast: it ages unseen, and nobody would notice that it is wrong.
    read = "\n".join(p.read_text(encoding="utf-8") for room in ("bench", "pages", "planner", "services", "ui")
                     for p in sorted((ROOT / room).rglob("*.py")) if not p.stem.endswith("_schema"))  # fmt: skip
    own = [c for m in (engine_schema, server_schema) for c in vars(m).values()
           if isinstance(c, type) and issubclass(c, Frozen) and c.__module__ == m.__name__]  # fmt: skip
    fields = {f"{c.__name__}.{name}": name for c in own for name in c.model_fields}
    unread = {place for place, name in fields.items() if not re.search(rf"\.{name}\b", read)}
    assert unread == set()


def test_the_examples_are_valid() -> None:
    sources, axes = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
    assert Source.model_validate(sources["sources"]["vllm 0.33.0 wheel"]).published is not None
    assert Axis.model_validate(axes["axes"]["batching"]).versions.endswith("0.33.0")
