"""Verdicts, quality and what to measure next, as the pages say them."""

from __future__ import annotations

from pathlib import Path

from services.decisions import begin_draft
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from tests.services.crossing import both_sets, both_speeds, brought, crossing_plan
from ui.report import report_of
from ui.report_html import as_html
from ui.report_markdown import as_markdown


def test_a_speed_across_precisions_warns_until_a_quality_set_was_answered(
    launch: Launch, home: Path, tmp_path: Path
) -> None:
    ws = open_workspace(home)
    crossing_plan(ws)
    both_speeds(ws, tmp_path)
    brought(ws, tmp_path / "late", "vllm", "fp8", start=4, loop_lag_p99_ms=90.0)
    missing = "no quality result stands beside their speeds"
    assert missing in text(launch("overview"))
    begin_draft(ws, "nortia", "Kim")
    assert missing in text(launch("adr-log"))
    for form in (as_html, as_markdown):
        in_short = form(report_of(ws, case_state(ws, "nortia"))).partition("Question and requirements")[0]
        assert missing in in_short
    both_sets(ws, tmp_path, failing=6)
    ws.store.close()
    results = launch("results")
    said = text(results)
    assert missing not in said
    assert "Loss shown (15 %, at least 0.465 %): of 40 items 34 passed against 40" in said
    assert "6 items differ" in said
    assert "](?case=nortia&run=" in said  # the runs that a verdict rests on
    assert "Measure next" in [h.value for h in results.subheader]


def test_the_overview_says_what_to_measure_next(launch: Launch) -> None:
    assert "vllm at single could end the plan" in text(launch("overview")).replace("*", "")
