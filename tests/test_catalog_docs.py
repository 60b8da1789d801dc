"""docs/catalog.md is the schema: its tables are written from it, and its examples are read by it."""

from __future__ import annotations

import re

import yaml

from planner.engine_schema import Axis, Engine, Source
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


def test_the_examples_are_valid() -> None:
    sources, axes = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
    assert Source.model_validate(sources["sources"]["vllm 0.33.0 wheel"]).published is not None
    assert Axis.model_validate(axes["axes"]["batching"]).versions.endswith("0.33.0")
