"""The decision log from the terminal: list, due, judged again, exported, checked, imported, replayed."""

from __future__ import annotations

import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from services.workspace import now, open_workspace
from tests.terminal import Cli, accepted_adr, home, run

__all__ = ["home", "run"]  # fixtures


def test_adr_due_fails_once_a_day_is_here(run: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("adr", "list")
    accepted_adr(home)
    assert run("adr", "due")[:2] == (0, "Nothing is due within 14 days.\n")
    soon = run("adr", "due", "--within", "100")
    assert soon.code == 0
    assert "few-users" in soon.out
    at = now() + timedelta(days=95)
    monkeypatch.setattr("services.due.now", lambda: at)
    ran = run("adr", "due", "--case", "nortia", "--json")
    assert ran.code == 1
    assert {(d["what"], d["condition"], d["days_left"]) for d in json.loads(ran.out)} >= {("re-check", "few-users", -5)}


def test_adr_rejudge_says_what_days_changed(run: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("adr", "list")
    accepted_adr(home)
    assert run("adr", "rejudge")[:2] == (0, "Nothing changed.\n")
    at = now() + timedelta(days=95)
    for module in ("services.rejudging", "services.verdicts"):
        monkeypatch.setattr(f"{module}.now", lambda: at)
    ran = run("adr", "rejudge", "--case", "nortia")
    assert ran.code == 0
    assert "few-users" in ran.out
    assert "the day of its re-check passed" in ran.out
    assert run("adr", "rejudge", "--json").out == "[]\n"


def test_adr_list_export_and_verify(run: Cli, home: Path, tmp_path: Path) -> None:
    assert "draft" in run("adr", "list", "--case", "nortia").out
    assert "No ADR has a number yet" in run("adr", "export", str(tmp_path / "adr")).out
    id = accepted_adr(home)
    ran = run("adr", "export", str(tmp_path / "adr"))
    (written,) = (tmp_path / "adr").glob("0001-*.md")
    assert str(written) in ran.out
    verified = run("adr", "verify")
    ws = open_workspace(home)
    head = ws.store.adrs.head(id)
    ws.store.close()
    assert verified.code == 0
    assert f"{head}  {id}  ADR-0001" in verified.out
    assert head in written.read_text()


@pytest.mark.parametrize("to", ["'{}'", "replace(body, 'Lee', 'Kim')"], ids=["text destroyed", "name replaced"])
def test_adr_verify_names_the_first_broken_link(run: Cli, home: Path, to: str) -> None:
    run("adr", "list")
    id = accepted_adr(home)
    with sqlite3.connect(home / "flipline.db") as tampered:
        for (name,) in tampered.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            tampered.execute(f"DROP TRIGGER {name}")
        (table,) = tampered.execute(
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND c.name = 'prev'"
        ).fetchone()
        tampered.execute(f"UPDATE {table} SET body = {to} WHERE seq = 1")
    tampered.close()
    ran = run("adr", "verify")
    assert ran.code == 1
    assert f"BROKEN {id}, edit 1: was changed after it was written." in ran.out


def test_adr_check_export_import_and_replay(run: Cli, home: Path, tmp_path: Path) -> None:
    run("adr", "list")
    id = accepted_adr(home)
    folder, log = tmp_path / "adr", tmp_path / "log.json"
    assert run("adr", "export", str(folder), "--json", str(log)).code == 0
    assert json.loads(run("adr", "check", str(folder), "--json").out)["well"] is True
    assert run("adr", "check").code == 0
    replayed = run("adr", "replay", "ADR-0001", "--json")
    assert (replayed.code, json.loads(replayed.out)["same"]) == (0, True)
    (path,) = folder.glob("0001-*.md")
    path.write_text(path.read_text().replace("### For machines", "### Comments\n\n* No.\n\n### For machines"))
    refused = run("adr", "export", str(folder))
    assert (refused.code, "+* No." in refused.out) == (1, True)
    brought = json.loads(run("adr", "import", str(folder), "--case", "nortia", "--by", "Kim", "--json").out)
    assert brought["edited"] == [{"file": path.name, "adr": id, "author": "Kim", "edits": ["comment"]}]
    assert run("adr", "export", str(folder)).code == 0
    assert "0 new" in run("adr", "import", str(log)).out
    (folder / "0009-broken.md").write_text("---\nstatus: x\n")
    broken = run("adr", "import", str(folder), "--case", "nortia")
    assert (broken.code, "BROKEN 0009-broken.md, line 1" in broken.out) == (1, True)
    assert run("adr", "check", str(tmp_path / "none")).code == 2
    assert run("adr", "export").code == 2
    assert run("adr", "import", str(folder)).code == 2
    assert json.loads(run("adr", "list", "--json").out)[0]["status"] == "accepted"
