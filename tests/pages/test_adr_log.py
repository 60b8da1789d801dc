"""What runs in production is recorded on the log, and a bundle that was lost is said on the results."""

from __future__ import annotations

import shutil

import pytest

from services.verdicts import case_state
from services.workspace import Workspace, open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text


def test_what_went_into_production_is_recorded_by_a_named_person(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log")
    assert "Nothing is recorded: conditions are held against the plan that was decided on." in text(app)
    app.session_state["author"] = "Kim"
    next(w for w in app.text_input if w.label == "Engine version").set_value("0.33.1")
    next(b for b in app.button if b.label == "Record").click().run()
    assert not app.exception
    ws = open_workspace(full.home)
    (deployed,) = case_state(ws, "nortia").deployments
    ws.store.close()
    assert (deployed.candidate, deployed.engine_version, deployed.by) == ("vllm", "0.33.1", "Kim")
    assert "vllm 0.33.1 since" in text(app)


def test_a_deployment_without_a_version_is_one_sentence(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log")
    app.session_state["author"] = "Kim"
    next(b for b in app.button if b.label == "Record").click().run()
    (error,) = app.error
    assert "the engine's version is missing. Write what the server reports." in error.value


@pytest.mark.parametrize("url", ["measure", "results"])
def test_a_lost_bundle_is_said_and_the_page_still_opens(full: Workspace, launch: Launch, url: str) -> None:
    lost = next(r for r in case_state(full, "nortia").runs if r.candidate == "vllm")  # other cases have bundles too
    shutil.rmtree(full.runs / lost.path)
    app = launch(url)
    assert not app.exception
    assert "is missing or was altered: its thresholds cannot be counted again" in text(app)
