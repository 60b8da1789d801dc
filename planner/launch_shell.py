"""A launch as a shell script: the bare command, and the `docker run` of its container."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from planner.engine_facts import Server
from planner.launch import launch
from planner.launch_place import ANY_ADDRESS, Packed, Place, Written, foot, head, image_notes, key_notes, packed
from planner.launch_settings import LOOPBACK, LaunchSettings

# A compiler cache is written under /tmp and loaded from there as code, so that folder must allow it.
SCRATCH = "/tmp:rw,exec,nosuid,nodev"


def bare(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """A script that starts the server in the foreground, on this machine only."""
    made = launch(server, settings)
    notes = key_notes(server, made, "export it before the start")
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
    words += ["--gpus", str(settings.tensor_parallel), "--ulimit", "memlock=-1"]
    if server.launch.shared_memory_gb:
        words += ["--ipc", "private", "--shm-size", f"{server.launch.shared_memory_gb:g}g"]
    words += ["--user", f"{place.user_id}:{place.user_id}", "--read-only", "--tmpfs", SCRATCH,
              "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
              "--volume", f"{place.models}:/models{':ro' if inside.models_read_only else ''}"]  # fmt: skip
    if made.config:
        words += ["--volume", f"{place.settings}/{server.id}.yaml:{made.config_file}:ro"]
    if made.keys:
        words += ["--env-file", f"{place.settings}/{name}.env"]
    for variable, value in inside.environment.items():
        words += ["--env", f"{variable}={value}"]
    secret = " ".join(f'{flag} "${variable}"' for variable, flag in made.keys.items() if flag)
    if secret:
        # The key is only in the environment; a shell inside hands it to the flag, so no argument list here shows it.
        return (*words, "--entrypoint", "sh", inside.image, "-c", f'exec "$0" "$@" {secret}', *made.argv)
    return (*words, "--entrypoint", made.argv[0], inside.image, *made.argv[1:])


def container(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """A script around the argument list, with its configuration file beside it."""
    made, name = _packed(server, settings).launch, place.called(server)
    notes = (
        *image_notes(server, settings),
        *key_notes(server, made, f"lines NAME=key in {place.settings}/{name}.env, readable by root only"),
        f"{place.models} must belong to user {place.user_id}; the model has to be there or is downloaded to it.",
        *((f"Put {server.id}.yaml into {place.settings} first.",) if made.config else ()),
    )
    files = {f"{server.id}.yaml": made.config} if made.config else {}
    text = "\n".join(["#!/bin/sh", *head(made, notes), "set -eu",
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
