"""Several people write on one decision: merged texts, opinions, conditions that are looked after."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from streamlit.testing.v1 import AppTest

from decisions.flips import from_template
from decisions.record import Status
from services.decisions import open_adr, save, successor_of
from services.flip_edits import add_condition
from services.verdicts import case_state
from services.workspace import Workspace, now, open_workspace
from tests.forgotten import forgotten
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from ui.parts import plain


def stored(home: Path, status: Status):
    """The newest ADR of Nortia in a status, as it is stored now."""
    ws = open_workspace(home)
    found = [a for a in case_state(ws, "nortia").adrs if a.status is status][-1]
    ws.store.close()
    return found


def of(widgets, label: str):
    return next(w for w in widgets if w.label == label)


def signed(app: AppTest, name: str = "Kim") -> AppTest:
    app.session_state["author"] = name
    return app


def somebody_saves(home: Path, **changes: object) -> None:
    """Lee saves the draft that is open on the screen."""
    ws = open_workspace(home)
    draft = next(a for a in case_state(ws, "nortia").adrs if a.status is Status.DRAFT)
    opened = open_adr(ws, draft.id)
    save(ws, opened, opened.adr.text.model_copy(update=changes), "Lee")
    ws.store.close()


def test_who_saves_second_sees_both_and_saves_both(home: Path, launch: Launch) -> None:
    app = signed(launch("decision"))
    somebody_saves(home, title="Theirs", headline="Lee's words")
    of(app.text_input, "Title").set_value("Mine")
    of(app.text_area, "Context and problem").set_value("Kim's context")
    of(app.button, "Save draft").click().run()
    assert not app.exception
    assert not app.error  # the panel says it; "reload" would lose what was typed
    said = text(app)
    assert "Lee saved this while you were writing. What you typed is still here." in said
    assert "Theirs alone, taken as it is: headline" in said
    assert "Both changed: title" in said
    of(app.radio, "title").set_value("theirs").run()
    of(app.button, "Save both").click().run()
    assert not app.exception
    adr = stored(home, Status.DRAFT)
    assert (adr.title, adr.headline, adr.context) == ("Theirs", "Lee's words", "Kim's context")
    assert "Both changed" not in text(app)


def test_an_objection_waits_for_an_answer_before_the_decision_is_accepted(home: Path, launch: Launch) -> None:
    app = signed(launch("decision"))
    of(app.text_input, "Decide").set_value("Kim")
    of(app.button, "Propose").click().run()
    assert not of(app.button, "Accept as Kim").disabled
    of(app.text_input, "Reason, or answer").set_value("too many releases")
    of(app.button, "Object").click().run()
    assert of(app.text_input, "Reason, or answer").value == ""
    assert of(app.button, "Accept as Kim").disabled
    assert "Every objection is answered (not yet that of Kim)." in text(app)
    of(app.text_input, "Reason, or answer").set_value("one a quarter is enough")
    of(app.button, "Answer Kim").click().run()
    of(app.button, "Accept as Kim").click().run()
    assert not app.exception
    (opinion,) = stored(home, Status.ACCEPTED).opinions
    assert (opinion.reason, opinion.answer) == ("too many releases", "one a quarter is enough")


def test_a_condition_of_a_standing_decision_is_added_from_a_template(full: Workspace, launch: Launch) -> None:
    app = signed(launch("adr-log"))
    of(app.selectbox, "Template").set_value("slow-start").run()
    of(app.text_input, "Condition").set_value("vllm: startup_s <= 120 s").run()
    of(app.text_input, "Why it is added").set_value("we scale now")
    of(app.button, "Add it to the record").click().run()
    assert not app.exception
    added = stored(full.home, Status.ACCEPTED).condition("slow-start")
    assert added.in_words() == "vllm: startup_s <= 120 s near 20 %"


def test_a_look_at_a_condition_is_in_the_log(full: Workspace, launch: Launch) -> None:
    app = signed(launch("adr-log"))
    of(app.text_input, "What was found, or why").set_value("it started")
    of(app.button, "Looked at").click().run()
    assert not app.exception
    assert "recheck moved" in text(app)
    assert "because it started" in text(app)


def test_the_history_names_what_changed_a_condition(full: Workspace, launch: Launch) -> None:
    said = text(launch("adr-log"))
    assert "**few-users**" in said
    assert "because observed usage came in from gateway log by Test" in said


def test_what_is_due_and_a_silent_webhook_are_on_the_overview(full: Workspace, launch: Launch, monkeypatch) -> None:
    monkeypatch.setenv("FLIPLINE_WEBHOOK_URL", "http://chat.example/hooks/secret")
    box = full.home / "webhook"
    box.mkdir()
    told = {"since": "2026-11-30T08:00:00+00:00", "why": "it does not answer", "host": "chat.example"}
    (box / "failing").write_text(json.dumps(told))
    said = text(launch("overview"))
    assert "The webhook at chat.example has not taken a message since 2026-11-30 08:00 UTC: it does not answer." in said
    assert "secret" not in said


def test_a_condition_on_a_metric_that_is_gone_is_shown_with_its_stored_line(full: Workspace, launch: Launch) -> None:
    ws = open_workspace(full.home)
    adr = next(a for a in case_state(ws, "nortia").adrs if a.status is Status.ACCEPTED)
    flip = from_template("slow-start", candidate="vllm", owner="Kim", recheck_on=now().date() + timedelta(days=30))
    add_condition(ws, adr.id, flip, "Kim", "we scale now")
    ws.store.close()
    with forgotten("startup_s"):
        app = launch("adr-log")
        assert not app.exception
        assert "no longer exists. It was stored as 'vllm: start-up ≤ 300'." in text(app).replace("\\", "")
        assert not app.switch_page("pages/decision.py").run().exception


def test_what_would_supersede_a_decision_is_called_what_it_is(full: Workspace, launch: Launch) -> None:
    old = stored(full.home, Status.ACCEPTED)
    said = [m.value for m in launch("decision").markdown if "Under way to supersede it" in m.value]
    successor = successor_of(case_state(full, "nortia"), old)
    assert successor is not None
    assert [successor.status.value in line and plain(successor.title) in line for line in said] == [True]
