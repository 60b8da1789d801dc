"""The Engines page: what would change the ranking, what each rating rests on, and what a measurement should settle."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.sensitivity import Crossing, FlipWeight
from planner.weighting import Weight
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from ui.engine_weights import MOST_POINTS, Band, bands


def control(app: AppTest, kind: str, label: str):
    return next(w for w in getattr(app, kind) if w.label == label)


def test_what_would_change_the_ranking_evidence_per_cell_and_two_engines_side_by_side(launch: Launch) -> None:
    app = launch("engines")  # one launch for all that is only read: it takes seconds
    said = text(app)
    assert "When would Ollama be enough?" in said
    assert "Ollama would be enough up to 4 users at once" in said
    assert ":orange[:material/warning: Lacks] Metrics: Neither queue nor KV use" in said
    assert "Ollama comes first from 1 to 5 users, vLLM comes first from 6 to 100 users" in said
    assert "Each engine against Ollama, criterion by criterion." in said
    pugh = next(t.value for t in app.table if "vLLM" in t.value.columns and "Ollama" not in t.value.columns)
    assert pugh.loc["Batching", "vLLM"] == "+ better"
    assert pugh.loc["Ease of installation", "vLLM"] == "− worse"

    control(app, "selectbox", "Engine").set_value("ollama")
    control(app, "selectbox", "Criterion").set_value("metrics")
    app = control(app, "selectbox", "Against").set_value("ollama").run()
    assert not app.exception
    axis = open_workspace().catalog.engines["ollama"].axes["metrics"]
    for part in (axis.statement, axis.reason, axis.evidence_kind, f"{axis.confidence} confidence", axis.versions,
                 str(axis.read_on), "https://github.com/ollama/ollama"):  # fmt: skip
        assert part in text(app)
    table = next(t.value for t in app.table if "Points between" in t.value.columns)
    # batching: 4 of 32 points, 3 against 1: 100 x 4/32 x 2/3 more
    assert table.loc["Batching", "Points between"] == "+8.3"
    assert table.loc["Ease of installation", "Points between"] == "-3.1"
    assert abs(float(table["Points between"].iloc[0])) == max(abs(float(x)) for x in table["Points between"])
    assert {"vLLM", "Ollama"} <= set(table.columns)


def test_a_proposal_goes_into_the_plan_with_one_click_and_is_stored_with_it(launch: Launch) -> None:
    app = launch("engines")
    app = app.button(key="take-P-sglang-prefix").click().run()
    assert "P-sglang-prefix" in text(app).split("Taken in")[1]
    app = app.switch_page("pages/poc_plan.py").run()
    assert not app.exception and not app.error
    assert "sglang over vllm: output_tok_s >= 1.1 x at shared-prefix" in text(app)
    app.text_input(key="author").set_value("Test")
    app = next(b for b in app.button if b.label == "Save plan").click().run()
    assert not app.exception and not app.error
    plan = case_state(open_workspace(), "nortia").plan
    assert plan is not None
    assert [c.id for c in plan.candidates] == ["vllm", "ollama", "sglang"]
    assert plan.hypotheses[-1].id == "P-sglang-prefix"
    app = app.button(key="take-P-tensorrt-gpu").click().run()  # on the plan's own page it takes one click too
    assert not app.exception
    assert any(b.label == "Save plan" for b in app.button)
    assert "tensorrt-llm: started is true" in text(app)


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (None, None, [Band(0, MOST_POINTS, "a")]),
        # 4 of 10 points now, 6 elsewhere. A quarter is 0.25 x 6 / 0.75 = 2 points, three quarters 18.
        (0.25, 0.75, [Band(0, 2, "b"), Band(2, 18, "a"), Band(18, MOST_POINTS, "c")]),
        (0.25, 1.0, [Band(0, 2, "b"), Band(2, MOST_POINTS, "a")]),
        (None, 0.9, [Band(0, MOST_POINTS, "a")]),  # 54 points: beyond the slider
    ],
)
def test_a_slider_is_cut_at_its_flip_points(below: float | None, above: float | None, expected: list[Band]) -> None:
    weight = Weight(criterion="x", points=4, weight=0.4, why=())
    flip = FlipWeight(
        criterion="x", weight=0.4, below=Crossing(at=below, to="b") if below else None,
        above=Crossing(at=above, to="c") if above else None,
    )  # fmt: skip
    assert [(round(b.low, 9), round(b.high, 9), b.engine) for b in bands(weight, 10, flip, "a")] == expected


UNKNOWN_BATCHING = """\
axes:
  batching:
    rating: null
    reason: Nobody of us looked.
    source: [our own notes]
    versions: 0.5.23
    read_on: 2026-11-28
sources:
  our own notes: {address: infra/notes, version: page 1, read_on: 2026-11-28, read: nothing on batching}
"""


def test_what_nobody_knows_is_shown_as_unknown_and_lowers_the_confidence(home: Path, launch: Launch) -> None:
    own = home / "catalog" / "engines"
    own.mkdir(parents=True)
    (own / "sglang.yaml").write_text(UNKNOWN_BATCHING, encoding="utf-8")
    app = launch("engines")
    assert not app.exception
    said = text(app)
    # SGLang: 91 % of the weights are of high confidence, 12.5 % of them (batching, 4 of 32 points) unknown now.
    assert "Batching. Counted as the middle of the scale, neither for nor against." in said
    assert "sure of 78%" in said
    cells = next(d.value for d in app.dataframe if "SGLang" in d.value.columns)
    assert cells.loc["Batching", "SGLang"] == "???"
    app = control(app, "selectbox", "Engine").set_value("sglang").run()
    app = control(app, "selectbox", "Criterion").set_value("batching").run()
    assert "lowers the confidence, not the score" in "\n".join(i.value for i in app.info)
    assert "Looked for in:" in text(app)
    assert "? not known" in {str(x) for t in app.table for x in t.value.to_numpy().ravel()}


def test_engines_are_scored_on_the_model_plan_that_is_chosen(launch: Launch) -> None:
    """Nortia has three model plans and one machine; its favourite is B."""
    app = launch("engines")
    assert "Scored on plan" not in text(app)
    control(app, "button_group", "Model plan").set_value("A").run()
    assert not app.exception
    assert "Scored on plan A and NVIDIA GB10" in text(app)
    assert "The PoC plan and the decision keep to plan B on NVIDIA GB10" in text(app)
