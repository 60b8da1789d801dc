"""From sizing to a start command: every flag with its value and the number that it came from.

Flag names are the catalogue's (parameters by role); planner/launch_recipes.py says which roles a server gets, the
catalogue which settings close what stands open. What cannot be made equal between engines comes out as a warning.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import yaml

from planner.errors import InputError
from planner.frozen import Frozen
from planner.launch_recipes import Step, recipe_of, static_fraction
from planner.launch_settings import WHY, Flag, LaunchSettings, PurposeId
from planner.poc import Launch
from planner.server_schema import FairRun, SafeSetting, Server

GPU_MEMORY_CAUTION = 0.95
VARIABLE = re.compile(r"^[A-Z][A-Z0-9_]*$")


class Caution(Frozen):
    """What to know before a comparison: declared beforehand, beyond reach, or a setting that is risky."""

    topic: str
    kind: Literal["declared", "cannot", "setting"]
    sentence: str


class LaunchPlan(Frozen):
    """How to start one server: argument list, environment, the reasons, and what was not made equal.

    `keys` are the variables that hold an API key, with the flag that takes each (empty: the server reads the variable);
    their values are in no text of ours. `config` is the text of `config_file`, for settings without a flag.
    """

    engine: str
    name: str
    version: str
    purpose: PurposeId
    model: str
    served_name: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    config_file: str = ""
    config: str = ""
    keys: dict[str, str] = {}
    flags: tuple[Flag, ...]
    warnings: tuple[Caution, ...]
    url: str
    stage_settings: dict[str, str]

    @property
    def command_line(self) -> str:
        """Environment and arguments as one line for a POSIX shell, without API keys."""
        names = [f"{k}={shlex.quote(v)}" for k, v in self.environment.items()]
        return " ".join([*names, shlex.join(self.argv)])

    def for_plan(self, ready_timeout_s: float = 900) -> Launch:
        """The launch as a plan file carries it. Raises InputError for one that was made for production."""
        if self.purpose != "benchmark":
            raise InputError("a plan measures with benchmark settings.", where=f"launch of {self.engine}",
                             fix="Make the launch for the purpose benchmark.")  # fmt: skip
        return Launch(
            url=self.url, command=self.argv, environment=self.environment, ready_timeout_s=ready_timeout_s,
            stage_settings=self.stage_settings, config_files={self.config_file: self.config} if self.config else {},
        )  # fmt: skip


def launch(server: Server, settings: LaunchSettings) -> LaunchPlan:
    """The start command of a server for these settings.

    Raises InputError when the catalogue lacks a flag that the recipe needs.
    """
    settings = settings.model_copy(update={"port": settings.port or server.launch.port})
    recipe, benchmark = recipe_of(server), settings.purpose == "benchmark"
    found = [
        *(recipe.benchmark_environment if benchmark else ()),
        *(f for step in recipe.steps if (f := _flag(server, step, settings))),
        *(Flag(flag=s.flag, value=s.value, why=s.why) for s in _closing(server, settings)),
    ]
    environment = [f for f in found if VARIABLE.match(f.flag)]
    arguments = [f for f in found if f.flag.startswith("-")]
    lines = [f for f in found if not VARIABLE.match(f.flag) and not f.flag.startswith("-")]
    config_file = (settings.config_file or f"{server.id}.yaml") if lines else ""
    limit = server.parameters.get("max_concurrent_sequences")
    batch = limit.flag if limit else ""
    return LaunchPlan(
        engine=server.id, name=server.name, version=server.version, purpose=settings.purpose, model=settings.model,
        served_name=settings.served_name or settings.model,
        argv=(*server.launch.command, *_model(server, settings), *(a for f in arguments for a in _words(server, f)),
              *((server.launch.config_flag, config_file) if lines else ())),
        environment={f.flag: f.value for f in environment},
        config_file=config_file, config=_config(lines),
        keys={} if benchmark or server.security is None else server.security.keys,
        flags=(*environment, *arguments, *lines),
        warnings=(*_cautions(server, settings), *(_unequal(server) if benchmark else ()), *_open(server, settings)),
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
    why = step.why(settings) if callable(step.why) else settings.why(step.why) if step.why in WHY else step.why
    return Flag(flag=name, value=value, why=why)


def _closing(server: Server, settings: LaunchSettings) -> Iterable[SafeSetting]:
    """Settings of the catalogue that close what stands open, for this purpose."""
    return (s for s in (server.security.settings if server.security else ()) if s.only in (None, settings.purpose))


def _model(server: Server, settings: LaunchSettings) -> tuple[str, ...]:
    where = server.launch.model
    return {"positional": (settings.model,), "environment": ()}.get(where, (where, settings.model))


def _words(server: Server, flag: Flag) -> tuple[str, ...]:
    """The words of one argument; a role that takes several flags (K and V type) repeats its value."""
    if flag.value == "":
        return (flag.flag,)
    together = next((p.together for p in server.parameters.values() if flag.flag in (p.flag, p.switch_off)), ())
    return tuple(w for name in (flag.flag, *together) for w in (name, flag.value))


def _config(lines: Iterable[Flag]) -> str:
    """The lines of a configuration file as YAML; dots nest, and values are typed as YAML reads them."""
    tree: dict[str, Any] = {}
    for f in lines:
        *groups, last = f.flag.split(".")
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
        at[last] = yaml.load(f.value, Loader=yaml.CSafeLoader)
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False) if tree else ""


class Check(NamedTuple):
    """A setting that is risky on some servers, and the sentence; {stored} is the format of the checkpoint."""

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
    Check("quantization", lambda e, s: bool(s.stored_as),
          "the sizing counts {stored} weights and nothing converts them at load: the checkpoint has to be stored so."),
    Check("KV precision", lambda e, s: s.kv_cache_dtype == "fp8",
          "a narrower KV cache changes answers: compare quality; llama.cpp has q8_0 instead of FP8."),
    Check("several GPUs", lambda e, s: e.id in ("llama-server", "ollama") and s.tensor_parallel > 1,
          "no tensor parallel here: layers are split, which adds memory and no speed."),
    Check("context", lambda e, s: e.id == "llama-server",
          "KV of all slots is one number: with fewer slots each gets more context, so scale -c with -np."),
    Check("version", lambda e, s: "revision" in e.parameters and not s.revision,
          "no revision of the weights is stated: what is newest at the first start is loaded."),
    Check("configuration", lambda e, s: bool(e.launch.config_flag),
          "it reads a configuration file: a plan carries it, elsewhere put it where the command names it."),
    Check("model", lambda e, s: e.launch.model == "environment",
          "the model is not part of the command: create or pull it under the name that requests use."),
)  # fmt: skip


def _cautions(server: Server, settings: LaunchSettings) -> Iterable[Caution]:
    found = (c for c in CHECKS if c.applies(server, settings))
    return (
        Caution(topic=c.topic, kind="setting", sentence=c.sentence.format(stored=settings.stored_as)) for c in found
    )


def _unequal(server: Server) -> Iterable[Caution]:
    for f in server.fair_run:
        if f.by != "equalised":
            sentence = f"{server.name}: {f.default}; {f.how or 'no flag changes it'}. In a comparison: {f.effect}."
            yield Caution(topic=f.topic, kind=f.by, sentence=sentence)


def _open(server: Server, settings: LaunchSettings) -> Iterable[Caution]:
    """What stays open in daily use although every safe setting is applied."""
    if settings.purpose == "production" and server.security:
        for sentence in server.security.remains:
            yield Caution(topic="security", kind="setting", sentence=f"{sentence}.")


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
