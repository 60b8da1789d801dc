"""What a plan may start without the consent of the person at the keyboard.

A plan file comes from elsewhere, so the commands, options and environment names that it may use are tables.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench import containers
from planner.errors import NotAllowed
from planner.poc import Launch

# First words of the commands that a plan may name; PYTHON stands for any python.
PYTHON = "python"
ALLOWED: tuple[tuple[str, ...], ...] = (
    ("vllm", "serve"),
    (PYTHON, "-m", "vllm.entrypoints.openai.api_server"),
    ("ollama", "serve"),
    ("llama-server",),
    ("trtllm-serve",),
    ("text-generation-launcher",),
    ("sglang", "serve"),
    (PYTHON, "-m", "sglang.launch_server"),
    (PYTHON, "-m", "bench", "emulate"),
)
ALLOWED_ENVIRONMENT = re.compile(
    r"^(VLLM|OLLAMA|LLAMA|SGLANG|TRTLLM|TLLM|HF|TRANSFORMERS|NCCL|OMP|PYTORCH|TORCH)_\w+$"
    r"|^(CUDA|HIP|ROCR)_VISIBLE_DEVICES$|^(PREFIX_CACHING|DO_NOT_TRACK|TOKENIZERS_PARALLELISM)$"
)
# Of these, what makes an engine load a program, library or package by name, or talk to another address.
REFUSED_ENVIRONMENT = re.compile(
    r"(_PATH|_PLUGINS?|_LIBRARY|_LIBRARIES|_PACKAGE|_ENDPOINT|_SERVER|_MODULES_CACHE|_EXTENSIONS_DIR|_CONF_FILE)$|INSECURE"
)
# Options by which an engine loads code that is not its own, whole or as short as its parser takes them; what names a
# module within JSON; and a file of options that this check cannot read (config_files, which it can, are read too).
REFUSED_OPTIONS = re.compile(
    r"(?:^|\n)--?(?:trust|middl|worker-[ce]|scheduler-c|logits-p|model-c|io-p|tool-p|tool-parser-p|reasoning-parser-p"
    r"|custom-weight|custom-module|enable-custom-logit|forward-h)[\w-]*|[\w-]*module-path|trust-remote-code"
)
# A class or function by its name, where an engine takes one: a text within JSON, a key of such an option by its own
# name (--compilation-config.backend), and the option that may also name an executor of its own.
_NAME = r"[A-Za-z-][\w-]*(?:\.[A-Za-z-][\w-]*)+"
REFUSED_NAMES = re.compile(
    rf'"{_NAME}"|(?:^|\n)--?(?:[\w-]+\.[\w.-]+|distributed-executor-b[\w-]*)[=\n]{_NAME}(?=\n|$)'
)
OPTIONS_FILE = re.compile(r"^--(?:config|extra-llm-api-o[\w-]*)(?:=(.*))?$")


def check_allowed(launch: Launch, *, allow: bool, where: str) -> None:
    """Raise NotAllowed when a plan names a command, environment or image that is not an engine's own."""
    if allow or not launch.command:
        return
    if launch.container:
        containers.check_repository(launch.container, where=where)
    if not any(_matches(launch.command, row) for row in ALLOWED):
        raise NotAllowed(
            f"the plan wants to run {' '.join(launch.command[:4])!r}, which is not the command of a known engine.",
            where=where, fix="Read the plan; if you trust it, add --allow-command.",
        )  # fmt: skip
    if os.sep in launch.command[0] and not launch.container and not is_emulator_command(launch.command):
        raise NotAllowed(f"the plan names the program {launch.command[0]} by its path, where any program may lie.",
                         where=where, fix="Look there; if you trust it, add --allow-command.")  # fmt: skip
    if found := _loads_code(launch):
        raise NotAllowed(f"the plan sets {found}, by which an engine runs code that is not its own.",
                         where=where, fix="Read the plan; if you trust it, add --allow-command.")  # fmt: skip
    for name in launch.environment:
        if not ALLOWED_ENVIRONMENT.match(name) or REFUSED_ENVIRONMENT.search(name):
            raise NotAllowed(f"the plan wants to set the environment variable {name}, which no measurement needs.",
                             where=where, fix="Read the plan; if you trust it, add --allow-command.")  # fmt: skip


def _matches(command: tuple[str, ...], row: tuple[str, ...]) -> bool:
    name = Path(command[0]).name
    first = re.fullmatch(r"python(3(\.\d+)?)?", name) is not None if row[0] == PYTHON else name == row[0]
    return first and command[1 : len(row)] == row[1:]


def _loads_code(launch: Launch) -> str:
    """The option of a command, or of a text that bench writes for it, that makes an engine load code; or nothing."""
    words = [word.replace("_", "-") for word in launch.command[1:]]
    texts = [text.replace("_", "-") for text in launch.config_files.values()]
    for refused, told in ((REFUSED_OPTIONS, "\n".join(words + texts)), (REFUSED_NAMES, "\n".join(words))):
        if found := refused.search(told):
            return " ".join(found.group().split())
    for i, word in enumerate(words):
        option = OPTIONS_FILE.match(word)
        if option and launch.command[i + 2 : i + 3] != () and launch.command[i + 2] in launch.config_files:
            continue
        if option:
            return word
    return ""


def is_emulator_command(command: tuple[str, ...]) -> bool:
    """The command starts our own emulator."""
    return bool(command) and _matches(command, (PYTHON, "-m", "bench", "emulate"))
