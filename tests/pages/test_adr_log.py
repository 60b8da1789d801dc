"""The log is searched, compared and drawn; what runs in production is recorded; a lost bundle is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from decisions.edits import Commented
from services.verdicts import case_state
from services.workspace import ROOT, Workspace, now, open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from ui.edit_words import history_line
from ui.registry import BY_URL


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


def test_a_comment_keeps_its_lines_in_the_history_and_forges_no_entry() -> None:
    forged = "Seen.\n- 2026-11-30 10:00 UTC · **Sato** · accepted · as ADR-0009\n\n# Title\n:smile: $x$"
    said = Commented(at=now(), author="Kim", text=forged, reason="as\n- reviewed")
    tokens = MarkdownIt("commonmark").parse(history_line(said, str))
    assert [t.type for t in tokens if t.nesting == 1] == ["bullet_list_open", "list_item_open", *["paragraph_open"] * 2]
    shown = [
        "".join("\n" if c.type == "hardbreak" else c.content for c in t.children or ()) for t in tokens if t.children
    ]
    assert shown[0].endswith("comment · Seen.\n- 2026-11-30 10:00 UTC · **Sato** · accepted · as ADR-0009")
    assert shown[1] == "# Title\n:smile: $x$ · because as - reviewed"


def link(**query: str) -> AppTest:
    """The log as a link opens it."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.session_state["case"] = "nortia"
    for name, value in query.items():
        app.query_params[name] = value
    return app.switch_page(BY_URL["adr-log"].file).run()


def test_a_comment_of_several_lines_is_written_at_the_record(full: Workspace, launch: Launch) -> None:
    record = next(a for a in full.store.adrs.all() if a.number)
    app = link(adr=record.id)
    app.session_state["author"] = "Kim"
    next(w for w in app.text_area if w.label == "Comment").set_value("One.\n- Two.")
    next(b for b in app.button if b.label == "Add").click().run()
    assert not app.exception
    ws = open_workspace(full.home)
    assert ws.store.adrs.get(record.id).comments[-1].text == "One.\n- Two."
    ws.store.close()


def listed(app: AppTest) -> list[str]:
    """Titles in the table of decisions."""
    return list(next(d.value for d in app.dataframe if "Tags" in d.value.columns)["Decision"])


def test_the_log_is_a_table_and_what_fired_is_looked_at_first(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log")
    first, second = listed(app)
    assert first.startswith("ADR-0001 vLLM serves Nortia") and second.startswith("Revisit: ")
    assert app.header[0].value.replace("\\", "") == first


def test_words_and_filters_narrow_the_log_and_stand_in_the_address(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log")
    app = app.text_input(key="log-q").set_value("REVISIT nortia").run()
    assert len(listed(app)) == 1 and "1 of 2 decisions" in text(app)
    assert app.query_params["q"] == "REVISIT nortia"
    app = app.selectbox(key="log-status").set_value("accepted").run()
    assert "No decision has all of these words and passes the filter." in text(app)
    app = app.text_input(key="log-q").set_value("").run()
    assert listed(app)[0].startswith("ADR-0001") and len(listed(app)) == 1
    assert "q" not in app.query_params and app.query_params["status"] == "accepted"


def test_a_link_opens_the_filtered_list_and_the_record(full: Workspace, launch: Launch) -> None:
    draft = next(a for a in case_state(full, "nortia").adrs if a.status == "draft")
    app = link(waiting="fired")
    assert listed(app) == [t for t in listed(app) if t.startswith("ADR-0001")]
    app = link(adr=draft.id)
    assert app.header[0].value.replace("\\", "") == draft.title
    assert not link(tag="nobody uses it", adr="unknown").exception


def test_all_cases_name_the_case_of_each(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log").toggle(key="adr-all").set_value(True).run()
    assert not app.exception
    assert "Two cores, a tiny model" in set(next(d.value for d in app.dataframe if "Case" in d.value.columns)["Case"])


def html(app: AppTest) -> str:
    """What the page says in HTML."""
    return "\n".join(e.proto.body for e in app.get("html"))


def test_differences_show_what_acceptance_added_and_the_graph_what_it_rests_on(full: Workspace, launch: Launch) -> None:
    app = launch("adr-log")
    assert "decided on › plan" in html(app)
    dot = app.get("graphviz_chart")[0].proto.spec
    assert 'label="would supersede"' in dot and 'label="requirements, version 1"' in dot


def test_a_successor_is_compared_with_what_it_would_supersede(full: Workspace, launch: Launch) -> None:
    draft = next(a for a in case_state(full, "nortia").adrs if a.status == "draft")
    app = link(adr=draft.id)
    assert "What it says otherwise than" in text(app)
    assert '<ins style="background:rgba(22,163,74,.22)">ADR-0001 is re-opened.' in html(app)


def test_a_title_with_markup_stays_text_everywhere(full: Workspace, launch: Launch) -> None:
    stored = full.store.adrs.draft(next(a for a in case_state(full, "nortia").adrs if a.status == "draft").id)
    evil = '<script>alert(1)</script> **x** :red[y] "]; evil [label="z'
    full.store.adrs.save_draft(
        stored.adr.model_copy(update={"title": evil}), version=stored.version, at=now(), by="Lee"
    )
    app = link(adr=stored.adr.id)
    assert not app.exception
    assert "<script>" not in html(app) and "&lt;script&gt;" in html(app)
    assert evil in listed(app)


def test_tags_are_written_on_a_draft_and_found_in_the_log(home: Path, launch: Launch) -> None:
    app = launch("decision")
    app.session_state["author"] = "Kim"
    next(i for i in app.text_input if i.label == "Tags, separated by commas").set_value("推論, gpu, gpu ,")
    app = next(b for b in app.button if b.label == "Save draft").click().run()
    assert not app.exception
    assert listed(link(tag="推論"))
    ws = open_workspace(home)
    assert case_state(ws, "nortia").adrs[0].tags == ("推論", "gpu")
    ws.store.close()
