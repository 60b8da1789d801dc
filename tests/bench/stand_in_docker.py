"""A stand-in for docker: records its arguments and runs the container's command as a process of its own.

As with the real one, the client's death does not end the container, and nothing of the client's environment gets in.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path

IMAGE_ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64

_SCRIPT = """#!{python}
import json, os, pathlib, signal, subprocess, sys, time

here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (here / "calls.jsonl").open("a") as f:
    f.write(json.dumps(words) + "\\n")

def option(name):
    return words[words.index(name) + 1] if name in words else None

def pid_of(cid):
    return int((here / cid).read_text())

if words[:2] == ["image", "inspect"]:
    if words[-1] != "vllm/vllm-openai:v0.33.0":
        sys.exit("Error: No such image")
    print("{image}", json.dumps(["vllm/vllm-openai@{digest}"]))
elif words[0] == "run":
    cid = os.urandom(32).hex()
    at = words.index("{image}")
    inside = dict(w.split("=", 1) for n, w in zip(words, words[1:]) if n == "--env")
    child = subprocess.Popen(
        [sys.executable, *words[at + 1:]], env=inside | {{"PYTHONPATH": "{root}"}}, start_new_session=True,
    )
    (here / cid).write_text(str(child.pid))
    pathlib.Path(option("--cidfile")).write_text(cid)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    sys.exit(child.wait())
elif words[0] == "inspect":
    print(pid_of(words[-1]))
elif words[0] == "stop":
    os.kill(pid_of(words[-1]), signal.SIGTERM)
"""


def install(folder: Path) -> Path:
    """Put the stand-in into a folder, to be first on PATH; returns the file in which it records its calls."""
    tool = folder / "docker"
    root = Path(__file__).resolve().parents[2]
    tool.write_text(_SCRIPT.format(python=sys.executable, image=IMAGE_ID, digest=DIGEST, root=root))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return folder / "calls.jsonl"
