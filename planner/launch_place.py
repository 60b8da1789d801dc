"""What the forms of a launch share: names and folders of the place, the head comment, the image and its pinning."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename
from typing import NamedTuple

from pydantic import Field

from planner.container_words import INSIDE, USER_ID
from planner.frozen import Frozen
from planner.launch import LaunchPlan, launch
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

ANY_ADDRESS = "0.0.0.0"
READY_S = 900
UNTRIED = "Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline."


class Place(Frozen):
    """Names and folders where a server will run; the defaults are ours, change them to yours.

    `programs` holds the engine's programs, `models` the models, `settings` the files with keys.
    """

    name: str = Field(default="", pattern=r"^([a-z]([a-z0-9-]{0,40}[a-z0-9])?)?$")
    programs: str = Field(default="/opt/llm/bin", pattern=r"^(/[\w.+-]+)+$")
    models: str = Field(default="/srv/models", pattern=r"^(/[\w.+-]+)+$")
    settings: str = Field(default="/etc/llm", pattern=r"^(/[\w.+-]+)+$")
    user_id: int = Field(default=USER_ID, ge=1)

    def called(self, server: Server) -> str:
        """The name of the service: the stated one, else the engine's as DNS writes it."""
        return self.name or server.id.replace("_", "-")


class Written(NamedTuple):
    """What one form's function returns."""

    launch: LaunchPlan
    file_name: str
    text: str
    files: dict[str, str]
    notes: tuple[str, ...]


class Packed(NamedTuple):
    """A launch as it runs inside an image: the model lies under /models, the configuration under /settings."""

    launch: LaunchPlan
    image: str
    environment: dict[str, str]
    models_read_only: bool


def packed(server: Server, settings: LaunchSettings, host: str, why: str) -> Packed:
    """The launch inside the server's image, bound to `host`, and why.

    A model that lies on the machine is taken from /models by its name; downloads of a hub go there too, as nothing else
    can be written.
    """
    gguf = server.launch.model == "-m"
    lies_here = gguf or settings.model.startswith("/")
    made = launch(server, settings.model_copy(update={
        "host": host, "because": settings.because | {"host": why}, "config_file": f"/settings/{server.id}.yaml",
        "model": f"/models/{basename(settings.model)}" if lies_here else settings.model,
    }))  # fmt: skip
    command = server.launch.image_command or server.launch.command
    made = made.model_copy(update={"argv": (*command, *made.argv[len(server.launch.command):])})  # fmt: skip
    folder = {server.launch.cache_variable: "/models"} if server.launch.cache_variable else {}
    return Packed(made, image(server, settings), {**INSIDE, **folder, **made.environment}, gguf)


def image(server: Server, settings: LaunchSettings) -> str:
    """The image, by digest where one is stated or known, else by tag."""
    name, digest = server.launch.image, settings.image_digest or server.launch.image_digest
    return f"{name}@{digest}" if digest else name


def image_notes(server: Server, settings: LaunchSettings) -> tuple[str, ...]:
    """What the image needs, and who read its digest; without one that it has to be pinned, and how it is read."""
    name, basis, shared = server.launch.image, server.launch.image_digest_basis, server.launch.shared_memory_gb
    needs = tuple(f"The image: {need}." for need in server.launch.image_needs)
    if shared and server.launch.shared_memory_basis:
        needs += (f"Shared memory of {shared:g} GB: {server.launch.shared_memory_basis}.",)
    if settings.image_digest or server.launch.image_digest:
        return (*needs, f"Digest {basis}.") if basis and not settings.image_digest else needs
    return (
        *needs,
        f"Digest not known: pin it before use. After docker pull {name}, this prints it: "
        f"docker image inspect --format '{{{{index .RepoDigests 0}}}}' {name}"
        f" ({server.launch.image_basis or 'the tag was not pulled here'}).",
    )


# What another machine than Linux with an NVIDIA GPU needs otherwise, by form. AMD's words: rocm.docs.amd.com, vLLM.
_FOR_GPU = {
    ("AMD", "container"): "Written for an NVIDIA GPU. For AMD take the engine's ROCm image, and --device /dev/kfd, "
                          "--device /dev/dri and --group-add for video and render instead of --gpus.",
    ("AMD", "kubernetes"): "Written for an NVIDIA GPU. For AMD take the engine's ROCm image and amd.com/gpu instead of "
                           "nvidia.com/gpu.",
    ("Apple", "container"): "Written for an NVIDIA GPU. No container sees an Apple GPU: take the bare command.",
    ("Apple", "kubernetes"): "Written for an NVIDIA GPU. No container sees an Apple GPU: take the bare command.",
    ("CPU", "container"): "Written for an NVIDIA GPU. Without one take the engine's image for CPUs and leave out "
                          "--gpus.",
    ("CPU", "kubernetes"): "Written for an NVIDIA GPU. Without one take the engine's image for CPUs and leave out "
                           "nvidia.com/gpu.",
}  # fmt: skip
_FOR_OS = {
    ("windows", "bare"): "A script for a POSIX shell. Under Windows set the variables and start the program by hand.",
    ("windows", "systemd"): "systemd is Linux's; Windows has services of its own.",
    ("macos", "systemd"): "systemd is Linux's; macOS has launchd.",
}  # fmt: skip


def machine_notes(settings: LaunchSettings, form: str) -> tuple[str, ...]:
    """What this form needs otherwise on the machine of the settings; nothing on Linux with an NVIDIA GPU."""
    found = _FOR_GPU.get((settings.accelerator, form)), _FOR_OS.get((settings.os, form))
    return tuple(note for note in found if note)


def model_notes(server: Server, made: LaunchPlan) -> tuple[str, ...]:
    """In which format the model has to be, and that a server whose command does not name it has to be told of it."""
    notes = tuple(f"{made.model}: {w.sentence}" for w in made.warnings if w.topic == "quantization")
    if server.launch.model != "environment":
        return notes
    return (*notes, f"The command names no model: create or pull it as {made.served_name} once the server runs.")


def one_line(text: str) -> str:
    """Text from outside as one line, so that it cannot leave a comment."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def head(made: LaunchPlan, notes: tuple[str, ...]) -> Iterator[str]:
    """Comment lines for the top: what this is, and what to do before use."""
    yield f"# {one_line(f'{made.name} {made.version} with {made.model}, purpose {made.purpose}.')}"
    yield f"# {UNTRIED}"
    yield from (f"# ! {one_line(note)}" for note in notes)


def foot(made: LaunchPlan) -> Iterator[str]:
    """Comment lines for the end: why each setting has its value."""
    yield "# Why each setting has its value:"
    for f in made.flags:
        yield f"#   {one_line(f'{f.flag} {f.value}'.strip())}: {one_line(f.why)}"


def key_notes(server: Server, made: LaunchPlan, where: str) -> tuple[str, ...]:
    """Where the API key goes, what it does not cover, and that there is none."""
    if made.purpose == "benchmark" or server.security is None:
        return ()
    routes = ", ".join(server.security.open_routes)
    if not made.keys:
        return (f"There is no API key. Open to whoever reaches the port: {routes}.",)
    covers = f"A key covers {server.security.key_covers}; open without it: {routes}."
    seen = " It is given by a flag, so the process list shows it." if any(made.keys.values()) else ""
    return (f"{' and '.join(made.keys)}: {where}. {covers}{seen}",)
