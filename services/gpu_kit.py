"""The instrument packed for a box without network, with a plan and its files: `scripts.gpu_kit` in a process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from planner.errors import InputError
from services.workspace import ROOT

PROCESSORS = ("amd64", "arm64")


def gpu_kit(arch: str, body: bytes, beside: Mapping[str, bytes]) -> dict[str, bytes]:
    """The archive by its name; `body` is the plan file, `beside` the files that it names.

    Takes a minute and needs a package index. Raises InputError with what the packing said.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plan = folder / "plan.yaml"
        for name, data in {plan.name: body, **beside}.items():
            (folder / name).write_bytes(data)
        words = ["--arch", arch, "--plan", str(plan), "--out", str(folder / "kit")]
        done = subprocess.run([sys.executable, "-m", "scripts.gpu_kit", *words], cwd=ROOT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1].removeprefix("gpu-kit: ")
            raise InputError(f"the instrument cannot be packed: {said}", where=f"kit for {arch}")
        return {f.name: f.read_bytes() for f in (folder / "kit").iterdir()}
