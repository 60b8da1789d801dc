"""The terminal starts without the pages, and says nothing on stderr that nobody asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STARTED = """
import sys
import cli

home, page = sys.argv[1:]
codes = [cli.main(["--home", home, "verdicts", "--case", "nortia"])]
loaded = {"streamlit", "ui.cached"} & set(sys.modules)
codes.append(cli.main(["--home", home, "report", "--case", "nortia", "--out", page]))
print("loaded", sorted(loaded), codes)
"""


def test_a_command_loads_no_page_and_stderr_stays_empty(shipped_home: Path, tmp_path: Path) -> None:
    home, page = shutil.copytree(shipped_home, tmp_path / "home"), tmp_path / "report.html"
    command = [sys.executable, "-c", STARTED, str(home), str(page)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-1] == "loaded [] [1, 0]"  # a hypothesis of the shipped case fails, as imported
    assert page.stat().st_size > 50_000
