"""The log is verified against heads that were printed, exported as Markdown or exported as JSON."""

from __future__ import annotations

import json
import sqlite3

import pytest

from cli import main
from db.store import open_store
from decisions.edits import Commented
from decisions.markdown import to_markdown
from decisions.record import Section
from planner.errors import InputError
from services.exporting import export_all
from services.heads import heads_kept_in, verified
from services.log_file import export_log
from services.workspace import URL_VARIABLE, open_workspace
from tests.db.made import NOW, with_nortia
from tests.decisions.made import nortia

ADR = nortia().id


@pytest.fixture
def ws(tmp_path, monkeypatch):
    """One decision of three edits, in a workspace of its own."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    with_nortia(f"sqlite:///{home}/flipline.db").close()
    ws = open_workspace(home)
    ws.store.adrs.add_draft(nortia(), at=NOW, by="Tanaka")
    ws.store.adrs.propose(ADR, version=1, at=NOW, author="Sato")
    ws.store.adrs.accept(ADR, at=NOW, author="Sato")
    yield ws
    ws.store.close()


@pytest.fixture
def kept(ws, tmp_path, capsys):
    """What was kept elsewhere, by the way in which it was kept."""
    export_all(ws, tmp_path / "adr")
    (tmp_path / "log.json").write_text(export_log(ws), encoding="utf-8")
    printed = {"verify.txt": ["adr", "verify"], "check.txt": ["db", "check"], "check.json": ["db", "check", "--json"]}
    for name, command in printed.items():
        assert main(["--home", str(ws.home), *command]) == 0
        (tmp_path / name).write_text(capsys.readouterr().out, encoding="utf-8")
    return [tmp_path / name for name in ("adr", "log.json", *printed)]


def cut_off(ws):
    raw = sqlite3.connect(ws.home / "flipline.db")
    raw.execute("DROP TRIGGER adr_edit_no_delete")
    raw.execute("DELETE FROM adr_edit WHERE seq = 3")
    raw.commit()
    raw.close()


def test_every_way_of_keeping_heads_finds_a_cut_off_tail(ws, kept):
    head = ws.store.adrs.head(ADR)
    assert [heads_kept_in(path) for path in kept] == [{ADR: head}] * 5
    cut_off(ws)
    assert verified(ws.store) == ()
    for path in kept:
        assert [(b.adr, b.seq) for b in verified(ws.store, path)] == [(ADR, 3)]


def test_a_draft_in_an_exported_log_is_no_record_that_could_be_missing(ws, tmp_path):
    ws.store.adrs.add_draft(nortia("01J0000000000000000NORTIA2"), at=NOW, by="Tanaka")
    (tmp_path / "log.json").write_text(export_log(ws), encoding="utf-8")
    assert verified(ws.store, tmp_path / "log.json") == ()


def test_a_block_of_somebody_elses_text_does_not_hide_the_head(ws, tmp_path):
    quoted = "```yaml\nflipline: 1\nhead: none\n```\n\nas it was"
    adr = ws.store.adrs.get(ADR).model_copy(update={"kept": (Section(heading="Quoted", markdown=quoted),)})
    head = ws.store.adrs.head(ADR)
    (tmp_path / "0001-it.md").write_text(to_markdown(adr, head=head), encoding="utf-8")
    assert heads_kept_in(tmp_path / "0001-it.md") == {ADR: head}


def test_a_file_of_others_in_another_encoding_hides_no_head(ws, tmp_path):
    export_all(ws, tmp_path / "adr")
    (tmp_path / "adr" / "0002-theirs.md").write_bytes("# Größe\n".encode("latin-1"))
    assert heads_kept_in(tmp_path / "adr") == {ADR: ws.store.adrs.head(ADR)}


def test_the_terminal_names_what_came_after_the_heads_when_it_is_asked(ws, kept, capsys):
    ws.store.adrs.append(ADR, Commented(at=NOW, author="Mallory", text="I was always here"))
    verify = ["--home", str(ws.home), "adr", "verify", "--heads", str(kept[0])]
    assert main(verify) == 0
    assert main([*verify, "--nothing-after"]) == 1
    assert f"BROKEN {ADR}, edit 4: was added after the known head" in capsys.readouterr().out
    assert main([*verify, "--nothing-after", "--json"]) == 1
    (broken,) = json.loads(capsys.readouterr().out)["broken"]
    assert (broken["adr"], broken["seq"]) == (ADR, 4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        ("nothing here", "holds no head"),
        ('{"adrs": [1]}', "is no exported log"),
        ("{", "log"),
    ],
)
def test_what_holds_no_heads_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "heads.txt"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        heads_kept_in(path)


def test_nothing_after_needs_heads(path_store):
    with pytest.raises(InputError, match="--heads"):
        verified(path_store, nothing_after=True)


@pytest.fixture
def path_store(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/flipline.db")
    yield store
    store.close()
