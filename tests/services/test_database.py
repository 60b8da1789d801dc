"""The database of a workspace is checked and moved in the terminal; no password is printed."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from cli import main
from services.workspace import URL_VARIABLE


@pytest.fixture
def home(tmp_path, shipped_home, monkeypatch):
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    return shutil.copytree(shipped_home, tmp_path / "home")


@pytest.fixture
def team(postgres):
    """A database of a role that needs its password."""
    name = postgres.make()
    postgres.do(f"CREATE ROLE r_{name} LOGIN PASSWORD 'geheim'", f"ALTER DATABASE {name} OWNER TO r_{name}")
    yield postgres.url(name, f"r_{name}", "geheim")
    postgres.drop(name)
    postgres.do(f"DROP ROLE r_{name}")


def test_a_team_moves_and_works_on_in_the_new_database(home, team, monkeypatch, capsys):
    assert main(["--home", str(home), "db", "move", "--to", team]) == 0
    said = capsys.readouterr().out
    assert "Every row and every chain arrived as it was sent" in said
    assert f"Bundles stay in {home / 'runs'}" in said.replace("\n", "")
    monkeypatch.setenv(URL_VARIABLE, team)
    assert main(["--home", str(home), "db", "check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["backend"].startswith("PostgreSQL 1")
    assert (found["rows"]["case_file"], found["broken"]) == (2, [])
    assert main(["--home", str(home), "adr", "list"]) == 0
    assert main(["--home", str(home), "db", "move", "--to", team]) == 2
    again = capsys.readouterr()
    assert "is the database that the data is in" in again.err
    assert "geheim" not in said + again.out + again.err


def test_a_database_that_is_in_use_is_no_target(home, team, capsys):
    assert main(["--home", str(home), "db", "move", "--to", team]) == 0
    assert main(["--home", str(home), "db", "move", "--to", team]) == 2
    assert "Name an empty database" in capsys.readouterr().err


def test_nothing_is_made_where_there_is_no_database(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    assert main(["--home", str(tmp_path / "none"), "db", "check"]) == 2
    assert main(["--home", str(tmp_path / "none"), "db", "move", "--to", f"sqlite:///{tmp_path}/new.db"]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_broken_chain_is_named_and_ends_with_1(home, capsys):
    assert main(["--home", str(home), "db", "check"]) == 0
    raw = sqlite3.connect(home / "flipline.db")
    raw.execute("DELETE FROM adr_draft")
    raw.commit()
    raw.close()
    assert main(["--home", str(home), "db", "check"]) == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.parametrize("memory", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_nobody_moves_into_a_database_that_ends_with_the_command(home, capsys, memory):
    assert main(["--home", str(home), "db", "move", "--to", memory]) == 2
    assert "is in memory, and gone when this command ends. Name a file." in capsys.readouterr().err


def test_the_same_file_by_another_way_is_no_target(home, tmp_path, capsys):
    (tmp_path / "link.db").symlink_to(home / "flipline.db")
    for way in (tmp_path / "link.db", home / ".." / home.name / "flipline.db"):
        assert main(["--home", str(home), "db", "move", "--to", f"sqlite:///{way}"]) == 2
        assert "is the database that the data is in" in capsys.readouterr().err
