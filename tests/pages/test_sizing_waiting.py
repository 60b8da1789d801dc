"""The waiting section of the Sizing page: a range, never one number, and policies that react to the controls."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.pages.test_pages import text


def section() -> None:
    """What the page does, alone on a page of its own."""
    from services.cases import sizings
    from services.verdicts import case_state
    from ui.cached import workspace
    from ui.sizing_waiting import show

    ws = workspace()
    requirements = case_state(ws, "nortia").requirements
    assert requirements is not None
    sizing = sizings(ws, requirements)[0].sizing
    assert sizing is not None
    show(sizing, requirements)


def test_it_shows_ranges_says_that_they_are_simulated_and_reacts(home: Path) -> None:
    app = AppTest.from_function(section, default_timeout=60)
    app.session_state["waiting-policies"] = app.session_state["how-waiting_ttft_p95-"] = True  # opened
    app.run()
    assert not app.exception and not app.error
    said = text(app)
    assert "Predicted by simulation, not measured" in said
    assert "TTFT p95 **149 ms – " in said
    assert "lowest and highest TTFT p95" in said and "Known error: simulated" in said
    assert "the queue grows" in said  # one unit is far from enough for the case
    table = app.dataframe[-1].value
    assert list(table["Policy"]) == ["Continuous batching", "Fixed slots", "Static batches"]

    app.number_input(key="waiting-units").set_value(17)
    app.button_group(key="waiting-arrivals").set_value("gamma")
    app.checkbox(key="waiting-spread").check()
    app = app.run()
    assert not app.exception and not app.warning
    said = text(app)
    assert "Bursts: gamma arrivals of burstiness 0.25" in said
    assert "Lengths: log-normal" in said
    assert not app.dataframe[-1].value.equals(table)
