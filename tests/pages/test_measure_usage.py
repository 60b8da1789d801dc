"""Observed usage on the Measure page: what comes in, what is refused, what stands beside it."""

from __future__ import annotations

from datetime import timedelta

from streamlit.testing.v1 import AppTest

from services.deployments import deploy
from services.verdicts import case_state
from services.workspace import Workspace, now
from tests.engine.server import free_port
from tests.pages.conftest import Launch
from tests.pages.test_pages import text


def opened(launch: Launch, way_in: str = "file") -> AppTest:
    app = launch("measure")
    app.session_state["way"] = "usage"
    app.session_state["usage-from"] = way_in
    return app.run()


def test_an_empty_case_says_that_nothing_was_observed(launch: Launch) -> None:
    app = opened(launch)
    assert not app.exception
    assert "Nothing was observed yet." in text(app)
    assert [b.disabled for b in app.button if b.label == "Bring in"] == [True]


def test_what_runs_stands_beside_what_was_observed(launch: Launch, full: Workspace) -> None:
    """28 days up to the day before yesterday; deployed on the tenth of them, so that nine lie before."""
    first = now().date() - timedelta(days=29)
    app = opened(launch)
    assert "No deployment is recorded" in text(app)
    candidate = case_state(full, "nortia").plan.candidates[0].id
    deploy(full, "nortia", candidate=candidate, since=first + timedelta(days=9), engine_version="0.33.0", by="Sato")
    app = app.run()
    assert not app.exception
    shown = text(app).replace("\\", "")
    assert f"28 days, {first} to {first + timedelta(days=27)}." in shown
    assert f"{candidate} 0.33.0 since {first + timedelta(days=9)}, recorded by Sato" in shown
    assert "9 of these days lie before the first deployment" in shown
    [table] = [d.value for d in app.dataframe if "Ran" in d.value]
    assert list(table["Ran"]) == ["before deployment"] * 9 + [f"{candidate} 0.33.0"] * 19


def test_a_prometheus_that_is_not_there_is_one_sentence_and_what_was_typed_stays(launch: Launch) -> None:
    app = opened(launch, "prometheus")
    url = f"http://127.0.0.1:{free_port()}"
    next(i for i in app.text_input if i.label == "Address").set_value(url)
    next(b for b in app.button if b.label == "Read").click()
    app.run()
    assert not app.exception
    assert [e.value.replace("\\", "") for e in app.error] == [
        f"{url.removeprefix('http://')}: cannot be reached: Connection refused. Check the address from this machine."
    ]
    assert next(i for i in app.text_input if i.label == "Address").value == url
