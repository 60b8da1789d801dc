"""A server in a container: started by argument list with a cidfile, stopped by id; images and files as the plan says.

Not tried with a real engine in a container here: the tests use a stand-in that records its arguments.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bundle.folder import file_sha256
from planner.catalog import REPOSITORY_CATALOG
from planner.container_words import USER_ID, run_words
from planner.engine_facts import server
from planner.engine_files import load_engines
from planner.errors import NotAllowed, ServerError
from planner.poc import DIALECTS, Container, Launch

CID_WITHIN_S = 5.0
ANSWER_WITHIN_S = 60.0
SETTINGS = "/settings"  # where a container finds the launch's configuration files


class Image(NamedTuple):
    """An image on this machine: its id, and the digests under which registries know it."""

    id: str
    digests: tuple[str, ...]


def known_repositories() -> frozenset[str]:
    """Image names, without tags, of the servers in the catalogue."""
    engines = load_engines(REPOSITORY_CATALOG / "engines")
    return frozenset(_repository(server(engines, name).launch.image) for name in DIALECTS if name != "openai")


def _repository(image: str) -> str:
    """The name without tag and digest; a colon before the last slash belongs to a registry's port."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}"


def check_repository(container: Container, *, where: str) -> None:
    """Raise NotAllowed for an image that no engine of the catalogue is published as: it may hold any program."""
    known = known_repositories()
    if _repository(container.image) not in known:
        raise NotAllowed(
            f"the plan wants to run the image {container.image}, which is not that of a known engine.", where=where,
            fix=f"Known: {', '.join(sorted(known))}. If you trust the plan, add --allow-command.",
        )  # fmt: skip


def find_image(container: Container, *, where: str) -> Image:
    """The image on this machine; nothing is pulled.

    Raises ServerError when it is not there, NotAllowed when its digest is not the plan's.
    """
    answer = _ask(container.runtime, "image", "inspect", "--format", "{{.Id}} {{json .RepoDigests}}", container.image)
    if answer.returncode != 0:
        raise ServerError(f"the image {container.image} is not on this machine.", where=where,
                          fix=f"Bring it with `{container.runtime} pull` or `{container.runtime} load`.")  # fmt: skip
    found, _, digests = answer.stdout.strip().partition(" ")
    image = Image(found, tuple(json.loads(digests or "null") or ()))
    names = (image.id, *(d.rpartition("@")[2] for d in image.digests))
    if container.digest and container.digest not in names:
        raise NotAllowed(
            f"the image {container.image} has the digest {names[-1]}, and the plan names {container.digest}.",
            where=where, fix="Bring the image that the plan names, or correct the plan.",
        )  # fmt: skip
    return image


def check_files(launch: Launch, *, where: str) -> None:
    """Compare the model's files with the checksums in the plan.

    Raises NotAllowed for a file that is missing or differs.
    """
    for name, expected in launch.files.items():
        try:
            found = file_sha256(Path(name))
        except OSError as e:
            raise NotAllowed(f"{name} cannot be read: {e.strerror}.", where=where,
                             fix="Copy the model's files again, or correct the plan.") from None  # fmt: skip
        if found != expected:
            raise NotAllowed(f"{name} has the SHA-256 {found[:16]}..., and the plan says {expected[:16]}....",
                             where=where, fix="Copy the file again, or correct the plan.")  # fmt: skip


def run_arguments(
    launch: Launch, image: Image, cidfile: Path, token: str, config_files: Mapping[str, Path]
) -> list[str]:
    """The argument list that starts a launch's command in its container, by the id of the image that was checked.

    The container is restricted as the launches are that people save (planner/container_words.py); `config_files` are
    where those of the launch were written.
    """
    c = launch.container
    assert c is not None
    words = [c.runtime, "run", "--pull", "never", "--cidfile", str(cidfile), "--label", f"flipline.lease={token}",
             "--network", "host", "--restart", "no"]  # fmt: skip
    volumes = [f"{outside}:{inside}:ro" for inside, outside in c.mounts.items()]
    volumes += [f"{path}:{SETTINGS}/{name}:ro" for name, path in config_files.items()]
    words += run_words(
        gpus=c.gpus, shared_memory_gb=c.shared_memory_gb, user_id=USER_ID if c.user_id is None else c.user_id,
        volumes=volumes, environment=launch.environment,
    )  # fmt: skip
    command = [f"{SETTINGS}/{word}" if word in config_files else word for word in launch.command]
    return [*words, "--entrypoint", command[0], image.id, *command[1:]]


def container_id(cidfile: Path) -> str:
    """The id that the runtime wrote, or nothing yet."""
    try:
        return cidfile.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def root_pid(runtime: str, cidfile: Path) -> int | None:
    """Number of the container's first process on this machine."""
    answer = _ask(runtime, "inspect", "--format", "{{.State.Pid}}", container_id(cidfile))
    text = answer.stdout.strip()
    return int(text) if answer.returncode == 0 and text.isdigit() and text != "0" else None


def stop_container(runtime: str, cidfile: Path, grace_s: float, *, starting: bool = False) -> str:
    """Stop and remove a container by its id, and return the id; nothing when none was made.

    A start that was just begun (`starting`) may not have written its id yet, so that is waited for. Raises ServerError
    when the runtime does not answer.
    """
    deadline = time.monotonic() + CID_WITHIN_S
    while not (found := container_id(cidfile)) and starting and time.monotonic() < deadline:
        time.sleep(0.05)
    if found:
        _ask(runtime, "stop", "-t", f"{grace_s:.0f}", found, within_s=grace_s + ANSWER_WITHIN_S)
        _ask(runtime, "rm", "-f", found)
    return found


def _ask(runtime: str, *words: str, within_s: float = ANSWER_WITHIN_S) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [runtime, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within_s, check=False
        )  # fmt: skip
    except OSError as e:
        raise ServerError(f"{runtime} cannot be run: {e.strerror}.", fix=f"Install {runtime} here.") from None
    except subprocess.TimeoutExpired:
        raise ServerError(f"{runtime} {words[0]} did not answer within {within_s:.0f} s.",
                          fix=f"Check that the {runtime} daemon runs.") from None  # fmt: skip
