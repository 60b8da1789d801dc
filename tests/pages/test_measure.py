"""Measure: results of other tools, pasted tables and bundles come in by the page, and pages open on what came in."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from bundle.folder import pack
from services.arrivals import bring_in_foreign, bring_in_table
from services.filled import Filled
from services.foreign import Said
from services.verdicts import case_state
from services.workspace import ROOT, now, open_workspace
from tests.bundle.made import bundle
from tests.pages.conftest import Launch
from tests.pages.test_pages import text

THEIRS = ROOT / "tests" / "golden" / "foreign" / "vllm-appended.json"


def test_import_results_says_what_it_reads(launch: Launch) -> None:
    app = launch("measure")
    app.session_state["way"] = "theirs"
    app.run()
    assert not app.exception
    assert "vllm bench serve" in text(app) and "Result file" in text(app)


@pytest.mark.parametrize("url", ["measure", "results", "decision"])
def test_pages_open_on_an_imported_result(launch: Launch, home: Path, url: str) -> None:
    launch("overview")  # the first visit installs the shipped cases
    ws = open_workspace(home)
    said = Said("vllm", {"in-flight-2-64-5": "parallel-2"})
    bring_in_foreign(ws, ws.store.cases.get("nortia").id, THEIRS.name, THEIRS.read_bytes(), said, "Test")
    app = launch(url)
    assert not app.exception
    if url != "decision":
        assert "imported" in text(app)


@pytest.mark.parametrize(("asked", "opened"), [("usage", "usage"), ("nonsense", "here")])
def test_a_link_opens_a_way_of_measuring_by_its_name(home: Path, asked: str, opened: str) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.session_state["case"] = "nortia"
    app.query_params["way"] = asked
    app = app.switch_page("pages/measure.py").run()
    assert not app.exception
    assert app.query_params["way"] == opened
    assert ("Observed so far" in text(app)) is (opened == "usage")


SHEET = "parallel\tinput\toutput\tTTFT p95 [s]\ttok/s\n16\t3596\t500\t1.8\t31.5\n"


def pasting(launch: Launch, text_of_sheet: str) -> AppTest:
    app = launch("measure")
    app.session_state["way"] = "hand"
    app.session_state["author"] = "Kim"
    app.session_state["hand-how-nortia"] = "paste"
    app.run()
    area = next(a for a in app.text_area if a.key.endswith("-paste"))
    return area.set_value(text_of_sheet).run()


def store(app: AppTest) -> AppTest:
    next(s for s in app.selectbox if s.key.endswith("-who")).set_value("vllm")
    next(i for i in app.text_input if i.label == "From").set_value("gpu-box.xlsx")
    app.run()
    return next(b for b in app.button if b.label == "Store these figures").click().run()


def test_a_pasted_table_is_shown_in_base_units_before_it_is_stored(launch: Launch, home: Path) -> None:
    app = pasting(launch, SHEET)
    assert "row 2: unknown candidate ''" in text(app).replace("\\", "")  # the sheet names none: nothing can be stored
    assert next(b for b in app.button if b.label == "Store these figures").disabled
    assert "per user, or in total?" in next(d.value for d in app.dataframe if "why" in d.value)["why"].tolist()
    app = store(app)
    assert not app.exception
    assert "Figures stored as entered by Kim: 1." in text(app)
    (piece,) = [e for e in case_state(open_workspace(home), "nortia").evidence if e.kind == "entered"]
    # 1.8 s are 1,800 ms; 16 in flight with 3,596 in and 500 out is the plan's parallel-16
    assert (piece.metric, piece.value, piece.load_point, piece.by) == ("ttft_ms", 1800.0, "parallel-16", "Kim")


def test_runs_that_kept_to_the_plan_are_stored_with_its_contract_and_the_machine(launch: Launch, home: Path) -> None:
    app = pasting(launch, SHEET)
    next(c for c in app.checkbox if c.label == "The runs kept to the plan's contract").check().run()
    assert "The plan does not state model_revision: two candidates do not compare on it." in text(app).replace("\\", "")
    app = store(app)
    assert "which GPU the runs took place on is missing" in text(app)
    next(i for i in app.text_input if i.label == "GPU").set_value("NVIDIA GB10")
    app = store(app)
    assert "Figures stored as entered by Kim: 1." in text(app)
    state = case_state(open_workspace(home), "nortia")
    (piece,) = [e for e in state.evidence if e.kind == "entered"]
    assert state.context.contracts[piece.contract or ""].observed == {"gpu": "NVIDIA GB10", "gpu_count": "1"}


def test_refused_rows_are_named_and_only_left_out_by_a_person(launch: Launch, home: Path) -> None:
    app = pasting(launch, SHEET + "16\t-3596\t500\t1.8\t31.5\n")
    next(s for s in app.selectbox if s.key.endswith("-who")).set_value("vllm")
    app.run()
    assert "row 3, input_tokens: -3596 is less than 1" in text(app).replace("\\", "")
    assert next(b for b in app.button if b.label == "Store these figures").disabled
    next(c for c in app.checkbox if c.label == "Leave these rows out").check()
    app = store(app)
    assert "Figures stored as entered by Kim: 1." in text(app)


def test_a_raw_file_can_be_had_again(launch: Launch, home: Path) -> None:
    launch("overview")
    ws = open_workspace(home)
    row = Filled("vllm", "parallel-16", 16, None, 3596, 500, "user_tok_s", "p5", 12.0, 64)
    bring_in_table(ws, "nortia", [row], by="Kim", source="mail", measured_at=now().date(), raw=("a.log", b"raw"))
    app = launch("measure")
    app.session_state["way"] = "hand"
    app.run()
    assert not app.exception
    assert "a.log · 3 bytes" in text(app).replace("\\", "")


def test_several_archives_are_dropped_at_once_and_a_broken_one_is_named(launch: Launch, tmp_path: Path) -> None:
    good = tmp_path / "good.zip"
    pack([bundle(tmp_path / "b")], good)
    app = launch("measure")
    app.session_state["way"] = "box"
    app.session_state["author"] = "Kim"
    app.run()
    zips = next(u for u in app.file_uploader if u.key.startswith("zip-"))
    zips.upload("good.zip", good.read_bytes(), "application/zip").upload("bad.zip", b"no zip", "application/zip").run()
    app = next(b for b in app.button if b.label == "Take in").click().run()
    assert not app.exception
    assert "New runs: 1, there already: 0." in text(app)
    assert "bad.zip: is not a zip archive." in text(app).replace("\\", "")
