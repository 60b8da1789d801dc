"""A launch in the terminal: the file as it is, so that it can be piped, or written with what it needs."""

from __future__ import annotations

import sys
from pathlib import Path

from planner.errors import InputError
from planner.launch_forms import ALIASES, FORMS, StartForm
from planner.launch_settings import PURPOSES
from ui.terminal import Argument, say, table

LAUNCH_EXAMPLE = "launch --case nortia --engine vllm --form k8s --purpose production"
LAUNCH_ARGUMENTS = (
    Argument("--engine", {"required": True, "metavar": "ID", "help": "vllm, sglang, tensorrt_llm, tgi, ollama, "
                          "llama-server"}),
    Argument("--form", {"default": "bare", "choices": [*FORMS, *ALIASES], "help": "what is written (default: bare)"}),
    Argument("--purpose", {"default": "benchmark", "choices": ["benchmark", "production"],
                           "help": "for the measurement or for daily use (default: benchmark)"}),
    Argument("--revision", {"default": "", "metavar": "COMMIT", "help": "revision of the weights"}),
    Argument("--gguf", {"default": "", "metavar": "FILE", "help": "the GGUF file for llama-server"}),
    Argument("--out", {"type": Path, "metavar": "DIR", "help": "write the files there (default: print the text)"}),
)  # fmt: skip


def print_launch(form: StartForm, out: Path | None) -> None:
    """Print the text alone, or write every file of it and say what is still to do. Raises InputError."""
    if out is None:
        sys.stdout.write(form.text)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in {form.file_name: form.text, **form.files}.items():
            (out / name).write_text(text, encoding="utf-8")
            say(str(out / name))
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(out), fix="Name a folder.") from None
    for note in form.notes:
        say(f"! {note}")
    table("Settings", ("setting", "value", "why"), [(f.flag, f.value, f.why) for f in form.launch.flags])
    table("How the measurement differs from daily use", ("what", "measurement", "daily use", "why"), PURPOSES)
