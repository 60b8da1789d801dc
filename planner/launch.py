"""From sizing to a start command: every flag with its value and the number that it came from.

Flag names are the catalogue's (parameters by role); planner/launch_recipes.py says which roles a server gets. What
cannot be made equal between engines comes out as a warning.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from planner.engine_facts import Server
from planner.engine_schema import FairRun
from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.launch_recipes import RECIPES, WHY, Flag, LaunchSettings, Step, static_fraction
from planner.poc import Launch

__all__ = ["RECIPES", "Caution", "FairnessRow", "Flag", "LaunchPlan", "LaunchSettings", "fairness", "launch"]

GPU_MEMORY_CAUTION = 0.95


class Caution(Frozen):
    """What to know before a comparison: declared beforehand, beyond reach, or a setting that is risky."""

    topic: str
    kind: Literal["declared", "cannot", "setting"]
    sentence: str


class LaunchPlan(Frozen):
    """How to start one server: argument list, environment, the reasons, and what was not made equal."""

    engine: str
    version: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    flags: tuple[Flag, ...]
    warnings: tuple[Caution, ...]
    url: str
    stage_settings: dict[str, str]

    @property
    def command_line(self) -> str:
        """Environment and arguments as one line for a POSIX shell."""
        names = [f"{k}={shlex.quote(v)}" for k, v in self.environment.items()]
        return " ".join([*names, shlex.join(self.argv)])

    def for_plan(self, ready_timeout_s: float = 900) -> Launch:
        """The launch as a plan file carries it."""
        return Launch(
            url=self.url, command=self.argv, environment=self.environment, ready_timeout_s=ready_timeout_s,
            stage_settings=self.stage_settings,
        )  # fmt: skip


def launch(server: Server, settings: LaunchSettings) -> LaunchPlan:
    """The start command of a server for these settings.

    Raises UnknownName for a server without a recipe, InputError when the catalogue lacks a flag that the recipe needs.
    """
    if server.id not in RECIPES:
        raise UnknownName.from_known("engine with a launch recipe", server.id, RECIPES)
    settings = settings.model_copy(update={"port": settings.port or server.launch.port})
    recipe = RECIPES[server.id]
    flags = [f for step in recipe.steps if (f := _flag(server, step, settings))]
    environment = (*recipe.environment, *(f for f in flags if not f.flag.startswith("-")))
    arguments = [f for f in flags if f.flag.startswith("-")]
    batch = server.parameters["max_concurrent_sequences"].flag
    return LaunchPlan(
        engine=server.id, version=server.version,
        argv=(*server.launch.command, *_model(server, settings), *(a for f in arguments for a in _words(server, f))),
        environment={f.flag: f.value for f in environment}, flags=(*environment, *arguments),
        warnings=(*_cautions(server, settings), *_unequal(server)),
        url=f"http://{settings.host}:{settings.port}",
        stage_settings={"max_num_seqs": batch} if batch.startswith("-") else {},
    )  # fmt: skip


def _flag(server: Server, step: Step, settings: LaunchSettings) -> Flag | None:
    value = step.value(settings)
    if value is None:
        return None
    found = server.parameters.get(step.role)
    name = (found.switch_off if step.off else found.flag) if found else ""
    if not name:
        raise InputError(
            f"parameters.{step.role}: the launch recipe needs a flag.", where=f"{server.id} in the catalogue"
        )
    return Flag(flag=name, value=value, why=settings.why(step.why) if step.why in WHY else step.why)


def _model(server: Server, settings: LaunchSettings) -> tuple[str, ...]:
    where = server.launch.model
    return {"positional": (settings.model,), "environment": ()}.get(where, (where, settings.model))


def _words(server: Server, flag: Flag) -> tuple[str, ...]:
    """The words of one argument; a role that takes several flags (K and V type) repeats its value."""
    if flag.value == "":
        return (flag.flag,)
    role = next(p for p in server.parameters.values() if flag.flag in (p.flag, p.switch_off))
    return tuple(w for name in (flag.flag, *role.together) for w in (name, flag.value))


class Check(NamedTuple):
    """A setting that is risky on some servers, and the sentence."""

    topic: str
    applies: Callable[[Server, LaunchSettings], bool]
    sentence: str


CHECKS: tuple[Check, ...] = (
    Check("memory", lambda e, s: (s.gpu_memory_utilization or 0) > GPU_MEMORY_CAUTION and e.id == "vllm",
          f"above {GPU_MEMORY_CAUTION} of memory graph capture can run out of memory (vllm#57475)."),
    Check("memory", lambda e, s: e.id == "sglang" and static_fraction(s) is None,
          "weights, KV pool and device total are not stated: SGLang computes its own fraction, KV tokens will differ."),
    Check("quantization", lambda e, s: e.id == "vllm" and s.quantization == "fp8",
          "fp8 is refused for a bf16 checkpoint; use fp8_per_tensor, or leave it out for an FP8 checkpoint."),
    Check("quantization", lambda e, s: e.id in ("llama-server", "ollama") and s.quantization is not None,
          "the GGUF file decides the quantization; the setting has no effect."),
    Check("KV precision", lambda e, s: s.kv_cache_dtype == "fp8",
          "a narrower KV cache changes answers: compare quality; llama.cpp has q8_0 instead of FP8."),
    Check("several GPUs", lambda e, s: e.id in ("llama-server", "ollama") and s.tensor_parallel > 1,
          "no tensor parallel here: layers are split, which adds memory and no speed."),
    Check("context", lambda e, s: e.id == "llama-server",
          "KV of all slots is one number: with fewer slots each gets more context, so scale -c with -np."),
)  # fmt: skip


def _cautions(server: Server, settings: LaunchSettings) -> Iterable[Caution]:
    return (Caution(topic=c.topic, kind="setting", sentence=c.sentence) for c in CHECKS if c.applies(server, settings))


def _unequal(server: Server) -> Iterable[Caution]:
    for f in server.fair_run:
        if f.by != "equalised":
            sentence = f"{server.name}: {f.default}; {f.how or 'no flag changes it'}. In a comparison: {f.effect}."
            yield Caution(topic=f.topic, kind=f.by, sentence=sentence)


class FairnessRow(Frozen):
    """One default over several servers: by server id what it is and whether the launch makes it equal."""

    topic: str
    servers: dict[str, FairRun]

    @property
    def equal(self) -> bool:
        """Whether the launch makes it equal on every server of the row."""
        return all(f.by == "equalised" for f in self.servers.values())


def fairness(servers: Mapping[str, Server]) -> tuple[FairnessRow, ...]:
    """The table of defaults that skew a comparison, topics in the order of the catalogue."""
    topics = dict.fromkeys(f.topic for s in servers.values() for f in s.fair_run)
    return tuple(
        FairnessRow(topic=t, servers={id: f for id, s in servers.items() for f in s.fair_run if f.topic == t})
        for t in topics
    )
