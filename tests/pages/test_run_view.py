"""One run in time: what is said of a repeat beside long prompts, of one that served nothing, and where nothing ran."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from bundle.records import Record, Sample
from services.evidence import take_in
from services.workspace import open_workspace
from tests.bundle.made import bundle, request
from tests.pages.conftest import Launch
from tests.pages.test_pages import text

HEADING = "One run in time"


def bring(home: Path, folder: Path, records: list[Record], **more: list[Sample]) -> None:
    ws = open_workspace(home)
    take_in(ws, ws.store.cases.get("nortia").id, bundle(folder, records, **more), "Kim")
    ws.store.close()


def look_at(app: AppTest, view: str) -> AppTest:
    return app.button_group(key="view-nortia").set_value(view).run()


def test_gaps_beside_long_prompts_say_when_these_were_on_the_server(home: Path, launch: Launch, tmp_path: Path) -> None:
    victims = [request(i, 0.1 * i, tokens=11)._replace(cohort="victim") for i in range(10)]
    aggressor = request(99, 1.0, tokens=11)._replace(cohort="aggressor")  # dispatched at 1 s, ends at 1.7 s
    bring(home, tmp_path / "a", [*victims, aggressor])
    app = launch("results")
    assert not app.exception
    said = text(app)
    assert HEADING in said
    assert "10 requests · 10 ok · 0 failed" in said  # the long prompt is no request of the load
    said = text(look_at(app, "Gaps between tokens"))
    assert "The band: long prompts were on the server, from 1.0 to 1.7 s." in said


def test_what_was_not_seen_is_said_in_words(home: Path, launch: Launch, tmp_path: Path) -> None:
    bring(home, tmp_path / "a", [], telemetry=[])
    app = launch("results")
    assert not app.exception
    said = text(app)
    assert "0 requests · 0 ok · 0 failed" in said
    assert "No request was sent." in said
    assert "No gap is known: no answer came in more than one part." in text(look_at(app, "Gaps between tokens"))
    said = text(look_at(app, "Server"))
    assert "Not measured: Requests running and waiting, KV cache in use, Preemptions, Memory, GPU power." in said


def test_a_case_without_runs_has_no_such_section(launch: Launch) -> None:
    app = launch("results")
    assert not app.exception
    assert HEADING not in text(app)
