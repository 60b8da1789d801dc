"""The files of the log on its page: written into a folder, hand edits shown, a folder of others brought in."""

from __future__ import annotations

from pathlib import Path

from services.workspace import open_workspace
from tests.decisions.corpus import SHAPES
from tests.services.made import accepted


def words(page) -> str:
    kinds = (page.markdown, page.success, page.error, page.code, page.warning, page.info)
    return " ".join(str(e.value) for kind in kinds for e in kind)


def test_write_edit_bring_back(launch, home, tmp_path):
    ws = open_workspace(home)
    adr = accepted(ws)
    ws.store.close()
    folder = tmp_path / "out"
    page = launch("adr-log")
    page.text_input(key="export-folder").set_value(str(folder)).run()
    page.button(key="export").click().run()
    assert "Files written: 2. 0001-" in words(page)
    (file,) = folder.glob("0001-*.md")
    file.write_text(
        file.read_text().replace("### For machines", "### Comments\n\n* Not on Fridays.\n\n### For machines")
    )
    page.button(key="export").click().run()
    assert "was edited by hand after it was written" in words(page)
    assert "+* Not on Fridays." in words(page)
    page.session_state["author"] = "Kim"
    page.text_input(key="import-folder").set_value(str(folder)).run()
    page.button(key="import").click().run()
    assert not page.exception
    ws = open_workspace(home)
    assert ws.store.adrs.edits(adr.id)[-1].author == "Kim"
    ws.store.close()


def test_decisions_of_others_come_in(launch, home, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for shape in SHAPES:
        (theirs / shape.name).write_bytes(shape.body)
    (theirs / "0099-broken.md").write_text("---\nstatus: x\n")
    page = launch("adr-log")
    page.session_state["author"] = "Kim"
    page.text_input(key="import-folder").set_value(str(theirs)).run()
    page.button(key="import").click().run()
    assert not page.exception
    assert f"{len(SHAPES)} new, 1 broken" in words(page)
    assert "0099-broken.md, line 1" in words(page)
    assert Path(theirs).exists()
