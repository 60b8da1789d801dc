"""Every page is launched, on an empty workspace and on a full one, and says what it is there for."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from services.verdicts import case_state
from services.workspace import Workspace, open_workspace
from tests.pages.conftest import Launch
from ui.registry import PAGES

# One thing that must be readable on each page with only the shipped cases there.
SAYS = {
    "overview": "you need 20 to 50",
    "requirements": "Versions (1)",
    "sizing": "590 tok/s by the bound",  # seed 001: 50 users on one machine
    "engines": "vLLM comes first",
    "poc-plan": "vllm over ollama: output_tok_s >= 3 x at parallel-16",
    "measure": "Nothing was measured yet.",
    "results": "Nothing was measured on this machine yet.",
    "decision": "vLLM serves Nortia, internal assistant",
    "adr-log": "vLLM serves Nortia, internal assistant",
    "catalogue": "Facts, traps and reports of",
}
# The same on a case that was decided and re-opened, where the page says something else then.
SAYS_LATER = SAYS | {
    "overview": "A condition fired and waits for an answer.",
    "measure": "simulated",
    "results": "Simulated figures",
    "decision": "Once accepted, this supersedes ADR-0001",
    "adr-log": "fired",
}


def text(app: AppTest) -> str:
    """All that a page says, as one text."""
    found = []
    for block in (app.main, app.sidebar):
        for element in block:
            for part in ("value", "label", "body"):
                said = getattr(element, part, None)
                if isinstance(said, str):
                    found.append(said)
    return "\n".join(found).replace("\\", "")


def test_every_page_of_the_registry_has_a_thing_to_say() -> None:
    assert set(SAYS) == {p.url for p in PAGES}


@pytest.mark.parametrize("url", [p.url for p in PAGES])
def test_page_opens_with_only_the_shipped_cases(launch: Launch, url: str) -> None:
    app = launch(url)
    assert not app.exception
    assert not app.error
    assert SAYS[url] in text(app)


@pytest.mark.parametrize("url", [p.url for p in PAGES])
def test_page_opens_on_a_case_that_was_measured_and_decided(full: Workspace, launch: Launch, url: str) -> None:
    app = launch(url)
    assert not app.exception
    assert SAYS_LATER[url] in text(app)


def test_engines_name_role_reason_and_flip_weight_of_each(launch: Launch) -> None:
    said = text(launch("engines"))
    assert "Only a measurement names a winner" in said
    for role in ("favourite", "baseline", "to be re-examined", "stopped by a gate", "later"):
        assert role in said
    assert "in maintenance mode since 2025-12-11" in said  # TGI's README
    # Weights of the rules: metrics 3 of 34 points; SGLang (2 to vLLM's 3 there) leads once it falls low enough.
    assert "SGLang wins below 0.06" in said
    assert "no weight of this criterion changes the winner" in said
    assert "○" in said  # ratings are marks and words, not colours


def test_a_weight_moves_the_ranking_and_is_reset(launch: Launch) -> None:
    app = launch("engines")
    prefix = next(s for s in app.slider if s.label == "Prefix reuse")
    app = prefix.set_value(6.0).run()
    assert "SGLang comes first" in text(app)
    assert "Weights set by hand: Prefix reuse" in text(app)
    app = next(b for b in app.button if b.label == "Reset the weights").click().run()
    assert "Weights set by hand" not in text(app)
    assert "vLLM comes first" in text(app)


def test_all_weights_at_zero_is_one_sentence(launch: Launch) -> None:
    app = launch("engines")
    for slider in app.slider:
        slider.set_value(0.0)
    app = app.run()
    assert not app.exception
    assert "no criterion has any points" in app.error[0].value.replace("\\", "")


def test_plan_says_beforehand_what_is_doubtful_and_what_is_not_stated(launch: Launch) -> None:
    app = launch("poc-plan")
    warnings = "\n".join(w.value for w in app.warning).replace("\\", "")
    # cases: at 16 in flight the planning value is 8.2 tok/s a user, the promise 20.
    assert "Already doubtful: predicted to fail: 8.2 tok/s against 20 tok/s" in warnings
    assert "Not stated: model_revision" in warnings
    said = text(app)
    assert "vllm serve Qwen/Qwen3-30B-A3B" in said
    assert "llama-server -m" in said
    assert "OLLAMA_NUM_PARALLEL=50 " in said  # the everyday form beside the measured one


def test_a_stated_revision_makes_another_plan_which_is_stored_with_a_name(launch: Launch) -> None:
    app = launch("poc-plan")
    next(i for i in app.text_input if i.label == "Model revision").set_value("ad44e777")
    app = next(b for b in app.button if b.label == "Show the plan").click().run()
    assert "Not stated" not in "\n".join(w.value for w in app.warning)
    app = next(b for b in app.button if b.label == "Save plan").click().run()
    assert "Write your name" in app.error[0].value
    app.text_input(key="author").set_value("Test")
    app = next(b for b in app.button if b.label == "Save plan").click().run()
    assert not app.exception
    assert "The plan is stored" in app.success[0].value
    state = case_state(open_workspace(), "nortia")
    assert state.plan is not None and state.stored_plan is not None
    assert state.plan.shared_contract["model_revision"] == "ad44e777"
    assert state.stored_plan.author == "Test"


def upload(app: AppTest, content: str) -> AppTest:
    """Sign, choose a plan file and store it."""
    app.text_input(key="author").set_value("Test")
    app = app.file_uploader(key="upload-nortia").upload("edited.yaml", content.encode(), "application/yaml").run()
    return next(b for b in app.button if b.label == "Store this file as the plan").click().run()


def test_an_edited_plan_file_is_stored_byte_for_byte(launch: Launch) -> None:
    app = launch("poc-plan")
    stored = case_state(open_workspace(), "nortia").stored_plan
    assert stored is not None
    edited = stored.body.decode().replace("starts: 3", "starts: 5") + "# five starts, as agreed\nstarts: 5\n"
    app = upload(app, edited)
    assert not app.exception and not app.error
    now_stored = case_state(open_workspace(), "nortia").stored_plan
    assert now_stored is not None and now_stored.body == edited.encode()
    assert now_stored.plan().starts == 5


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("schema_version: 1", "schema_version: 99", "schema version 99 is newer"),
        ("engine: vllm", "engine: vlm", "Did you mean 'vllm'"),
        ("case: nortia", "case: acme", "the plan belongs to 'acme'"),
    ],
)
def test_a_wrong_plan_file_is_one_sentence_and_changes_nothing(
    launch: Launch, old: str, new: str, sentence: str
) -> None:
    app = launch("poc-plan")
    before = case_state(open_workspace(), "nortia").stored_plan
    assert before is not None
    app = upload(app, before.body.decode().replace(old, new, 1))
    assert not app.exception
    assert sentence in app.error[0].value.replace("\\", "")
    assert case_state(open_workspace(), "nortia").stored_plan == before


def test_catalogue_says_gaps_in_words(gap: str, launch: Launch) -> None:
    gpus = next(d.value for d in launch("catalogue").dataframe if "GPU" in d.value.columns)
    thor = gpus[gpus["Id"] == gap].iloc[0]
    assert thor["Bandwidth (GB/s)"] == "not known"
    assert gpus[gpus["Id"] == "nvidia-gb10-dgx-spark"].iloc[0]["Bandwidth (GB/s)"] == "273"
