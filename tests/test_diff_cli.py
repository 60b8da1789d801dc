"""Differences, search and graph in the terminal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cli
from services.decisions import begin_draft
from services.workspace import open_workspace
from tests.services.made import decide


@pytest.fixture(scope="module")
def home(shipped_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nortia decided once, with a draft that would supersede it."""
    folder = shutil.copytree(shipped_home, tmp_path_factory.mktemp("decided") / "home")
    ws = open_workspace(folder, url=f"sqlite:///{folder}/flipline.db")
    draft = next(a for a in ws.store.adrs.all() if "Nortia" in a.title)
    decide(ws, draft.id)
    begin_draft(ws, draft.case, "Lee", supersedes=draft.id)
    ws.store.close()
    return folder


def run(home: Path, *words: str) -> int:
    return cli.main(["--home", str(home), *words])


def test_acceptance_is_a_difference_between_two_points_of_the_history(home, capsys) -> None:
    assert run(home, "diff", "adr", "1", "2", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["before"]["label"], found["after"]["label"]) == ("2 proposed", "3 accepted")
    assert {"path": ["status"], "before": "proposed", "after": "accepted"} in found["differences"]


def test_a_draft_is_compared_with_what_it_would_supersede(home, capsys) -> None:
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    draft = ws.store.adrs.all()[-1].id
    ws.store.close()
    assert run(home, "diff", "adr", draft, "--against", "ADR-0001") == 0
    assert "Revisit" in capsys.readouterr().out
    assert run(home, "diff", "adr", draft, "1", "--against", "ADR-0001") == 2
    assert "Leave out one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("diff", "requirements", "--case", "nortia"), "there is only one version"),
        (("diff", "plan", "--case", "nortia", "ffff"), "unknown plan 'ffff'"),
        (("diff", "adr", "9"), "unknown ADR '9'"),
        (("adr", "graph", "9"), "unknown ADR '9'"),
        (("adr", "search", "--case", "norita"), "Did you mean 'nortia'"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(home, capsys, words: tuple[str, ...], says: str) -> None:
    assert run(home, *words) == 2
    assert says in capsys.readouterr().err


def test_the_score_as_decided_stands_as_long_as_nothing_changed(home, capsys) -> None:
    assert run(home, "diff", "score", "--case", "nortia", "ADR-0001", "today") == 0
    assert "They do not differ." in capsys.readouterr().out


def test_search_finds_by_phrase_and_filter_and_exits_1_without_a_hit(home, capsys) -> None:
    assert run(home, "adr", "search", "internal assistant", "--status", "accepted", "--json") == 0
    (hit,) = json.loads(capsys.readouterr().out)
    assert (hit["number"], hit["case"], hit["found_in"]) == (1, "nortia", ["title"])
    assert run(home, "adr", "search", "assistant internal") == 1
    assert "No decision" in capsys.readouterr().out
    assert run(home, "adr", "search", "assistant", "internal", "--due", "2000-01-01") == 1


def test_the_graph_is_dot_and_json(home, capsys) -> None:
    assert run(home, "adr", "graph", "1") == 0
    dot = capsys.readouterr().out
    assert dot.startswith("digraph decisions {") and 'label="would supersede"' in dot
    assert run(home, "adr", "graph", "--case", "nortia", "--json") == 0
    edges = json.loads(capsys.readouterr().out)["edges"]
    assert {e["relation"] for e in edges} == {"rests on", "would supersede"}
