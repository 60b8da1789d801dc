"""The terminal entry: the same calls as the pages, exit codes that a script can use, one sentence for bad input."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

import cli
from bundle.folder import pack
from decisions.record import People
from planner.poc import plan_from_yaml
from services.decisions import accept, propose_draft, save_draft
from services.verdicts import case_state
from services.workspace import now, open_workspace
from tests.bundle.made import bundle
from ui import terminal


class Ran(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setattr(terminal, "out", terminal.Console(soft_wrap=True, width=200))

    def ran(*words: str) -> Ran:
        try:
            code = cli.main(["--home", str(home), *words])
        except SystemExit as e:  # argparse's own way out
            code = int(e.code or 0)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return ran


def accepted_adr(home: Path) -> str:
    """Accept Nortia's draft; returns its id."""
    ws = open_workspace(home)
    adr = case_state(ws, "nortia").adrs[0]
    draft = ws.store.adrs.draft(adr.id)
    saved = save_draft(ws, draft.adr.model_copy(update={"people": People(decided=("Lee",))}), draft.version, "Lee")
    propose_draft(ws, adr.id, saved.version, "Lee")
    accept(ws, adr.id, "Lee")
    ws.store.close()
    return adr.id


def month(peak: float, days: int = 28) -> str:
    """A usage file that ends yesterday."""
    last = now().date() - timedelta(days=1)
    lines = [f"{last - timedelta(days=i)},{peak:g},300" for i in reversed(range(days))]
    return "\n".join(["date,peak_in_flight,requests", *lines])


def test_size_says_units_and_that_nothing_is_measured(run: Cli) -> None:
    ran = run("size", "--case", "nortia")
    assert ran.code == 0
    # cases: 3 units by the bound, 13 when experts touched are counted, 17 by the planning value.
    for units in ("3 units by the bound", "13 when experts touched", "17 by the planning value"):
        assert units in ran.out
    assert "29 tok/s (463)" in ran.out  # seed 001, plan B at 16
    assert "nothing of this is measured" in ran.out


def test_size_as_json(run: Cli) -> None:
    plans = json.loads(run("size", "--case", "nortia", "--json").out)
    favourite = next(p for p in plans if p["plan"] == "B")
    users = {(u["kind"], u["users"]): u["units"] for u in favourite["units"]}
    assert [users[k, 50] for k in ("bound", "coverage", "planning")] == [3, 13, 17]


def test_score_names_roles_and_flip_weights(run: Cli) -> None:
    ran = run("score", "--case", "nortia")
    assert ran.code == 0
    assert "only a measurement names a winner" in ran.out
    for role in ("favourite", "baseline", "re-examine", "later", "stopped"):
        assert role in ran.out
    assert "sglang below 0.06" in ran.out
    assert json.loads(run("score", "--case", "nortia", "--json").out)["favourite"] == "vllm"


def test_plan_is_a_file_that_bench_reads(run: Cli, tmp_path: Path) -> None:
    target = tmp_path / "plan.yaml"
    assert run("plan", "--case", "nortia", "--out", str(target)).code == 0
    plan = plan_from_yaml(target.read_text())
    assert [h.id for h in plan.hypotheses] == ["H1", "H2", "H3", "H4", "H5", "H6"]
    assert plan_from_yaml(run("plan", "--case", "nortia", "--draft").out).sha256() == plan.sha256()


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_take_in_stores_bundles_once(run: Cli, tmp_path: Path, form: str) -> None:
    folder = bundle(tmp_path / "results" / "vllm-1")
    path = tmp_path / "results"
    if form == "zip":
        path = tmp_path / "results.zip"
        pack([folder], path)
    ran = run("take-in", "--case", "nortia", str(path), "--by", "Lee")
    assert (ran.code, "new" in ran.out) == (0, True)
    assert "was there" in run("take-in", "--case", "nortia", str(path)).out


def test_take_in_refuses_an_altered_bundle_and_stores_nothing(run: Cli, home: Path, tmp_path: Path) -> None:
    folder = bundle(tmp_path / "results" / "vllm-1")
    (folder / "records" / "r1.parquet").write_bytes(b"altered")
    ran = run("take-in", "--case", "nortia", str(tmp_path / "results"))
    assert ran.code == 2
    assert ran.err.count("\n") == 1 and "records/r1.parquet" in ran.err
    ws = open_workspace(home)
    assert case_state(ws, "nortia").runs == ()
    ws.store.close()


def test_verdicts_exit_with_1_when_a_hypothesis_fails(run: Cli) -> None:
    ran = run("verdicts", "--case", "nortia", "--json")
    assert ran.code == 1  # H4 fails as imported: 8.13 s at the nearest published rate, against 2 s
    found = {h["id"]: h["state"] for h in json.loads(ran.out)["hypotheses"]}
    assert found["H4"] == "fails"
    assert {found[h] for h in ("H1", "H2", "H3", "H5", "H6")} == {"unmeasured"}
    assert "8.13 s" in run("verdicts", "--case", "nortia").out


@pytest.mark.parametrize(("peak", "days", "fires"), [(5, 28, True), (6, 28, False), (5, 20, False)])
def test_four_weeks_of_five_users_fire_the_condition_and_nothing_less(
    run: Cli, home: Path, tmp_path: Path, peak: float, days: int, fires: bool
) -> None:
    run("adr", "list")  # the first command puts the shipped cases there
    accepted_adr(home)
    file = tmp_path / "usage.csv"
    file.write_text(month(peak, days))
    ran = run("usage", "--case", "nortia", str(file), "--by", "Lee", "--source", "gateway log")
    assert ran.code == 0
    assert f"{days} days, " in ran.out
    assert f"highest peak in flight {peak}" in ran.out
    assert ("FIRED few-users" in ran.out) is fires


def test_usage_names_line_and_field(run: Cli, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text("date,peak_in_flight\n2026-10-01,4\n2026-10-02,many\n")
    ran = run("usage", "--case", "nortia", str(file), "--by", "Lee", "--source", "log")
    assert ran.code == 2
    assert ran.err == "usage.csv, line 3: peak_in_flight 'many' is not a number.\n"


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


def test_catalog_check_finds_a_faulty_own_entry(run: Cli, home: Path) -> None:
    assert run("catalog", "check").code == 0
    own = home / "catalog"
    own.mkdir(parents=True)
    (own / "gpus.yaml").write_text("schema: 1\ngpus:\n  - {id: nvidia-rtx-3090, bandwidth_gb_s: -5}\n")
    ran = run("catalog", "check")
    assert ran.code == 1
    assert "BROKEN gpus.yaml, gpus 'nvidia-rtx-3090': bandwidth_gb_s" in ran.out
    (own / "gpus.yaml").write_text("schema: 1\ngpus:\n  - {id: nvidia-rtx-3090, bandwidth_gb_s: 900}\n")
    assert run("catalog", "check").code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("size", "--case", "nortja"), "unknown case 'nortja'. Did you mean 'nortia'?"),
        (("take-in", "--case", "nortia", "nowhere"), "nowhere: is not there."),
        (("usage", "--case", "nortia", "nowhere", "--by", "Lee", "--source", "x"), "nowhere: cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(run: Cli, words: tuple[str, ...], sentence: str) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert ran.err.startswith(sentence)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [*(c.words for c in cli.COMMANDS), "catalog check"])
def test_every_command_shows_an_example(run: Cli, words: str) -> None:
    ran = run(*words.split(), "--help")
    assert ran.code == 0
    assert f"Example: python cli.py {words}" in " ".join(ran.out.split())
