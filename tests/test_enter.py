"""`cli.py enter`: a sheet from a GPU box becomes figures, with its raw file, or nothing is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.attachments import attached_bytes, attachments
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.terminal import Cli, home, run

__all__ = ["home", "run"]  # fixtures
SHEET = """Engine;In flight;Input;Output;TTFT p95 [s];Speed;memo
vLLM;16;3596;500;1,8;31,5;x
vLLM;16;3596;500;1,9;32,5;x
"""
WHO = ("--case", "nortia", "--by", "Kim", "--from", "sheet 2", "--day", "2026-11-01")


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(SHEET, encoding="utf-8")
    return path


def test_a_sheet_is_stored_with_its_raw_file(run: Cli, home: Path, sheet: Path) -> None:
    ran = run("enter", str(sheet), *WHO, "--attach", str(sheet), "--column", "Speed=user_tok_s p5,tok/s")
    assert ran.code == 0, ran.err
    for words in ("1800.0", "rows 2, 3 are read as repeats of the same load", "'memo' is left out",
                  "Figures stored as entered by Kim: 4."):  # fmt: skip
        assert words in ran.out
    ws = open_workspace(home)
    entered = [e for e in case_state(ws, "nortia").evidence if e.kind == "entered"]
    # 1,8 s with a decimal comma are 1,800 ms, at the plan's load point with 16 in flight
    assert sorted((e.metric, e.value, e.repeat) for e in entered) == [
        ("ttft_ms", 1800.0, 1), ("ttft_ms", 1900.0, 2), ("user_tok_s", 31.5, 1), ("user_tok_s", 32.5, 2),
    ]  # fmt: skip
    assert {(e.load_point, f"{e.at:%Y-%m-%d}") for e in entered} == {("parallel-16", "2026-11-01")}
    (kept,) = attachments(ws, "nortia")
    assert attached_bytes(ws, "nortia", kept.entry) == sheet.read_bytes()
    ws.store.close()


def test_a_refused_row_holds_all_back_until_it_is_left_out(run: Cli, home: Path, sheet: Path) -> None:
    sheet.write_text(SHEET.replace("16;3596;500;1,9", "16;;500;1,9"), encoding="utf-8")
    ran = run("enter", str(sheet), *WHO)
    assert (ran.code, "Nothing is stored." in ran.out) == (2, True)
    assert "REFUSED row 3: a speed without requests in flight (or rate), input and output length" in ran.out
    assert run("enter", str(sheet), *WHO, "--leave-out", "--dry-run").code == 0
    ws = open_workspace(home)
    assert not [e for e in case_state(ws, "nortia").evidence if e.kind == "entered"]
    ws.store.close()
    assert "Figures stored as entered by Kim: 1." in run("enter", str(sheet), *WHO, "--leave-out").out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--column", "Spd=user_tok_s p5"), "--column: 'Spd' is no heading. Headings: Engine"),
        (("--column", "Speed=user_tok_s p42"), "'user_tok_s p42' is nothing that a column holds"),
        (("--attach", "nowhere.log"), "nowhere.log: cannot be read: No such file or directory"),
        (("--day", "1.11.2026"), "'1.11.2026' is no day: write it as 2026-11-29"),
        (("--day", "2999-01-01"), "2999-01-01 lies ahead"),
    ],
)
def test_bad_input_is_one_sentence(run: Cli, sheet: Path, more: tuple[str, ...], message: str) -> None:
    ran = run("enter", str(sheet), *WHO, *more)
    assert ran.code == 2
    assert message in ran.err


def test_only_runs_that_kept_to_the_plan_state_its_contract(run: Cli, home: Path, sheet: Path) -> None:
    ran = run("enter", str(sheet), *WHO)
    assert "They state no contract, so no two candidates compare on them" in ran.out
    ran = run("enter", str(sheet), *WHO, "--as-planned", "NVIDIA GB10", "--gpus", "2")
    assert (ran.code, "no contract" in ran.out) == (0, False), ran.err
    ran = run("enter", str(sheet), *WHO)
    assert "! earlier figures of vllm did; the newest count, so their ratios are refused now." in ran.out
    ws = open_workspace(home)
    state = case_state(ws, "nortia")
    stated = {state.context.contracts[e.contract].stated()["gpu_count"] if e.contract else None
              for e in state.evidence if e.kind == "entered"}  # fmt: skip
    assert stated == {None, "2"}
    ws.store.close()
    assert "0 GPUs cannot be" in run("enter", str(sheet), *WHO, "--as-planned", "NVIDIA GB10", "--gpus", "0").err
