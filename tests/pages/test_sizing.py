"""The Sizing page: calm figures that each explain themselves, controls that answer at once, gaps that are asked for."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from services.cases import begin_case, sizings
from services.shipped import install_shipped
from services.verdicts import case_state
from services.workspace import Workspace, open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from ui.sizing_figures import FIGURES, figures


def control(app: AppTest, kind: str, label: str):
    return next(w for w in getattr(app, kind) if w.label == label)


def test_it_says_first_what_the_decision_needs(launch: Launch) -> None:
    app = launch("sizing")
    assert not app.exception and not app.error
    said = text(app)
    for words in ("590 tok/s by the bound", "3 units by the bound", "13 when experts touched", "per-user speed decides",
                  "What if", "Memory", "First token", "What moves the answer most", "Cost and energy", "Calibration"):
        assert words in said or any(words in e.label for e in app.expander)


def test_every_figure_that_is_shown_is_the_value_of_a_derivation(launch: Launch) -> None:
    app = launch("sizing")
    state = case_state(open_workspace(), "nortia")
    assert state.requirements is not None
    sizing = sizings(open_workspace(), state.requirements)[0].sizing
    assert sizing is not None
    values = {f.value for f in figures(sizing)}
    metrics = [m.value for m in app.metric]
    assert len(metrics) >= 10
    assert set(metrics) <= values
    in_rows = re.findall(r": \*\*(.+?)\*\*", "\n".join(m.value for m in app.main.markdown))
    assert {v for v in in_rows if v[0].isdigit()} <= values
    # ... and every figure that the sizing knows is on the page.
    assert values <= set(metrics) | set(in_rows)


def test_every_figure_of_the_table_exists_where_everything_is_known(launch: Launch) -> None:
    launch("sizing")
    state = case_state(open_workspace(), "nortia")
    assert state.sizing is not None
    optional = {"pipeline"}  # only where there are stages
    assert {key for _, key, _ in FIGURES} - optional <= set(state.sizing.derivations)


def test_a_control_answers_and_nothing_stored_changes(launch: Launch) -> None:
    app = launch("sizing")
    before = case_state(open_workspace(), "nortia").requirements
    app = control(app, "slider", "Users at once").set_value(10).run()
    assert not app.exception
    said = text(app)
    assert "What if: users 10 instead of 50" in said
    assert "One unit gives 10 users at once" in said
    assert case_state(open_workspace(), "nortia").requirements == before
    app = next(b for b in app.button if b.label == "Back to the requirements").click().run()
    assert "What if: users" not in text(app)
    assert "One unit gives 50 users at once" in text(app)


def test_two_devices_and_an_8_bit_cache_are_another_unit(launch: Launch) -> None:
    app = launch("sizing")
    app = control(app, "button_group", "Devices that share every layer").set_value(2).run()
    app = control(app, "button_group", "KV cache").set_value("fp8").run()
    assert not app.exception
    said = text(app)
    assert "One unit of 2 devices" in said
    assert "KV cache fp8 instead of fp16" in said


def test_a_context_that_no_model_takes_is_not_offered(launch: Launch) -> None:
    # 500 tokens of answer leave 1,024 as the shortest; Qwen3-30B-A3B takes 40,960.
    options = control(launch("sizing"), "select_slider", "Context (tokens)").options
    assert options == ["1,024", "2,048", "4,096", "8,192", "16,384", "32,768"]


@pytest.fixture
def gap(home) -> Workspace:
    """A case on a machine whose bandwidth nobody has written down."""
    ws = open_workspace(home)
    install_shipped(ws)
    r = case_state(ws, "nortia").requirements
    assert r is not None
    thor = r.hardware[0].model_copy(update={"gpu": "Jetson Thor"})
    begin_case(ws, "Gap", r.model_copy(update={"hardware": (thor,)}), "Test")
    ws.store.close()
    return ws


def test_a_gap_is_asked_for_and_what_is_stated_counts(gap: Workspace, launch: Launch) -> None:
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


def test_money_is_asked_for_and_becomes_a_cost(launch: Launch) -> None:
    app = launch("sizing")
    for label, value in (("Price of one unit (EUR)", 4000.0), ("Years in use", 4.0),
                         ("Price of electricity (EUR/kWh)", 0.3)):  # fmt: skip
        app = control(app, "number_input", label).set_value(value).run()
    assert not app.exception
    cost = control(app, "metric", "Cost per million output tokens")
    assert re.fullmatch(r"[\d.]+ EUR", cost.value)


@pytest.mark.parametrize("plan", ["A", "C"])
def test_dense_plans_are_out_of_reach_and_say_what_would_move_it(launch: Launch, plan: str) -> None:
    app = launch("sizing")
    app = control(app, "button_group", "Model plan").set_value(plan).run()
    assert not app.exception
    assert "out of reach" in text(app)
    assert "What moves the answer most" in text(app)
