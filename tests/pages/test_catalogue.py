"""A model is pasted, looked at and kept on the Catalogue page, and every page knows it from then on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from services.workspace import open_workspace
from tests.pages.conftest import Launch
from tests.planner.fictitious import facts, put
from tests.planner.test_model_config import LLAMA


def said(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.warning, *app.error, *app.success]
    return "\n".join(part.value for part in parts).replace("\\", "")


def paste(app: AppTest, text: str, id: str = "ours/new", index: str = "") -> AppTest:
    app.text_input(key="own-id").set_value(id)
    app.text_area(key="own-config").set_value(text)
    app.text_area(key="own-index").set_value(index)
    return next(b for b in app.button if b.label == "Read").click().run()


def test_a_pasted_model_is_shown_then_kept(launch: Launch) -> None:
    body = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    app = paste(launch("catalogue"), json.dumps(body), index=json.dumps({"metadata": {"total_size": 16_060_522_496}}))
    assert not app.exception
    assert "every head has its own (MHA)" in said(app)
    # 32 KV heads in place of 8: the files are smaller than the formula, and that is told.
    assert "memory counts the formula's" in said(app)
    app = app.button(key="own-save").click().run()
    assert not app.exception and not app.error
    assert "ours/new is in the catalogue" in said(app)
    models = next(d.value for d in app.dataframe if "Hidden size" in d.value.columns)
    assert "ours/new" in set(models["Model"])
    assert open_workspace().catalog.model("ours/new").num_key_value_heads == 32

    # A name that is taken is a sentence until the entry is to be replaced.
    app = paste(app, json.dumps(LLAMA))
    app = app.button(key="own-save").click().run()
    assert "has 'ours/new' already" in said(app)
    app.checkbox(key="own-replace").set_value(True)
    app = app.button(key="own-save").click().run()
    assert not app.error
    assert open_workspace().catalog.model("ours/new").num_key_value_heads == 8


SECTION = """
from services.workspace import open_workspace
from ui import own_model
own_model.show(open_workspace())
"""


@pytest.fixture
def section(home: Path) -> AppTest:
    """The section by itself, on an empty workspace."""
    return AppTest.from_string(SECTION, default_timeout=60).run()


def test_a_wrong_text_is_one_sentence_and_stays_in_the_field(section: AppTest) -> None:
    for text, sentence in (
        ("", "the text is empty"),
        ("<html>", "this is a web page, not JSON"),
        (json.dumps(LLAMA | {"compress_ratios": [4]}), "compress_ratios means a compressed KV cache"),
    ):
        app = paste(section, text)
        assert not app.exception
        assert sentence in said(app)
        assert app.text_area(key="own-config").value == text


def test_a_folder_and_a_hub_id_have_fields_of_their_own(section: AppTest, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    app = section.segmented_control(key="own-way").set_value("folder").run()
    app.text_input(key="own-folder").set_value(str(tmp_path))
    app = next(b for b in app.button if b.label == "Read").click().run()
    assert not app.exception
    assert app.button(key="own-save")
    app = app.segmented_control(key="own-way").set_value("hub").run()
    app.text_input(key="own-hub").set_value("no-owner")
    app = next(b for b in app.button if b.label == "Read").click().run()
    assert "is no hub id" in said(app)


def test_a_bad_own_file_is_told_and_the_rest_of_the_catalogue_is_there(home: Path, launch: Launch) -> None:
    put(home / "catalog", facts())
    put(home / "catalog", "name: vLLM\ncolour: red\n", "vllm.yaml")
    app = launch("catalogue")
    assert not app.exception
    assert "engines/vllm.yaml, line 2: colour: is no field here" in said(app)
    engines = next(d.value for d in app.dataframe if "Licence" in d.value.columns)
    assert {"SwiftServe 2.1", "vLLM 0.33.0"} < set(engines["Engine"])


def test_every_fact_of_an_engine_can_be_looked_up(launch: Launch) -> None:
    app = launch("catalogue")
    app = next(s for s in app.selectbox if s.label == "Facts, traps and reports of").set_value("vllm").run()
    assert not app.exception
    # vLLM 0.33.0 wheel: GGUF left the core, -tp is short for --tensor-parallel-size, the role comes before any token.
    for fact in ("gguf (vllm-gguf-plugin 0.0.5)", "newest file time in the wheel", "role only, empty content",
                 "only together with include_usage", "max_completion_tokens"):  # fmt: skip
        assert fact in said(app)
    row = next(d.value for d in app.table if "Switched off by" in d.value.columns).loc["tensor parallel"]
    assert (row["Flag"], row["Also"], row["Default"]) == ("--tensor-parallel-size", "-tp", "1")
    routes = next(d.value for d in app.table if d.value.index.name == "Route")
    assert r"POST /reset\_prefix\_cache" in routes.index  # as Markdown, which shows it plain
    read = next(d.value for d in app.dataframe if "What it says" in d.value.columns)
    assert "2026-09-18" in set(read["Published"])  # vllm#57475
