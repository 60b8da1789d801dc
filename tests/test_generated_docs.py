"""Tables that are written from the code are those of the code: else run the script that is named."""

from __future__ import annotations

from types import ModuleType

import pytest

from scripts import catalog_schema, definitions, hypotheses_doc
from scripts.generated import render
from services.workspace import ROOT


@pytest.mark.parametrize(
    ("file", "script"),
    [("catalog.md", catalog_schema), ("definitions.md", definitions), ("hypotheses.md", hypotheses_doc)],
)
def test_the_tables_are_current(file: str, script: ModuleType) -> None:
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    for name in script.blocks():
        assert f"<!-- {name} -->" in text
    assert render(text, script.blocks()) == text
