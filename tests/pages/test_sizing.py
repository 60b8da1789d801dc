"""The Sizing page: calm figures that each explain themselves, controls that answer at once, gaps that are asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.capacity import SizingSettings, size
from planner.catalog import load_catalog
from planner.speculation import Speculation
from services.cases import begin_case
from services.shipped import install_shipped
from services.verdicts import case_state
from services.workspace import Workspace, open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from tests.planner.test_capacity import GX10, PLANS, nortia
from ui.sizing_figures import FIGURES, figures

GUESS = Speculation(draft_tokens=4, acceptance=0.8)


def control(app: AppTest, kind: str, label: str):
    return next(w for w in getattr(app, kind) if w.label == label)


def test_it_says_first_what_the_decision_needs_and_every_figure_is_that_of_a_derivation(launch: Launch) -> None:
    app = launch("sizing")
    assert not app.exception and not app.error
    said = text(app)
    for words in ("590 tok/s by the bound", "3 units by the bound", "13 when experts touched", "per-user speed decides",
                  "What if", "Memory", "First token", "What moves the answer most", "Cost and energy",
                  "Waiting for the first token", "Calibration"):  # fmt: skip
        assert words in said or any(words in e.label for e in app.expander)
    sizing = case_state(open_workspace(), "nortia").sizing
    assert sizing is not None
    values = {f.value for f in figures(sizing)}
    metrics = [m.value for m in app.metric]
    in_rows = re.findall(r": \*\*(.+?)\*\*", "\n".join(m.value for m in app.main.markdown))
    # Nothing is shown that does not explain itself, and all that is known is shown.
    assert len(metrics) >= 10 and set(metrics) <= values
    assert values <= set(metrics) | set(in_rows)
    # 500 tokens of answer leave 1,024 as the shortest context; Qwen3-30B-A3B takes 40,960.
    offered = control(app, "select_slider", "Context (tokens)").options
    assert offered == ["1,024", "2,048", "4,096", "8,192", "16,384", "32,768"]


def test_the_table_of_figures_names_derivations_that_exist() -> None:
    sizing = size(nortia(), PLANS[1], GX10, load_catalog(), SizingSettings(pipeline_parallel=2, speculation=GUESS))
    assert {key for _, key, _ in FIGURES} <= set(sizing.derivations)


def test_a_control_answers_what_is_not_known_is_asked_for_and_nothing_stored_changes(launch: Launch) -> None:
    app = launch("sizing")
    before = case_state(open_workspace(), "nortia").requirements
    control(app, "slider", "Users at once").set_value(10)
    control(app, "button_group", "Devices that share every layer").set_value(2)
    control(app, "select_slider", "Tokens guessed ahead").set_value(4)
    for label, value in (("Price of one unit (EUR)", 4000.0), ("Years in use", 4.0),
                         ("Price of electricity (EUR/kWh)", 0.3)):  # fmt: skip
        control(app, "number_input", label).set_value(value)
    app.session_state["how-speculation-"] = True  # its explanation is open
    app = control(app, "button_group", "KV cache").set_value("fp8").run()
    assert not app.exception
    said = text(app)
    assert "What if: users 10 instead of 50; KV cache fp8 instead of fp16; devices 2 instead of 1" in said
    assert "draft 4 tokens at 70% instead of as required" in said
    assert "One unit of 2 devices gives 10 users at once" in said
    assert "times as fast alone" in control(app, "metric", "Speculative decoding").value
    assert "(1 - a^(k+1)) / (1 - a)" in said.replace("\\", "")
    assert re.fullmatch(r"[\d.]+ EUR", control(app, "metric", "Cost per million output tokens").value)
    assert case_state(open_workspace(), "nortia").requirements == before
    app = next(b for b in app.button if b.label == "Back to the requirements").click().run()
    assert "What if: users" not in text(app)
    assert "One unit gives 50 users at once" in text(app)
    app = control(app, "button_group", "Model plan").set_value("C").run()
    assert not app.exception
    assert "out of reach" in text(app) and "What moves the answer most" in text(app)


@pytest.fixture
def gap_case(home: Path, gap: str) -> Workspace:
    """A case on a machine whose bandwidth nobody has written down."""
    ws = open_workspace(home)
    install_shipped(ws)
    r = case_state(ws, "nortia").requirements
    assert r is not None
    thor = r.hardware[0].model_copy(update={"gpu": gap})
    begin_case(ws, "Gap", r.model_copy(update={"hardware": (thor,)}), "Test")
    ws.store.close()
    return ws


def test_a_gap_is_asked_for_and_what_is_stated_counts(gap_case: Workspace, launch: Launch) -> None:
    app = launch("sizing")
    app.session_state["case"] = "gap"
    app = app.run()
    assert not app.exception
    assert "No number of units can be given" in text(app)
    assert any("The catalogue does not know: memory bandwidth" in e.label for e in app.expander)
    app = control(app, "number_input", "Memory bandwidth (GB/s)").set_value(273.0).run()
    assert not app.exception
    said = text(app)
    assert "590 tok/s by the bound" in said
    assert "Stated by you, not by the catalogue: memory bandwidth." in said
    app = control(app, "number_input", "Memory bandwidth (GB/s)").set_value(0.273).run()
    assert "outside 10 to 20,000 GB/s" in app.error[0].value.replace("\\", "")
