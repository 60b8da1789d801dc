"""The comparison on the Results page: what the contracts allow, each outcome in words, nothing where one was seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from services.comparison import comparison
from services.shipped import install
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.test_pages import text
from tests.services.test_comparison import PUBLISHED
from ui.comparison_view import comparison_frame, outcome_in_words

SECTION = """
from services.verdicts import case_state
from services.workspace import open_workspace
from ui.comparison_view import comparison_section
comparison_section(case_state(open_workspace(), "{case}"))
"""


def section(case: str) -> AppTest:
    app = AppTest.from_string(SECTION.format(case=case), default_timeout=60).run()
    assert not app.exception
    return app


@pytest.mark.usefixtures("home")
def test_a_case_in_which_one_candidate_was_seen_has_no_comparison() -> None:
    assert not section("nortia").subheader


@pytest.mark.usefixtures("home")
def test_two_cores_shows_what_is_compared_and_the_declared_difference() -> None:
    app = section("two-cores")
    said = text(app)
    assert "comparable with a declared difference" in said and "weight_format: safetensors -> gguf" in said
    frame = app.dataframe[0].value
    rows = frame.set_index(["Load point", "Figure"])
    assert rows.loc[("single", "total output"), "Outcome"] == "llama-server higher, better"
    assert ("single", "TTFT p50") not in rows.index
    assert (
        "TTFT p50, TTFT p95, TTFT p99, errors, goodput: not comparable: with weight_format declared different" in said
    )
    # both keep up with eight arrivals a second, so both give what arrives
    assert rows.loc[("peak", "total output"), "Outcome"] == "no difference shown"
    app = next(x for x in app.toggle if x.label == "All figures").set_value(True).run()
    assert len(app.dataframe[0].value) > len(frame)


def test_outcomes_in_words_on_the_published_figures(home: Path) -> None:
    ws = open_workspace(home)
    install(ws, PUBLISHED)
    found = comparison(case_state(ws, "vllm-and-sglang"), "vllm", "sglang")
    words = {(r.metric, r.load_point): outcome_in_words(r) for r in found.rows}
    assert words["ttft_ms", "parallel-8"] == "sglang higher, worse"
    assert words["ttft_ms", "parallel-64"] == "conflicting"
    rows = comparison_frame(found).set_index(["Load point", "Figure"])
    assert rows.loc[("parallel-8", "TTFT p50"), "vllm"] == "349 ms (345 – 353)"
    assert rows.loc[("parallel-8", "TTFT p50"), "Ratio"].startswith("0.769 x (")
    assert set(rows["Kind"]) == {"imported"}  # figures of others never read as our own
