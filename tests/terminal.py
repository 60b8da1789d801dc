"""The terminal entry as tests type it: words in, exit code and both outputs back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

import cli
from decisions.record import People
from services.decisions import accept, propose_draft, save_draft
from services.verdicts import case_state
from services.workspace import now, open_workspace
from ui import terminal


class Ran(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, shipped_home: Path) -> Path:
    return shutil.copytree(shipped_home, tmp_path / "home")


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
