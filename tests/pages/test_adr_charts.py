"""Charts beside an exported decision: what it cites against what was asked then, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from services.arrivals import bring_in
from services.cases import save_requirements
from services.decisions import begin_draft
from services.exporting import export_all
from services.workspace import Workspace
from tests.services.conftest import shipped, with_nortia
from tests.services.made import CASE, asking, decide, measured, with_plan
from ui.adr_charts import charts_of

__all__ = ["shipped", "with_nortia"]  # fixtures


@pytest.fixture
def cited(shipped: Workspace, tmp_path: Path) -> Workspace:
    """A decision that cites the first token of a run, after 200 ms with two in flight; 2 s are asked."""
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "run"), "Lee")
    decide(shipped, begin_draft(shipped, CASE, "Kim").adr.id)
    return shipped


def drawn(ws: Workspace, folder: Path) -> tuple[bytes, str]:
    """The picture that an export writes, and the Markdown that shows it."""
    (adr,) = export_all(ws, folder, charts=charts_of)
    (svg,) = folder.glob("*.svg")
    assert svg.name == f"{adr.stem}-ttft.svg"
    return svg.read_bytes(), adr.read_text()


def test_the_cited_figure_stands_in_a_picture_beside_the_decision(cited: Workspace, tmp_path: Path) -> None:
    picture, markdown = drawn(cited, tmp_path / "out")
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "within 2 s at p95" in [e.text for e in root.iter()]
    points = [e.attrib["aria-label"] for e in root.iter() if e.attrib.get("aria-roledescription") == "point"]
    assert [p[: p.index(" series")] for p in points] == ["Requests in flight (log scale): 2; TTFT (ms): 200;"]
    alt = "TTFT against requests in flight, with the required time"
    assert f"![{alt}](<0001-vllm-serves-nortia-internal-assistant-ttft.svg>)" in markdown


def test_neither_later_figures_nor_later_requirements_change_it(cited: Workspace, tmp_path: Path) -> None:
    before, _ = drawn(cited, tmp_path / "out")
    assert drawn(cited, tmp_path / "again")[0] == before
    bring_in(cited, CASE, measured(tmp_path / "later", n=140), "Lee")
    last = cited.store.cases.current_requirements(cited.store.cases.get(CASE).id)
    save_requirements(cited, last.case, last.requirements().model_copy(update={"ttft_s": 3.0}), "Lee", last.n)
    with_plan(cited, asking("vllm: ttft p95 <= 3 s at parallel-2"))
    assert drawn(cited, tmp_path / "out")[0] == before
