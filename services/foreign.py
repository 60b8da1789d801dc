"""Results of other tools: bench reads them in a process of its own and hands back a bundle like any other."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import InputError
from services.workspace import ROOT

TIMEOUT_S = 120


class Said(NamedTuple):
    """What a person says about a foreign file; `points` maps a load of the file to the plan's point it stands for."""

    candidate: str
    points: Mapping[str, str] = {}
    source: str = ""
    licence: str = ""
    in_flight: int | None = None
    rate_per_s: float | None = None
    day: date | None = None


class Seen(NamedTuple):
    """What a foreign file holds. `taken` maps its names to our metrics, the other two names to reasons."""

    tool: str
    loads: dict[str, str]
    figures: int
    requests: int
    taken: dict[str, str]
    not_measured: dict[str, str]
    refused: dict[str, str]
    findings: tuple[str, ...]


def look(name: str, content: bytes, said: Said, plan: bytes | None) -> Seen:
    """Say what would be taken from a foreign file and store nothing; raises InputError with the one thing wrong."""
    with _placed(name, content, plan) as (file, plan_file):
        told = _bench(file, said, plan_file, "--dry-run")
    return Seen(**{k: v for k, v in told.items() if k in Seen._fields} | {"findings": tuple(told["findings"])})


@contextmanager
def bundle_of(name: str, content: bytes, said: Said, plan: bytes | None) -> Iterator[Path]:
    """The folder with the bundle of a foreign file, for as long as the context lasts; raises InputError."""
    with _placed(name, content, plan) as (file, plan_file):
        out = file.parent / "out"
        _bench(file, said, plan_file, f"--out={out}")
        yield out


@contextmanager
def _placed(name: str, content: bytes, plan: bytes | None) -> Iterator[tuple[Path, Path | None]]:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "in" / (Path(name).name or "result")
        file.parent.mkdir()
        file.write_bytes(content)
        plan_file = Path(scratch) / "plan.yaml" if plan is not None else None
        if plan_file and plan is not None:
            plan_file.write_bytes(plan)
        yield file, plan_file


def _bench(file: Path, said: Said, plan: Path | None, *more: str) -> dict[str, Any]:
    options = {
        "candidate": said.candidate, "plan": plan, "source": said.source, "licence": said.licence,
        "in-flight": said.in_flight, "rate": said.rate_per_s, "date": said.day,
    }  # fmt: skip
    words = [f"--{k}={v}" for k, v in options.items() if v not in (None, "")]
    words += [f"--point={load}={point}" for load, point in said.points.items()]
    try:
        done = subprocess.run([sys.executable, "-m", "bench", "import", str(file), *words, "--json", *more],
                              cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"took more than {TIMEOUT_S} s to read.", where=file.name, fix="Import it by "
                         "python -m bench import and bring the bundle in.") from None  # fmt: skip
    if done.returncode != 0:
        sentence = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "could not be read."
        raise InputError(sentence.removeprefix("bench: "))
    told: dict[str, Any] = json.loads(done.stdout)
    return told
