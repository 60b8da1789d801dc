"""ADRs in a team's repository: ours are written anew, what others wrote or edited there is left alone."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from decisions.flip_condition import FlipCondition
from decisions.madr_reader import read_madr
from decisions.madr_text import text_of
from decisions.record import People, Section
from planner.errors import InputError, NotAllowed
from services.decisions import accept, begin_draft, comment, open_adr, propose_draft, save, save_draft
from services.exporting import Drawn, export_all, export_markdown, export_zip, plan_export
from tests.services.made import CASE, accepted, decide, superseding

NAME = "0001-vllm-serves-nortia-internal-assistant.md"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "decisions"


def test_numbered_records_are_written_with_their_head(shipped, folder):
    adr = accepted(shipped)
    begin_draft(shipped, CASE, "Kim")  # a draft has no number and stays at home
    (path,) = export_all(shipped, folder)
    assert path.name == NAME
    text = path.read_text()
    assert text == export_markdown(shipped, adr.id)[1]
    assert yaml.safe_load(text.split("---")[1])["status"] == "accepted"
    assert shipped.store.adrs.head(adr.id) in text


def test_the_figures_that_the_choice_rests_on_are_cited_with_how_they_came_about(shipped):
    text = export_markdown(shipped, accepted(shipped).id)[1]
    sizing = text.split("### Sizing\n")[1].split("\n## ")[0]
    # cases: 3 units by the bound, 13 when experts touched are counted, 17 by the planning value.
    assert "* **Units for 50 users: 3 (bound), 13 (coverage), 17 (planning)**" in sizing
    assert "  * by speed per user, bound = 3 = 50 / 19, rounded up" in sizing
    assert sizing.count("  * formula: ") == sizing.count("  * known error: ") == sizing.count("\n* **") >= 5


def test_our_own_file_is_written_anew(shipped, folder):
    adr = accepted(shipped)
    (path,) = export_all(shipped, folder)
    comment(shipped, adr.id, "Kim", "seen by the operators")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as git checks it out on Windows
    assert export_all(shipped, folder) == (path,)
    assert "seen by the operators" in path.read_text()


def test_words_of_which_nothing_can_be_seen_stop_no_export(shipped, folder):
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    gone = FlipCondition(id="gone", statement="\u202e", owner="Kim", recheck_on=date(2099, 1, 1))
    odd = opened.adr.text.model_copy(update={"title": " \u202e ", "conditions": (*opened.adr.conditions, gone)})
    save(shipped, opened, odd, "Lee")  # as a log of another tool may bring it
    adr = accepted(shipped)
    (path,) = export_all(shipped, folder)
    assert "\n# –\n" in path.read_text()
    assert f"[–](<{path.name}>)" in (folder / "README.md").read_text()
    assert text_of(read_madr(path.read_text())).text == adr.text


def test_a_name_that_is_no_text_or_would_end_a_link_stands_in_the_index(shipped, folder):
    accepted(shipped)
    folder.mkdir()
    for name in (b"0008-a|b>c.md", b"0009-\xff.md"):
        (folder / os.fsdecode(name)).write_text("# Theirs\n\n## Status\n\nAccepted\n")
    export_all(shipped, folder)
    rows = MarkdownIt("commonmark").enable("table").parse((folder / "README.md").read_text())
    links = [c.attrs["href"] for t in rows for c in t.children or () if c.type == "link_open"]
    assert links == [NAME, "0008-a%7Cb%3Ec.md", "0009-%FF.md"]


def test_marks_of_a_merge_in_what_somebody_wrote_stop_no_export(shipped, folder):
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    pasted = {"context": "git said:\n<<<<<<< HEAD\nours\n>>>>>>> theirs", "kept": (
        Section(heading="Output", markdown="```\nTotal\n=======\n```"),
    )}  # fmt: skip
    save(shipped, opened, opened.adr.text.model_copy(update=pasted), "Lee")
    adr = accepted(shipped)
    (path,) = export_all(shipped, folder)
    comment(shipped, adr.id, "Kim", "seen by the operators")
    assert export_all(shipped, folder) == (path,)
    assert "seen by the operators" in path.read_text()


def test_an_edit_by_hand_is_never_lost(shipped, folder):
    accepted(shipped)
    (path,) = export_all(shipped, folder)
    edited = path.read_text().replace("## ", "## EDITED ", 1) + "\nA paragraph of ours.\n"
    for text in (edited, edited.removesuffix("\nA paragraph of ours.\n")):
        path.write_text(text)
        with pytest.raises(NotAllowed, match=NAME):
            export_all(shipped, folder)
        assert path.read_text() == text


def test_nothing_is_written_when_one_file_was_edited(shipped, folder):
    old = accepted(shipped)
    (path,) = export_all(shipped, folder)
    path.write_text(path.read_text().replace("vLLM", "vllm", 1))
    decide(shipped, superseding(shipped, old))
    with pytest.raises(NotAllowed, match="was edited by hand after it was written"):
        export_all(shipped, folder)
    assert sorted(p.name for p in folder.iterdir()) == [NAME, "README.md"]
    assert "0002" not in (folder / "README.md").read_text()


def test_a_file_in_our_place_that_is_not_ours_stays(shipped, folder):
    accepted(shipped)
    folder.mkdir()
    (folder / NAME).write_text("my own notes")
    with pytest.raises(NotAllowed, match="was not written by Flipline"):
        export_all(shipped, folder)
    assert (folder / NAME).read_text() == "my own notes"


def test_numbers_that_others_use_give_way_to_the_next_free_one_in_names_and_links(shipped, folder):
    old = accepted(shipped)
    new = decide(shipped, superseding(shipped, old))
    folder.mkdir()
    (folder / "0001-record-decisions.md").write_text("# Record decisions\n")
    (folder / "0007-\u65e5\u672c.md").write_bytes(b"\xff\xfe not text")
    first, second = export_all(shipped, folder)
    # 1 is taken, 7 is the highest: 8 is free. Number 2 is free as it is
    assert (first.name, second.name) == (NAME.replace("0001", "0008"), f"0002-{second.name[5:]}")
    assert f"](<{first.name}>)" in second.read_text()
    assert f"](<{second.name}>)" in first.read_text()
    assert 'status: "superseded by ADR-0002"' in first.read_text()
    assert "* Supersedes [ADR-0008: " in second.read_text()  # by the number that it has in this folder
    assert export_all(shipped, folder) == (first, second)  # and they keep their names
    assert new.number == 2


def test_the_next_free_number_is_nobodys_in_the_log_either(shipped, folder):
    old = accepted(shipped)
    decide(shipped, superseding(shipped, old))
    folder.mkdir()
    (folder / "0001-record-decisions.md").write_text("# Record decisions\n")
    first, second = export_all(shipped, folder)
    assert (first.name[:4], second.name[:4]) == ("0003", "0002")


def test_what_is_no_folder_is_refused(shipped, tmp_path):
    accepted(shipped)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file, not a folder"):
        export_all(shipped, tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        export_all(shipped, tmp_path / "file" / "below")


def drawn(key: str, svg: str):
    return lambda state, adr: (Drawn(key, "Speed *per* user", svg),)


def test_an_index_page_lists_what_is_there_and_charts_stand_beside(shipped, folder):
    old = accepted(shipped)
    decide(shipped, superseding(shipped, old))
    first, second = export_all(shipped, folder, charts=drawn("speed", "<svg></svg>"))
    index = (folder / "README.md").read_text()
    row = next(x for x in index.split("\n") if x.startswith("| 0001 "))
    assert f"| [vLLM serves Nortia, internal assistant](<{NAME}>) | superseded |" in row
    assert row.endswith(f"superseded by [ADR-0002](<{second.name}>) |")
    svg = folder / f"{first.stem}-speed.svg"
    # $ printf '<svg></svg>\n' | sha256sum
    seal = "6d6ddf6160dbd0685f29b421c8f85ad7ae4e7c6eb12ef9987cc699c7debd046a"
    assert svg.read_text() == f"<svg></svg>\n<!-- written by Flipline, {seal} -->\n"
    assert f"![Speed \\*per\\* user](<{svg.name}>)" in first.read_text()
    (folder / svg.name).write_text("mine")
    with pytest.raises(NotAllowed, match=f"{svg.name}: exists and was not written by Flipline"):
        export_all(shipped, folder, charts=drawn("speed", "<svg><g/></svg>"))


def test_a_picture_that_somebody_edited_is_not_drawn_over(shipped, folder):
    accepted(shipped)
    (path,) = export_all(shipped, folder, charts=drawn("speed", "<svg></svg>"))
    svg = folder / f"{path.stem}-speed.svg"
    edited = svg.read_text().replace("<svg>", '<svg fill="red">')
    svg.write_text(edited)
    with pytest.raises(NotAllowed, match=r"was edited by hand after it was written\. Keep it under another name."):
        export_all(shipped, folder, charts=drawn("speed", "<svg></svg>"))
    assert svg.read_text() == edited
    for ours in ("<svg/>\n<!-- written by Flipline -->\n", edited.replace('fill="red"', "").replace("<svg >", "<svg>")):
        svg.write_text(ours)  # the first as an older Flipline signed it
        export_all(shipped, folder, charts=drawn("speed", "<svg><g/></svg>"))
        assert svg.read_text().startswith("<svg><g/></svg>\n")


def test_the_same_log_gives_the_same_bytes_and_touches_no_file(shipped, folder):
    accepted(shipped)
    export_all(shipped, folder)
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}
    export_all(shipped, folder)
    assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()} == before
    assert export_zip(shipped) == export_zip(shipped)


def test_a_proposal_gets_the_next_free_number_of_the_folder_and_keeps_its_file_once_accepted(shipped, folder):
    accepted(shipped)
    draft = begin_draft(shipped, CASE, "Kim")
    saved = save_draft(shipped, draft.adr.model_copy(update={"people": People(decided=("Kim",))}), draft.version, "Kim")
    propose_draft(shipped, draft.adr.id, saved.version, "Kim")
    folder.mkdir()
    (folder / "0004-theirs.md").write_text("# Theirs\n\n## Status\n\nAccepted\n")
    _, proposal = export_all(shipped, folder, proposed=True)
    assert proposal.name.startswith("0005-")
    assert "| 0004 | [Theirs](<0004-theirs.md>) | Accepted |" in (folder / "README.md").read_text()
    accept(shipped, draft.adr.id, "Kim")
    assert export_all(shipped, folder)[1] == proposal


def test_a_disk_that_fills_up_leaves_what_stood_there(shipped, folder, monkeypatch):
    accepted(shipped)
    (path,) = export_all(shipped, folder)
    before = path.read_text()
    comment(shipped, shipped.store.adrs.all()[0].id, "Kim", "seen")
    write = Path.write_text

    def half(self, text, **how):
        write(self, text[:100], **how)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        export_all(shipped, folder)
    monkeypatch.undo()
    assert path.read_text() == before
    assert export_all(shipped, folder) == (path,)
    assert "seen" in path.read_text()
    assert sorted(p.name for p in folder.iterdir()) == [NAME, "README.md"]


def test_headings_in_japanese(shipped, folder):
    accepted(shipped)
    (path,) = export_all(shipped, folder, language="ja")
    assert "## 背景と課題\n" in path.read_text()
    assert (folder / "README.md").read_text().startswith("# 決定の一覧\n")
    assert export_all(shipped, folder) == (path,)  # written over in the other language: nobody edited it


def test_nothing_in_a_title_becomes_structure_of_the_index(shipped, folder):
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    nasty = "a | b](x) <script>alert(1)</script>\n# c `d` 推🚀"
    save(shipped, opened, opened.adr.text.model_copy(update={"title": nasty}), "Lee")
    accepted(shipped)
    export_all(shipped, folder)
    tokens = MarkdownIt("commonmark").enable("table").parse((folder / "README.md").read_text())
    assert [t.type for t in tokens].count("tr_open") == 2
    assert not [c for t in tokens for c in t.children or () if c.type == "html_inline"]
    assert any("<script>alert(1)</script> # c `d` 推🚀" in "".join(c.content for c in t.children or ())
               for t in tokens)  # fmt: skip


def test_our_own_index_that_was_edited_is_shown_not_written_over(shipped, folder):
    accepted(shipped)
    export_all(shipped, folder)
    page = folder / "README.md"
    page.write_text(page.read_text().replace("# Decisions", "# Our decisions"))
    (refused,) = plan_export(shipped, folder).refused
    assert "+# Our decisions" in refused.difference
    with pytest.raises(NotAllowed, match="was edited by hand"):
        export_all(shipped, folder)
