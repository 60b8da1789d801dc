"""Measure: another tool's result comes in by the page, and every page opens on what came in."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.arrivals import bring_in_foreign
from services.foreign import Said
from services.workspace import ROOT, open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text

THEIRS = ROOT / "tests" / "golden" / "foreign" / "vllm-appended.json"


def test_import_results_says_what_it_reads(launch: Launch) -> None:
    app = launch("measure")
    app.session_state["way"] = "theirs"
    app.run()
    assert not app.exception
    assert "vllm bench serve" in text(app) and "Result file" in text(app)


@pytest.mark.parametrize("url", ["measure", "results", "decision"])
def test_pages_open_on_an_imported_result(launch: Launch, home: Path, url: str) -> None:
    launch("overview")  # the first visit installs the shipped cases
    ws = open_workspace(home)
    said = Said("vllm", {"in-flight-2-64-5": "parallel-2"})
    bring_in_foreign(ws, ws.store.cases.get("nortia").id, THEIRS.name, THEIRS.read_bytes(), said, "Test")
    app = launch(url)
    assert not app.exception
    if url != "decision":
        assert "imported" in text(app)
