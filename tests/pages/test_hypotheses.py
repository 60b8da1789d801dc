"""Hypotheses on the PoC plan page: in order with their price, changed, added and taken out, each a plan of its own."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from planner.condition_line import format_condition
from planner.poc import Hypothesis, Plan
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text

LINES = "Conditions, one a line; all must hold"


def stored() -> Plan:
    plan = case_state(open_workspace(), "nortia").plan
    assert plan is not None
    return plan


def of(plan: Plan, id: str) -> Hypothesis:
    return next(h for h in plan.hypotheses if h.id == id)


def press(app: AppTest, label: str) -> AppTest:
    return next(b for b in app.button if b.label == label).click().run()


def field(app: AppTest, label: str) -> object:
    kinds = (*app.text_input, *app.text_area, *app.selectbox, *app.multiselect)
    return next(x for x in kinds if x.label == label)


def opened(launch: Launch, way: str = "Change") -> AppTest:
    app = launch("poc-plan")
    app.text_input(key="author").set_value("Kim")
    return app.button_group(key="hypothesis-way-nortia").set_value(way).run()


def test_they_stand_in_order_with_price_dependency_and_reason(launch: Launch) -> None:
    said = text(launch("poc-plan"))
    order = [said.index(f"**{i}. {id}**") for i, id in ((1, "H1"), (2, "H-kv"), (3, "H6-1"), (4, "H3"))]
    assert order == sorted(order)
    assert "Why here: First: 9 others wait for it." in said
    assert "Why here: Expected to fail; a no changes the plan; adds" in said
    assert "waits for H1" in said and "waits for nothing" in said


def test_a_line_that_is_not_understood_is_one_sentence_and_mended_it_is_stored_with_who_changed_it(
    launch: Launch,
) -> None:
    app, before = opened(launch), stored()
    field(app, "Hypothesis").set_value("H3").run()
    field(app, LINES).set_value("vllm: user_tok_s p5 >= 8 at parallel-16")
    app = press(app, "Save as the plan")
    assert "8 of what? Write 8 tok/s." in app.error[0].value.replace("\\", "")
    assert stored() == before
    assert field(app, LINES).value == "vllm: user_tok_s p5 >= 8 at parallel-16"  # what was typed is still there
    field(app, LINES).set_value("vllm: user_tok_s p5 >= 8 tok/s at parallel-16")
    app = press(app, "Save as the plan")
    assert not app.exception and not app.error
    h3 = of(stored(), "H3")
    assert (format_condition(h3.conditions[0]), h3.author) == ("vllm: user_tok_s p5 >= 8 tok/s at parallel-16", "Kim")
    assert h3.warning == "" and "predicted to hold: 8.2" in h3.expectation


def test_one_of_ones_own_comes_along_into_the_next_draft(launch: Launch) -> None:
    app = opened(launch, "Your own")
    field(app, "Statement").set_value("Nobody waits long for the whole answer.")
    field(app, LINES).set_value("vllm: e2e p95 <= 60 s at parallel-16")
    field(app, "If rejected").set_value("Shorter answers.")
    app = press(app, "Save as the plan")
    assert not app.exception and not app.error
    assert (of(stored(), "OWN-1").origin, of(stored(), "OWN-1").depends_on) == ("own", ("H1",))
    next(i for i in app.text_input if i.label == "Model revision").set_value("ad44e777")
    app = press(app, "Show the plan")
    app = press(app, "Save plan")
    assert not app.exception and not app.error
    assert stored().shared_contract["model_revision"] == "ad44e777"
    assert of(stored(), "OWN-1").statement == "Nobody waits long for the whole answer."


def test_a_template_brings_its_load_point_and_taking_one_out_names_what_waits_for_it(launch: Launch) -> None:
    app = opened(launch, "From a template")
    app = app.button(key="add-nortia-H-prefix").click().run()
    assert not app.exception and not app.error
    assert of(stored(), "H-prefix").author == "Kim"
    assert stored().stages[-1].points == ("shared-prefix",)
    app = app.button_group(key="hypothesis-way-nortia").set_value("Change").run()
    assert "H2, H3, H4, H5, H6-1, H6-2, H6-3, H6-4, H-kv, H-prefix wait for it" in text(app)  # for H1, the first
    app = press(app, "Take H1 out of the plan")
    assert not app.exception and not app.error
    assert "H1" not in [h.id for h in stored().hypotheses] and stored().left_out == ("H1",)
    assert of(stored(), "H3").depends_on == ()
