"""A launch as a shell script: the bare command, and the `docker run` of its container."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from planner.container_words import run_words
from planner.launch import launch
from planner.launch_place import (
    ANY_ADDRESS,
    Packed,
    Place,
    Written,
    foot,
    head,
    image_notes,
    key_notes,
    machine_notes,
    model_notes,
    packed,
)
from planner.launch_settings import LOOPBACK, LaunchSettings
from planner.server_schema import Server


def bare(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """A script that starts the server in the foreground, on this machine only."""
    made = launch(server, settings)
    notes = (
        *machine_notes(settings, "bare"),
        *model_notes(server, made),
        *key_notes(server, made, "export it before the start"),
    )
    lines = ["#!/bin/sh", *head(made, notes), "set -eu"]
    lines += [f': "${{{name}:?holds the API key, state it before the start}}"; export {name}' for name in made.keys]
    if made.config:
        lines += [f"cat > {shlex.quote(made.config_file)} <<'SETTINGS'", *made.config.splitlines(), "SETTINGS"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in made.environment.items()]
    secret = "".join(f' \\\n  {flag} "${name}"' for name, flag in made.keys.items() if flag)
    lines += [f"exec {_folded(made.argv)}{secret}", *foot(made)]
    return Written(made, f"start-{place.called(server)}.sh", "\n".join(lines) + "\n", {}, notes)


def container_arguments(server: Server, settings: LaunchSettings, place: Place) -> tuple[str, ...]:
    """The argument list that runs the server's image: own user, read-only root, no capabilities, no secret in it."""
    benchmark = settings.purpose == "benchmark"
    inside = _packed(server, settings)
    made, name, port = inside.launch, place.called(server), settings.port or server.launch.port
    words = ["docker", "run"]
    if benchmark:
        # The measured path has no address translation; the id lies where the instrument looks for it.
        words += ["--pull", "never", "--cidfile", f"{name}.cid", "--network", "host", "--restart", "no"]
    else:
        words += ["--detach", "--name", name, "--restart", "unless-stopped", "--publish", f"{LOOPBACK}:{port}:{port}",
                  "--log-opt", "max-size=50m", "--log-opt", "max-file=5"]  # fmt: skip
    volumes = [f"{place.models}:/models{':ro' if inside.models_read_only else ''}"]
    volumes += [f"{place.settings}/{server.id}.yaml:{made.config_file}:ro"] if made.config else []
    words += run_words(
        gpus=str(settings.tensor_parallel), shared_memory_gb=server.launch.shared_memory_gb, user_id=place.user_id,
        volumes=volumes, environment=inside.environment,
        env_file=f"{place.settings}/{name}.env" if made.keys else "",
    )  # fmt: skip
    secret = " ".join(f'{flag} "${variable}"' for variable, flag in made.keys.items() if flag)
    if secret:
        # The key is only in the environment; a shell inside hands it to the flag, so no argument list here shows it.
        return (*words, "--entrypoint", "sh", inside.image, "-c", f'exec "$0" "$@" {secret}', *made.argv)
    return (*words, "--entrypoint", made.argv[0], inside.image, *made.argv[1:])


def container(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """A script around the argument list, with its configuration file beside it."""
    inside, name = _packed(server, settings), place.called(server)
    made = inside.launch
    needed = f"belong to user {place.user_id}; the model has to be there or is downloaded to it"
    if inside.models_read_only:
        needed = f"be readable by user {place.user_id} and hold the file"
    notes = (
        *machine_notes(settings, "container"),
        *image_notes(server, settings),
        *model_notes(server, made),
        *key_notes(server, made, f"lines NAME=key in {place.settings}/{name}.env, readable by root only"),
        f"{place.models} must {needed}.",
        *((f"Put {server.id}.yaml into {place.settings} first.",) if made.config else ()),
    )
    files = {f"{server.id}.yaml": made.config} if made.config else {}
    # An id that an earlier start left behind would stop this one.
    again = [f"rm -f {name}.cid"] if settings.purpose == "benchmark" else []
    text = "\n".join(["#!/bin/sh", *head(made, notes), "set -eu", *again,
                      f"exec {_folded(container_arguments(server, settings, place))}", *foot(made)])  # fmt: skip
    return Written(made, f"run-{name}.sh", text + "\n", files, notes)


def _packed(server: Server, settings: LaunchSettings) -> Packed:
    if settings.purpose == "benchmark":
        return packed(server, settings, LOOPBACK, settings.why("host"))
    return packed(server, settings, ANY_ADDRESS, f"inside the container; its port is published on {LOOPBACK} only")


def _folded(words: Sequence[str]) -> str:
    """An argument list for a POSIX shell, an option with its value a line."""
    return " \\\n  ".join(" ".join(shlex.quote(w) for w in line) for line in _lines(words))


def _lines(words: Sequence[str]) -> Iterator[list[str]]:
    line: list[str] = []
    for word in words:
        if line and word.startswith("-"):
            yield line
            line = []
        line.append(word)
    yield line
