"""The launches that golden files hold: every engine, both purposes, every form, for one case.

`python -m tests.planner.launch_cases` writes tests/golden/launch anew; read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planner.engine_facts import server
from planner.engine_files import load_engines
from planner.launch_forms import FORMS, StartForm, start_form
from planner.launch_recipes import RECIPES
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "launch"
ENGINES = load_engines(ROOT / "catalog" / "engines")
PURPOSES = ("benchmark", "production")

# Nortia's plan B on one GB10: 4,096 tokens a request, up to 32 in flight; in GiB 31.2 weights and 60.0 KV cache.
CASE = LaunchSettings(
    model="Qwen/Qwen3-30B-A3B-FP8", served_name="plan-b", revision="ad44e777", max_model_len=4096, max_num_seqs=32,
    weights_gib=31.2, kv_pool_gib=60.0, reserve_gib=6.0, device_total_gib=121.69, gpu_memory_utilization=0.8,
    because={"max_model_len": "context of 4,096 tokens, input plus output (requirements)"},
)  # fmt: skip
DAILY = {"purpose": "production", "max_num_seqs": 12, "queue_limit": 50}


class Golden(NamedTuple):
    """One launch and the name of its golden file."""

    server: Server
    purpose: str
    form: StartForm

    @property
    def file(self) -> Path:
        """Where its text lies."""
        return GOLDEN / f"{self.server.id}-{self.purpose}-{self.form.form}{Path(self.form.file_name).suffix}"


def settings(name: str, purpose: str) -> LaunchSettings:
    """The case for one server; llama.cpp loads a file."""
    model = {"llama-server": "/srv/models/plan-b-q8_0.gguf", "ollama": "plan-b"}.get(name, CASE.model)
    return CASE.model_copy(update={"model": model} | (DAILY if purpose == "production" else {}))


def launches() -> Iterator[Golden]:
    """Every golden launch."""
    for name in RECIPES:
        for purpose in PURPOSES:
            for form in FORMS:
                found = server(ENGINES, name)
                yield Golden(found, purpose, start_form(found, settings(name, purpose), form))


def write() -> None:
    """Write every golden file and remove those that no launch has."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    made = {g.file: g.form.text for g in launches()}
    for old in set(GOLDEN.iterdir()) - set(made):
        old.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
