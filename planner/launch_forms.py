"""One launch in four forms: a command, a container, Kubernetes objects, a systemd unit; each ready to be saved.

Every form carries the reason for each setting as comments, holds no secret, and applies the safe settings of its own
kind. What a form needs from the machine is said in its notes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from planner import launch_kubernetes, launch_shell, launch_systemd
from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.launch import LaunchPlan
from planner.launch_place import Place, Written
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

FormId = Literal["bare", "container", "kubernetes", "systemd"]


class Form(NamedTuple):
    """A form: what it is called, and the function that writes it."""

    title: str
    language: str
    write: Callable[[Server, LaunchSettings, Place], Written]


FORMS: dict[str, Form] = {
    "bare": Form("Bare command", "bash", launch_shell.bare),
    "container": Form("Container", "bash", launch_shell.container),
    "kubernetes": Form("Kubernetes", "yaml", launch_kubernetes.manifests),
    "systemd": Form("systemd unit", "ini", launch_systemd.unit),
}
ALIASES = {"k8s": "kubernetes", "docker": "container"}


class StartForm(Frozen):
    """One launch as a file: its text, further files that it needs, and what to do before it is used."""

    form: FormId
    language: str
    launch: LaunchPlan
    file_name: str
    text: str
    files: dict[str, str]
    notes: tuple[str, ...]


def start_form(server: Server, settings: LaunchSettings, form: str, place: Place | None = None) -> StartForm:
    """Write a launch in one form.

    Raises UnknownName for another form or a server without a recipe, InputError as `launch` does.
    """
    form = ALIASES.get(form, form)
    if form not in FORMS:
        raise UnknownName.from_known("form of a launch", form, FORMS)
    written = FORMS[form].write(server, settings, place or Place())
    return StartForm.model_validate({"form": form, "language": FORMS[form].language, **written._asdict()})
