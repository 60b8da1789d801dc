"""The ready folder for the GPU box: plan, a start script per candidate, the request, and a README with the commands."""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from decisions.escaping import code, inline
from planner.container_words import USER_ID, run_words
from planner.errors import InputError
from planner.poc import Container, Launch, Plan, PlanCandidate
from services.plan_files import shipped_beside

PLAN, README = "plan.yaml", "README.md"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The oldest date that a .zip can hold: equal contents give equal bytes.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_EXECUTABLE, _PLAIN = 0o755, 0o644

_TEXT = """# {title}

Everything that this measurement needs beside the machine, the engines and the weights. Plan SHA-256: `{sha256}`.

| file | what it is |
|---|---|
| `plan.yaml` | candidates, contract, load points, stages, hypotheses; the instrument needs nothing else |
{scripts}
| `request.md`, `request.html` | the request for GPU time, one page to print and sign |
{beside}
## On the box

{instrument}

    python -m bench doctor                          # what on this machine would spoil a measurement
    python -m bench check plan.yaml                 # every server starts and answers one request
    python -m bench run plan.yaml --out results     # the same command goes on after an interruption
    python -m bench summary results                 # what came out
    zip -r results.zip results                      # back to the Measure page, "On the GPU box"

The instrument starts and stops every server itself, {starts} starts each. The scripts start one by hand, with the same
words, to see it come up before the measurement; end it again before `bench run`.
{needs}"""


_FROM_REPOSITORY = """\
The instrument comes from Flipline's repository: `pip install -r requirements-gpu.txt` there. A box without network gets
it packed: choose the box's processor where this folder was made, or `make gpu-kit ARCH=arm64 PLAN=plan.yaml`."""
_PACKED = """\
The instrument lies here as `{name}`, with this plan and its Python packages: unpack it (`tar -xf`), follow its README
up to step 3, and type the commands below there. It needs no network."""


def ready_folder(
    plan: Plan, body: bytes, request: dict[str, str], kit: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """Every file by its name: the plan as stored (`body`), scripts, README, `request` (texts) and `kit` (an archive).

    Raises InputError when a candidate's name would not be a file name of its own.
    """
    beside = shipped_beside(plan)
    scripts = {f"start-{c.id}.sh": script(c) for c in plan.candidates if c.launch.command}
    readme = _TEXT.format(
        title=inline(plan.title), sha256=plan.sha256(), starts=plan.starts,
        scripts="\n".join(_row(c) for c in plan.candidates), needs=_needs(plan),
        beside="".join(f"| `{name}` | named by the plan |\n" for name in beside),
        instrument=_PACKED.format(name=next(iter(kit))) if kit else _FROM_REPOSITORY,
    )  # fmt: skip
    files = {PLAN: body, README: readme.encode(), **beside, **(kit or {})}
    taken = sorted(files.keys() & scripts.keys() | scripts.keys() & request.keys())
    if taken:
        raise InputError("is the name of two files of the folder.", where=taken[0], fix="Rename the candidate.")
    return files | {name: text.encode() for name, text in (scripts | request).items()}


def as_zip(files: dict[str, bytes], folder: str) -> bytes:
    """The files in one .zip below a folder of that name; scripts can be executed, equal files give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(f"{folder}/{name}", _LONG_AGO)
            info.external_attr = (_EXECUTABLE if name.endswith(".sh") else _PLAIN) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return packed.getvalue()


def script(candidate: PlanCandidate) -> str:
    """A POSIX shell script that starts a candidate's server in the foreground, with the words of the plan.

    Raises InputError for an environment variable whose name no shell takes.
    """
    launch, container = candidate.launch, candidate.launch.container
    said = f"{candidate.id}: {candidate.engine} with {candidate.model_name}, as plan.yaml starts it"
    lines = ["#!/bin/sh", f"# {' '.join(said.split())}. It answers at {launch.url}.", "set -eu"]
    lines += [f"printf '%s' {shlex.quote(text)} > {name}" for name, text in launch.config_files.items()]
    if container is None:
        for name, value in launch.environment.items():
            if not VARIABLE.fullmatch(name):
                raise InputError(f"environment: {name!r} is no name of a variable.", where=f"candidate {candidate.id}")
            lines.append(f"export {name}={shlex.quote(value)}")
        return "\n".join([*lines, f"exec {shlex.join(launch.command)}"]) + "\n"
    if container.digest:
        lines.append(f"# The image has to be {container.digest}; `bench check` compares it.")
    return "\n".join([*lines, f"exec {' '.join(_in_container(launch, container))}"]) + "\n"


def _in_container(launch: Launch, container: Container) -> list[str]:
    """Shell words that run a launch's command as the instrument does, its settings read from this folder."""
    words = run_words(
        gpus=container.gpus, shared_memory_gb=container.shared_memory_gb,
        user_id=USER_ID if container.user_id is None else container.user_id, environment=launch.environment,
        volumes=[f"{outside}:{inside}:ro" for inside, outside in container.mounts.items()],
    )  # fmt: skip
    settings = [f'--volume "$PWD/{name}":/settings/{name}:ro' for name in launch.config_files]
    command = [f"/settings/{word}" if word in launch.config_files else word for word in launch.command]
    begin = [container.runtime, "run", "--rm", "--pull", "never", "--network", "host", *words]
    end = ["--entrypoint", command[0], container.image, *command[1:]]
    return [shlex.join(begin), *settings, shlex.join(end)]


def _row(c: PlanCandidate) -> str:
    if c.launch.command:
        return f"| `start-{c.id}.sh` | starts {c.id} ({c.role}) alone, in the foreground |"
    return f"| (none for {c.id}) | it is attached to at {c.launch.url}: start it yourself, before `bench run` |"


def _needs(plan: Plan) -> str:
    """Files that the plan names and this folder lacks."""
    beside = sorted({p.file for p in plan.load_points if p.file} - shipped_beside(plan).keys())
    beside += [f"{plan.tokenizer_dir}/tokenizer.json"] if plan.tokenizer_dir else []
    if not beside:
        return ""
    told = "".join(
        f"- {code(name)}{' (a path of the box)' if PurePosixPath(name).is_absolute() else ''}\n" for name in beside
    )
    return f"\nThe plan names files that are not in here; put them beside `plan.yaml`:\n\n{told}"
