"""Every flag of llama-server's launches, read by its own parser: nothing is loaded."""

from __future__ import annotations

import subprocess

import pytest

from tests.engine.server import LLAMA_SERVER, ROOT
from tests.engine.test_flags import argvs

pytestmark = pytest.mark.engine


def test_llama_server_reads_every_flag() -> None:
    for argv in argvs("llama-server"):
        # With --help it reads the whole command, refuses what it does not know, and loads nothing.
        done = subprocess.run(
            [str(LLAMA_SERVER), *argv, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-500:]
    wrong = subprocess.run([str(LLAMA_SERVER), "--no-such-flag", "--help"], cwd=ROOT, capture_output=True, check=False)
    assert wrong.returncode != 0
