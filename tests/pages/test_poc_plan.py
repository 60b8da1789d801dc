"""The PoC plan page: budget, contract editor, what can be proved, and what is taken to the GPU box."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.conftest import Launch


def said(app: AppTest) -> str:
    parts = [*app.markdown, *app.error, *app.warning, *app.caption]
    return "\n".join(str(p.value) for p in parts).replace("\\", "")


def press(app: AppTest, label: str) -> AppTest:
    return next(b for b in app.button if b.label == label).click().run()


@pytest.fixture
def app(launch: Launch) -> AppTest:
    return launch("poc-plan")


def test_a_budget_says_what_it_cost_and_an_impossible_one_what_would_do(app: AppTest) -> None:
    budget = next(n for n in app.number_input if n.label == "Time budget (minutes)")
    budget.set_value(400.0)
    app = press(app, "Show the plan")
    assert "What the budget of 6 h 40 min cost" in said(app)
    assert "ollama at parallel-50 (54 min 54 s): it is asked of the other candidates only." in said(app)
    next(n for n in app.number_input if n.label == "Time budget (minutes)").set_value(60.0)
    app = press(app, "Show the plan")
    assert not app.exception
    assert "1 h is not enough" in said(app) and "Give it 322 minutes" in said(app)
    assert "Declared beforehand as different" in said(app)  # the stored plan is still shown


def test_a_contract_that_its_points_contradict_is_named_and_not_stored(app: AppTest) -> None:
    limit = next(i for i in app.text_input if i.label == "max_num_seqs, vllm")
    limit.set_value("many")
    app = press(app, "Apply")
    assert "candidate vllm, max_num_seqs: 'many' is not a whole number of 1 or more" in said(app)
    next(i for i in app.text_input if i.label == "max_num_seqs, vllm").set_value("8")
    app = press(app, "Apply")
    assert "8 at once are fewer than the 16 in flight at parallel-16" in said(app)
    app.text_input(key="author").set_value("Test")
    app = press(app, "Save plan")
    assert "plan: candidate vllm, max_num_seqs" in said(app)
    state = case_state(open_workspace(), "nortia")
    assert state.plan is not None and state.plan.candidates[0].contract["max_num_seqs"] == "50"
    assert "fewer than the 16 in flight" not in said(press(app, "As derived"))


def test_what_is_stated_by_hand_is_stored_with_the_plan_and_its_command(app: AppTest) -> None:
    next(i for i in app.text_input if i.label == "max_model_len, vllm").set_value("8192")
    app = press(app, "Apply")
    app.text_input(key="author").set_value("Test")
    app = press(app, "Save plan")
    assert not app.exception
    state = case_state(open_workspace(), "nortia")
    assert state.plan is not None
    first = state.plan.candidates[0]
    assert (first.contract["max_model_len"], first.by_hand) == ("8192", ("max_model_len",))
    assert "8192" in first.launch.command
    assert "✎ is stated by hand" in said(app)


def test_the_page_says_what_it_costs_what_can_be_proved_and_hands_out_folder_and_request(app: AppTest) -> None:
    assert "each candidate at its own predicted speed" in said(app)
    assert "Missing: model_revision" in said(app)
    proved = next(d.value for d in app.dataframe if "Asked by" in d.value.columns)
    h4 = proved[(proved["Asked by"] == "H4") & (proved["Point"] == "peak")].iloc[0]
    # 3 starts x 60 requests of an open loop; 180 allow three beyond at 95 %
    assert (h4["n"], h4["May miss it"], h4["Needed"]) == (180, "3", "90 / 130 / 259")

    # What leaves the page is the stored plan's.
    labels = {b.proto.label for b in app.get("download_button")}
    assert {"Ready folder (.zip)", "Request, to print (.html)", "Request (.md)"} <= labels
    next(n for n in app.number_input if n.label == "Price per hour (EUR)").set_value(4.0)
    assert "at 4 EUR an hour" in said(app.run())
